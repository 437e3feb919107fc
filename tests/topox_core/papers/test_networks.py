"""The cards on photonic rails, TopoOpt, TOPO-X and the lecture: what comes out, what does not, and on what it hangs."""

from statistics import fmean

import numpy as np
import pytest

from tests.topox_core.papers.answers import answer_of, run, value
from topox_core.errors import InputError
from topox_core.papers.lecture_technologies import GRID_MS, NEVER_MS, break_even_ms
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import COMPUTE, Rail
from topox_core.rails.jitter import jittered, pass_factors
from topox_core.rails.presets import PRESETS
from topox_core.rails.tenants import together


def test_the_largest_switch_is_of_no_use_inside_a_job():
    assert value("opus-switches", "longer", "Robotic") > 5_000
    assert value("opus-switches", "longer", "Piezo") < 1
    on_demand = [row.ours for row in run("opus-switches", control=0).of("longer")]
    ahead = [row.ours for row in answer_of("opus-switches").of("longer")]
    assert all(a <= d + 1e-9 for a, d in zip(ahead, on_demand, strict=True))


@pytest.mark.long
def test_the_windows_of_figure_3_are_counted_stage_by_stage():
    for series, counts in (("3a", (7, 5)), ("3b", (7, 9, 5))):
        assert tuple(row.ours for row in answer_of("opus-windows").of(series)) == counts
    strict = {row.item: row.ours for row in run("opus-windows", schedule="1f1b").of("count")}
    assert (strict["first stage"], strict["middle stage"], strict["last stage"]) == (95, 129, 65)


def test_the_mean_window_before_a_reduce_scatter_is_not_the_printed_one():
    assert 2_000 < value("opus-window-lengths", "before", "DP ReduceScatter") < 2_800
    even = run("opus-window-lengths", jitter=0.0)
    assert even.of("before")[0].ours == pytest.approx(2_332.3, abs=0.1)


def test_the_share_above_a_millisecond_rests_on_the_host():
    assert value("opus-window-lengths", "share", "simulated") > 75
    assert run("opus-window-lengths", host_ms=0.0).of("share")[0].ours < 75


def test_jitter_keeps_the_mean_and_is_one_draw_a_pass():
    iteration = build(PRESETS["llama3-8b-perlmutter"])
    assert jittered(iteration, 0.0, 3).duration_ms.tolist() == iteration.duration_ms.tolist()
    factors, again = (pass_factors(iteration, 0.1, 3) for _ in range(2))
    assert factors.tolist() == again.tolist()
    assert set(factors[iteration.kind != COMPUTE]) == {1.0}
    one = (iteration.kind == COMPUTE) & (iteration.rank == 0) & (iteration.microbatch == 0)
    for work in range(2):
        assert len(set(factors[one & (iteration.work == work)])) == 1
    drawn = np.concatenate([pass_factors(iteration, 0.1, seed) for seed in range(300)])
    logs = np.log(drawn[np.tile(iteration.kind == COMPUTE, 300)])
    assert np.exp(logs).mean() == pytest.approx(1, abs=0.01)
    assert logs.std() == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("spread", [-0.1, 1.5, float("nan")])
def test_a_spread_that_cannot_be_and_no_jobs_are_told_in_one_line(spread):
    with pytest.raises(InputError, match="spread: must be from 0 to 1"):
        pass_factors(build(PRESETS["toy"]), spread, 0)
    with pytest.raises(InputError, match="field jobs: at least one job is needed"):
        together([])


def test_the_printed_savings_depend_on_the_counting_and_the_rival():
    assert run("opus-cost", counting="whole-switches").of("cost")[0].verdict == "differs"
    assert run("opus-cost", rival="rail_only").of("cost")[0].ours == pytest.approx(52.0, abs=0.1)


def test_link_up_of_seconds_costs_more_than_switching_and_provisioning_saves_at_every_delay():
    demand, ahead = (answer_of("opus-provisioning").of(series) for series in ("demand", "ahead"))
    assert all(a.ours < d.ours for a, d in zip(ahead, demand, strict=True))
    slow = run("opus-provisioning", link_up_ms=3_000.0)
    assert next(row.ours for row in slow.of("ahead") if row.item == "100 ms") > 100


# --- constraints, rails, jobs


def test_jobs_side_by_side_run_as_they_do_alone():
    preset = PRESETS["llama3-8b-perlmutter"]
    jobs = [jittered(build(preset), 0.05, 1), build(PRESETS["toy"])]
    for provisioned in (True, False):
        rail = Rail(reconfiguration_ms=25.0, provisioned=provisioned)
        alone = [simulate(job, rail) for job in jobs]
        shared = simulate(together(jobs), rail)
        ends = np.concatenate([own.end_ms for own in alone])
        assert shared.end_ms == pytest.approx(ends, abs=1e-6)
        assert shared.reconfigurations == sum(own.reconfigurations for own in alone)
        assert len(shared.windows) == sum(len(own.windows) for own in alone)


def test_rails_drift_apart_with_the_spread_of_their_passes():
    drift = value("opus-rails", "drift", "each rail for itself")
    even, wide = (run("opus-rails", spread=one).of("drift")[0].ours for one in (0.0, 0.05))
    assert even == 0 < drift < wide
    assert value("opus-rails", "coupled", "iteration over slowest rail alone") >= 1


# --- TopoOpt, TOPO-X and the lecture


def test_the_printed_gradients_are_eight_bytes_a_weight():
    double = {row.item: row for row in run("topox-introduction", bytes=8).of("gradients")}
    assert double["one copy"].ours == pytest.approx(1.4, rel=0.005)
    assert double["sent by each GPU in a ring all-reduce"].verdict == "differs"


def test_how_much_communicates_hangs_on_the_plan_and_the_network():
    name = "topox-introduction"
    shares = [row.ours for row in answer_of(name).of("share")]
    assert min(shares) < 5 and max(shares) > 60
    slower = [row.ours for row in run(name, network=0.1).of("share")]
    assert all(after >= before for before, after in zip(shares, slower, strict=True))


def test_figure_10_compares_averages_over_the_same_speeds():
    name = "topoopt-cost"
    speeds = [row.ours for row in answer_of(name).of("ocs")]
    assert value(name, "ocs", "average") == pytest.approx(fmean(speeds[1:]))
    dearer = run(name, built="topoopt_ocs")
    assert dearer.of("ideal")[0].ours < value(name, "ideal", "average")


@pytest.mark.long
def test_a_repair_takes_back_part_of_what_a_cut_fibre_costs():
    answer = answer_of("topoopt-layouts")
    for cut, mended in zip(answer.of("broken"), answer.of("repaired"), strict=True):
        assert 1 <= mended.ours < cut.ours
    assert all(0.5 < row.ours <= 1 for row in answer.of("bound"))


def test_the_break_even_delay_keeps_the_limit_and_the_next_does_not():
    assert break_even_ms(lambda delay: 10 + delay, 20) == max(d for d in GRID_MS if d <= 10.1)
    assert break_even_ms(lambda delay: 30 + delay, 20) == NEVER_MS
    assert break_even_ms(lambda delay: 5, 20) == GRID_MS[-1]


@pytest.mark.long
def test_a_job_whose_circuits_never_change_takes_any_switch_and_others_a_fast_one():
    name = "lecture-technologies"
    assert value(name, "fixed", "CANDLE Uno") == GRID_MS[-1]
    fixed, packets = (value(name, series, "DLRM, batch 256") for series in ("fixed", "packets"))
    assert fixed <= packets and 0 < packets < 1
    times = [row.ours for row in answer_of(name).of("technology")]
    assert times == sorted(times, reverse=True)
