"""The cards on time division: what adds up, what holds, and where it turns over."""

from __future__ import annotations

import pytest

from tests.topox_core.papers.answers import answer_of, value, verdict
from topox_core.papers.catalogue import card_named
from topox_core.runs.stopping import never


def run(name: str, **switches: object):
    return card_named(name).run(switches, never, [].append)


def test_the_sizes_of_table_iii_are_those_of_llama_3_2():
    rows = answer_of("tdm-training-times").of("size")
    assert [row.theirs for row in rows] == [2.46, 6.42, 21.2, 177.6]
    assert [row.verdict for row in rows] == ["match"] * 4
    as_named = {row.item: row for row in run("tdm-training-times", third="8B").of("size")}
    assert as_named["8B"].verdict == "trend"  # 16.06 GB: the row is not the 8B model


def test_the_training_times_are_equation_8():
    """8 x 8192 x 1.23e9 / (26e12 x 0.4) s on one GPU."""
    name = "tdm-training-times"
    assert value(name, "train", "1B") == pytest.approx(8 * 8192 * 1.23e9 / (26e12 * 0.4))
    literal = {row.item: row.ours for row in run(name, unit="gpu").of("train")}
    assert literal["90B"] == pytest.approx(559.6, abs=0.05)
    assert literal["90B"] == pytest.approx(64 * value(name, "train", "90B"))
    longer = run(name, context=131_072).of("train")[0].ours
    assert longer == pytest.approx(16 * value(name, "train", "1B"))


def test_the_ports_add_up():
    rows = [*answer_of("tdm-training-times").of("ports")]
    assert all(row.ours == row.theirs for row in rows)
    assert value("tdm-training-times", "fit", "draws that fit") == 100


def test_the_order_of_traffic_turns_over_with_the_context():
    name = "tdm-traffic"
    for series in ("ps_over_ring", "ring_over_all"):
        assert {row.verdict for row in answer_of(name).of(series)} == {"trend"}
    longer = run(name, context=32_768)
    assert {row.verdict for row in longer.of("ring_over_all")} == {"differs"}
    for row in answer_of(name).of("turn"):
        assert 10_000 < row.ours < 32_768


def test_eight_units_on_eight_pods_by_hand():
    """7 pods push and pull M; a ring has 8 arcs; 56 ordered pairs."""
    name = "tdm-traffic"
    assert value(name, "ps_over_ring", "8B") == pytest.approx(2 * 7 / 8)
    exchange = 8_192 * 4_096 * 8 * 40 * 4 / 8 * 8 / 1e9
    assert value(name, "ring_over_all", "8B") == pytest.approx(8 * 678.4 / (56 * exchange))
    assert [row.ours for row in answer_of(name).of("links")] == [56, 8, 7]


def test_with_what_a_ring_really_sends_the_first_step_of_the_order_is_level():
    rows = run("tdm-traffic", ring=1).of("ps_over_ring")
    assert {(round(row.ours, 9), row.verdict) for row in rows} == {(1.0, "differs")}


def test_time_division_gains_in_the_middle_and_nothing_at_the_ends():
    name = "tdm-study"
    assert verdict(name, "jobs", "32 jobs") == "differs"
    assert verdict(name, "jobs", "256 jobs") == "trend"
    assert verdict(name, "context", "128k tokens") == "differs"
    assert value(name, "jobs", "256 jobs") == value(name, "context", "8k tokens")
    assert verdict(name, "dark", "256 jobs") == "differs"


def test_as_equation_8_is_printed_no_grouping_matters():
    literal = run("tdm-study", eq8="gpu", seeds=3)
    assert all(row.ours < 5 for row in literal.of("jobs"))
