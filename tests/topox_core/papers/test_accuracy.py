"""How far off predictions are: by kind, against what others measured, printed or simulated."""

import pytest

from topox_core.papers.accuracy import NOT_MODELLED, Comparison, Kind, as_record, kinds
from topox_core.papers.catalogue import shipped_answers
from topox_core.training.measured.validation import BUILT_IN, agreement, predicted


@pytest.fixture(scope="module")
def found():
    return {one.name: one for one in kinds()}


def test_errors_are_shares_of_the_reference_and_the_worst_is_named():
    rows = tuple(Comparison(name, ours, 10.0, "ms") for name, ours in (("a", 11.0), ("b", 8.0)))
    kind = Kind("k", "K", "x", "not fitted", rows)
    assert [one.error for one in rows] == pytest.approx([0.1, -0.2])
    assert kind.share(50) == pytest.approx(0.15) and kind.most == pytest.approx(0.2)
    assert kind.worst is rows[1] and as_record(kind)["worst"] == "b"


@pytest.mark.parametrize("name", BUILT_IN)
def test_measured_iterations_are_as_far_off_as_their_own_page_says(found, name):
    whole = agreement(predicted(BUILT_IN[name]()))
    assert found[name].count == whole.rows
    assert found[name].share(50) == pytest.approx(whole.median)
    assert found[name].most == pytest.approx(whole.worst)


def test_collectives_agree_with_two_simulators_that_nobody_here_wrote(found):
    # LogGOPSim has no reduction to pay for; what it prints of 1 MB has four digits.
    assert found["collectives-loggopsim"].most < 5e-4
    rows = found["collectives-astra-sim"].comparisons
    assert len(rows) == 36
    # There a reduction passes memory three times for each step: 0.56 % of an all-reduce, 1.12 % of a scatter.
    for row in rows:
        assert row.error <= 1e-3
        paid = {"all_reduce": 0.0059, "reduce_scatter": 0.0113}.get(row.subject.split()[0], 0.0053)
        assert row.error >= -paid


def test_iterations_without_a_choice_of_order_agree_and_those_with_one_are_said(found):
    errors = {row.subject: row.error for row in found["samples-astra-sim"].comparisons}
    for name in ("llama3-8b", "llama3-70b", "dlrm-16"):
        assert abs(errors.pop(name)) < 1e-4
    # Fair shares where one message at a time is shorter; lowest number first where what is ready first is.
    assert errors["fsdp"] == pytest.approx(0.018, abs=0.001)
    assert found["samples-astra-sim"].worst.subject == "patience"


def test_cards_count_what_was_simulated_and_printed_once(found):
    rows = [row for kept in shipped_answers().values() for row in kept.answer.rows]
    counted = [row for row in rows if row.counted_as in ("match", "trend", "differs")]
    assert found["cards"].count == sum(row.theirs is not None for row in counted)
    assert all(NOT_MODELLED.values())
