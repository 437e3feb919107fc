"""The cards on photonic rails: what comes out, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.topox_core.papers.answers import answer_of, value, verdict
from topox_core.errors import InputError
from topox_core.papers.card import judged
from topox_core.papers.catalogue import card_named
from topox_core.papers.opus_practices import POINTS, fastest_ms
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import COMPUTE, Rail
from topox_core.rails.jitter import jittered, pass_factors
from topox_core.rails.presets import PRESETS
from topox_core.rails.tenants import together
from topox_core.runs.stopping import never


def run(name: str, **switches: object):
    return card_named(name).run(switches, never, lambda row: None)


def test_all_fourteen_sizes_of_table_3_come_out_exactly():
    rows = [row for series in ("GB200", "H200") for row in answer_of("opus-switches").of(series)]
    assert len(rows) == 14
    assert all(row.theirs == row.ours for row in rows)


def test_the_largest_switch_is_of_no_use_inside_a_job():
    assert value("opus-switches", "most", "Largest network") == 36_288
    assert value("opus-switches", "longer", "Robotic") > 5_000
    assert value("opus-switches", "longer", "Piezo") < 1
    on_demand = run("opus-switches", control=0)
    longer = {row.item: row.ours for row in on_demand.of("longer")}
    assert all(
        longer[row.item] >= row.ours - 1e-9 for row in answer_of("opus-switches").of("longer")
    )


@pytest.mark.long
def test_127_windows_need_all_forward_passes_first():
    assert value("opus-windows", "count", "first stage") == 127
    strict = run("opus-windows", schedule="1f1b")
    counts = {row.item: (row.ours, row.verdict) for row in strict.of("count")}
    assert counts["first stage"] == (95, "differs")
    assert counts["middle stage"] == (129, "match")
    assert counts["last stage"] == (65, "differs")


def test_the_windows_of_figure_3_are_counted_stage_by_stage():
    for series, counts in (("3a", (7, 5)), ("3b", (7, 9, 5))):
        rows = answer_of("opus-windows").of(series)
        assert tuple(row.ours for row in rows) == counts
        assert {row.verdict for row in rows} == {"not printed"}
    assert verdict("opus-windows", "order", "gather after receive") == "trend"
    assert verdict("opus-windows", "order", "gathers beside messages") == "trend"


def test_windows_a_second_are_about_six():
    seconds = value("opus-windows", "length", "iteration time")
    assert value("opus-windows", "rate", "windows a second") == pytest.approx(127 / seconds)
    assert judged(6.0, 127 / seconds) == "match"


def test_the_mean_window_before_a_reduce_scatter_is_not_the_printed_one():
    name = "opus-window-lengths"
    assert verdict(name, "before", "DP ReduceScatter") == "differs"
    assert 2_000 < value(name, "before", "DP ReduceScatter") < 2_800
    even = run(name, jitter=0.0)
    assert even.of("before")[0].ours == pytest.approx(2_332.3, abs=0.1)
    assert verdict(name, "before", "largest before the largest") == "trend"


def test_the_share_above_a_millisecond_rests_on_the_host():
    name = "opus-window-lengths"
    assert verdict(name, "share", "simulated") == "match"
    without = run(name, host_ms=0.0)
    assert without.of("share")[0].ours < 75


def test_the_volumes_of_figure_4b_are_the_printed_ones_to_the_mebibyte():
    rows = [row for row in answer_of("opus-window-lengths").of("bytes") if row.theirs is not None]
    assert [round(row.ours) for row in rows] == [row.theirs for row in rows] == [3_829, 957, 64]


def test_jitter_keeps_the_mean_and_is_one_draw_a_pass():
    iteration = build(PRESETS["llama3-8b-perlmutter"])
    assert jittered(iteration, 0.0, 3).duration_ms.tolist() == iteration.duration_ms.tolist()
    factors = pass_factors(iteration, 0.1, 3)
    assert factors.tolist() == pass_factors(iteration, 0.1, 3).tolist()
    assert factors.tolist() != pass_factors(iteration, 0.1, 4).tolist()
    assert set(factors[iteration.kind != COMPUTE]) == {1.0}
    one = (iteration.kind == COMPUTE) & (iteration.rank == 0) & (iteration.microbatch == 0)
    for work in range(2):
        assert len(set(factors[one & (iteration.work == work)])) == 1
    drawn = np.concatenate([pass_factors(iteration, 0.1, seed) for seed in range(300)])
    computes = np.tile(iteration.kind == COMPUTE, 300)
    assert drawn[computes].mean() == pytest.approx(1, abs=0.01)
    assert np.log(drawn[computes]).std() == pytest.approx(0.1, rel=0.1)


def test_an_iteration_with_jitter_lasts_longer_on_average():
    """The slowest rank decides, so spread costs time although its mean is one."""
    preset = PRESETS["llama3-8b-perlmutter"]
    iteration, rail = build(preset), Rail(optical=False, nic_gbps=preset.nic_gbps)
    lengths = [simulate(jittered(iteration, 0.1, seed), rail).iteration_ms for seed in range(40)]
    assert np.mean(lengths) > 10_200


@pytest.mark.parametrize("spread", [-0.1, 1.5, float("nan")])
def test_a_spread_that_cannot_be_is_told_in_one_line(spread):
    with pytest.raises(InputError, match="spread: must be from 0 to 1"):
        pass_factors(build(PRESETS["toy"]), spread, 0)


def test_the_printed_savings_come_out_at_4096_gpus_and_depend_on_the_counting():
    cost, power = (answer_of("opus-cost").of(measure)[0] for measure in ("cost", "power"))
    assert (round(cost.ours, 1), round(power.ours, 2)) == (70.5, 95.84)
    assert cost.about.startswith("4,096 GPUs")
    assert "2,304" in cost.reason
    whole = run("opus-cost", counting="whole-switches")
    assert whole.of("cost")[0].verdict == "differs"
    assert run("opus-cost", rival="rail_only").of("cost")[0].ours == pytest.approx(52.0, abs=0.1)


def test_provisioning_is_shorter_than_demand_at_every_delay():
    demand, ahead = (answer_of("opus-provisioning").of(series) for series in ("demand", "ahead"))
    assert all(a.ours < d.ours for a, d in zip(ahead, demand, strict=True))
    at = {row.item: row for row in (*demand, *ahead)}
    assert at["100 ms"].ours == pytest.approx(3.93, abs=0.01)
    assert [row.verdict for row in answer_of("opus-provisioning").of("warm_up")] == ["trend"] * 2


def test_link_up_of_seconds_costs_more_than_switching():
    slow = run("opus-provisioning", link_up_ms=3_000.0)
    assert next(row.ours for row in slow.of("ahead") if row.item == "100 ms") > 100


@pytest.mark.long
def test_a_rule_of_thumb_is_held_against_all_plans():
    best = fastest_ms(POINTS[0])
    assert min(best.values()) <= best[frozenset({"DP"})]
    rows = {row.item: row for row in answer_of("opus-practices").of("rule")}
    assert rows["Llama 3 8B, 8 GPUs"].verdict == "differs"
    assert rows["Llama 3 405B, 2,048 GPUs"].verdict == "trend"
    assert all(row.ours >= 1 for row in rows.values())


@pytest.mark.long
def test_the_calls_of_table_2_are_counted():
    assert value("opus-practices", "calls", "PP") == 1
    assert value("opus-practices", "calls", "FSDP, AG") == 17 / 16
    assert value("opus-practices", "calls", "CP, AG") == 1
    assert value("opus-practices", "calls", "TP & SP") == 4


# --- constraints, rails, jobs


@pytest.mark.long
def test_a_3d_parallel_job_needs_six_neighbours_and_context_parallelism_two_more():
    name = "opus-constraints"
    assert value(name, "degree", "3D parallel") == 6
    assert value(name, "degree", "the paper's own job") == 4
    assert value(name, "c2", "context parallelism") == 6  # on the rail, 4 without
    eight = run(name, nic_ports=8)
    assert eight.of("c2")[0].verdict == "differs"


def test_a_fixed_split_halves_the_nic_and_costs_what_the_rails_document_says():
    name = "opus-constraints"
    assert [row.ours for row in answer_of(name).of("c3")] == [0.5, 0.5]
    assert answer_of(name).of("cost")[0].ours == pytest.approx(2.56, abs=0.01)


def test_jobs_side_by_side_run_as_they_do_alone():
    preset = PRESETS["llama3-8b-perlmutter"]
    jobs = [jittered(build(preset), 0.05, seed) for seed in (1, 2)]
    jobs.append(build(PRESETS["toy"]))
    for rail in (Rail(reconfiguration_ms=25.0), Rail(reconfiguration_ms=25.0, provisioned=False)):
        alone = [simulate(job, rail) for job in jobs]
        shared = simulate(together(jobs), rail)
        at = 0
        for own in alone:
            part = slice(at, at + len(own.iteration))
            assert shared.end_ms[part] - own.end_ms == pytest.approx(0, abs=1e-6)
            at += len(own.iteration)
        assert at == len(shared.iteration)
        assert shared.reconfigurations == sum(own.reconfigurations for own in alone)
        assert len(shared.windows) == sum(len(own.windows) for own in alone)


def test_no_jobs_are_refused_in_one_line():
    with pytest.raises(InputError, match="field jobs: at least one job is needed"):
        together([])


def test_rails_drift_apart_with_the_spread_of_their_passes():
    name = "opus-rails"
    drift = value(name, "drift", "each rail for itself")
    even = run(name, spread=0.0).of("drift")
    wide = run(name, spread=0.05).of("drift")
    assert even[0].ours == 0 < drift < wide[0].ours
    assert value(name, "coupled", "iteration over slowest rail alone") >= 1


def test_turning_all_links_at_once_would_cut_traffic_of_other_groups():
    shares = [row.ours for row in answer_of("opus-rails").of("groups")]
    assert 0 < shares[-1] < 1
