"""The last answers of cards are kept, and another run of the same version must bring the same rows."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.topox_core.papers.answers import answer_of
from topox_core.cli.main import main
from topox_core.library.run_library import RunLibrary
from topox_core.papers.catalogue import CARDS, CardStep, measured, run_cards
from topox_core.papers.kept_answers import keep, kept

QUICK = ("topoopt-cost", "opus-cost", "tdm-traffic")


def test_what_is_kept_is_found_with_when_and_by_which_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, card = RunLibrary.open(tmp_path / "runs.sqlite"), CARDS["tdm-traffic"]
    first = answer_of(card.name)
    other = replace(first, rows=(replace(first.rows[0], ours=0.0), *first.rows[1:]))
    assert keep(library, card, first, 1.5)
    assert keep(library, card, first, 2.0)  # the same rows again
    assert not keep(library, card, other, 1.0)
    (found,) = kept(library, CARDS.values()).values()
    assert (found.answer, found.wall_s, found.shipped) == (first, 1.5, False)
    with monkeypatch.context() as later:
        later.setattr("topox_core.papers.kept_answers.code_version", lambda: "another")
        assert not kept(library, [card])
        assert keep(library, card, other, -60.0)  # newer by a minute
        assert kept(library, [card])[card.name].answer == other
    assert kept(library, [card])[card.name].answer == first


def test_cards_run_one_after_the_other_until_they_are_stopped() -> None:
    steps: list[CardStep] = []
    run_cards(QUICK, lambda: any(step.answer for step in steps), steps.append)
    assert [step.card for step in steps if step.answer is not None] == [QUICK[0]]
    now = measured(QUICK, steps, 1.0)
    assert (now.done, now.total, now.share) == (1, 3, pytest.approx(1 / 3))


def test_one_command_runs_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in set(CARDS) - set(QUICK):
        monkeypatch.delitem(CARDS, name)
    library = tmp_path / "runs.sqlite"
    command = ["gallery", "--all", "--json", "--library", str(library)]
    assert main(command) == 0
    record = json.loads(capsys.readouterr().out)
    assert sum(record["verdicts"].values()) == sum(CARDS[name].row_count for name in QUICK)
    assert {one["card"] for one in record["cards"]} == set(QUICK)
    assert main(command) == 0  # the same rows again
    assert json.loads(capsys.readouterr().out)["other_rows_than_before"] == []
    assert RunLibrary.open(library).count() == len(QUICK)
    assert main(["gallery", "--all", "--card", "opus-cost"]) == 2
