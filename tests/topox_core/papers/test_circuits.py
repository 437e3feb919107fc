"""The cards on TopoOpt, TOPO-X and the lecture: on what their numbers hang."""

from __future__ import annotations

from statistics import fmean

import pytest

from tests.topox_core.papers.answers import answer_of, run, value
from topox_core.papers.catalogue import card_named
from topox_core.papers.lecture_technologies import GRID_MS, NEVER_MS, break_even_ms
from topox_core.papers.table_iii_runs import TABLE
from topox_core.papers.topox_delay import planned_ms


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
    assert len([one for one in slower if one > 60]) > len([one for one in shares if one > 60])


@pytest.mark.long
def test_at_10_ms_most_rows_fall_back_to_fixed_circuits():
    gains = {row.item: row for row in answer_of("topox-delay").of("gain_10")}
    assert [item for item, row in gains.items() if row.ours > 1] == ["5", "10"]
    plans = {row.item: row for row in run("topox-delay", reported="plan").of("gain_10")}
    assert all(plans[item].ours <= row.ours for item, row in gains.items())
    assert plans["14"].ours < 0.5


def test_a_longer_delay_never_shortens_the_plan():
    settings = card_named("topox-delay").settings()
    times = [planned_ms(TABLE[5], delay, settings) for delay in (0.0, 1.0, 10.0)]
    assert times == sorted(times)


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
    assert break_even_ms(lambda delay: 10 + delay, 20) == max(d for d in GRID_MS if d <= 10.4)
    assert break_even_ms(lambda delay: 30 + delay, 20) == NEVER_MS
    assert break_even_ms(lambda delay: 5, 20) == GRID_MS[-1]


@pytest.mark.long
def test_a_job_whose_circuits_never_change_takes_any_switch_and_others_a_fast_one():
    name = "lecture-technologies"
    assert value(name, "fixed", "CANDLE Uno") == GRID_MS[-1]
    packets = value(name, "packets", "DLRM, batch 256")
    assert value(name, "fixed", "DLRM, batch 256") <= packets and 0 < packets < 1
    times = [row.ours for row in answer_of(name).of("technology")]
    assert times == sorted(times, reverse=True)
