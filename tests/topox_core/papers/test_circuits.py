"""The cards on TopoOpt, TOPO-X and the lecture that run in a moment: what comes out, and what does not."""

from __future__ import annotations

from statistics import fmean

import pytest

from tests.topox_core.papers.answers import answer_of, value, verdict
from topox_core.papers.catalogue import card_named
from topox_core.papers.lecture_technologies import GRID_MS, NEVER_MS, break_even_ms
from topox_core.papers.table_iii_runs import TABLE
from topox_core.papers.topoopt_jobs import lowered
from topox_core.papers.topox_delay import planned_ms
from topox_core.runs.stopping import never
from topox_core.topology.finder import find_layout
from topox_core.topology.traffic import demand_of


def run(name: str, **switches: object):
    return card_named(name).run(switches, never, [].append)


# --- TOPO-X, section I and the delay


def test_the_printed_gradients_are_eight_bytes_a_weight():
    name = "topox-introduction"
    rows = {row.item: row for row in answer_of(name).of("gradients")}
    assert rows["sent by each GPU in a ring all-reduce"].verdict == "match"
    assert rows["one copy"].verdict == "differs"
    double = {row.item: row for row in run(name, bytes=8).of("gradients")}
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
def test_a_millisecond_a_change_explains_most_of_the_printed_times():
    rows = answer_of("topox-delay").of("at_1")
    assert [row.theirs for row in rows] == [row.topox_ms for row in TABLE[4:]]
    assert all(row.deviation is not None and abs(row.deviation) < 0.15 for row in rows)
    for number in ("5", "6", "7", "8", "9"):
        assert verdict("topox-delay", "at_1", number) == "match"
    assert fmean(abs(row.deviation or 0) for row in rows) < 0.5 * fmean(
        abs(row.deviation or 0) for row in answer_of("topox-delay").of("at_0")
    )


@pytest.mark.long
def test_at_10_ms_most_rows_fall_back_to_fixed_circuits():
    gains = {row.item: row for row in answer_of("topox-delay").of("gain_10")}
    assert [item for item, row in gains.items() if row.ours > 1] == ["5", "10"]
    assert [row.verdict for row in gains.values()].count("differs") == 5
    plans = {row.item: row for row in run("topox-delay", reported="plan").of("gain_10")}
    assert all(plans[item].ours <= row.ours for item, row in gains.items())
    assert plans["14"].ours < 0.5


def test_a_longer_delay_never_shortens_the_plan():
    settings = card_named("topox-delay").settings()
    for row in TABLE[4:6]:
        times = [planned_ms(row, delay, settings) for delay in (0.0, 1.0, 10.0)]
        assert times == sorted(times)


# --- TopoOpt


def test_figure_10_compares_averages_over_the_same_speeds():
    name = "topoopt-cost"
    assert value(name, "ocs", "average") == pytest.approx(
        fmean(row.ours for row in answer_of(name).of("ocs")[1:])
    )
    assert verdict(name, "ideal", "average") == "differs"
    dearer = run(name, built="topoopt_ocs")
    assert dearer.of("ideal")[0].ours < value(name, "ideal", "average")


def test_the_diameter_stays_below_its_bound():
    rows = answer_of("topoopt-layouts").of("bound")
    assert all(0.5 < row.ours <= 1 and row.verdict == "trend" for row in rows)


def test_a_circuit_is_lent_only_where_there_is_one_for_model_parallel_traffic():
    lent = {row.item: row for row in answer_of("topoopt-layouts").of("lent")}
    degrees = {
        words: find_layout(demand_of(lowered(model, 16), 16), 4).degree_model_parallel
        for model, words in (("dlrm-batch/2048/8", "DLRM, batch 2048"), ("candle-16", "CANDLE Uno"))
    }
    assert degrees == {"DLRM, batch 2048": 1, "CANDLE Uno": 0}
    assert (
        lent["DLRM, batch 2048"].verdict == "trend" and "lent by" in lent["DLRM, batch 2048"].reason
    )
    assert lent["CANDLE Uno"].verdict == "differs"


def test_a_repair_takes_back_part_of_what_a_cut_fibre_costs():
    answer = answer_of("topoopt-layouts")
    for cut, mended in zip(answer.of("broken"), answer.of("repaired"), strict=True):
        assert 1 <= mended.ours < cut.ours


# --- the lecture


def test_the_break_even_delay_keeps_the_limit_and_the_next_does_not():
    assert break_even_ms(lambda delay: 10 + delay, 20) == max(d for d in GRID_MS if d <= 10.4)
    assert break_even_ms(lambda delay: 30 + delay, 20) == NEVER_MS
    assert break_even_ms(lambda delay: 5, 20) == GRID_MS[-1]


def test_a_job_whose_circuits_never_change_takes_any_switch():
    name = "lecture-technologies"
    assert value(name, "fixed", "CANDLE Uno") == GRID_MS[-1]
    assert 0 < value(name, "packets", "DLRM, batch 256") < 1
    assert value(name, "packets", "DLRM, batch 256") >= value(name, "fixed", "DLRM, batch 256")


def test_a_slower_technology_takes_longer():
    rows = answer_of("lecture-technologies").of("technology")
    assert [row.ours for row in rows] == sorted((row.ours for row in rows), reverse=True)
    assert rows[0].item == "Patch panel" and rows[0].ours > 1_000


def test_the_product_of_today_is_half_again_slower_than_the_lecture_says():
    assert verdict("lecture-technologies", "latency", "3D MEMS") == "differs"
    assert verdict("lecture-technologies", "orders", "Patch panel over MEMS") == "match"
    assert value("lecture-technologies", "kinds", "transceivers") == 6
