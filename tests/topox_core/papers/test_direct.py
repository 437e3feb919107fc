"""What a run of a card gives, and that documents and claims say so; each test names the command that renews them."""

import re
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from benchmarks import table_iii_page, topoopt_page
from benchmarks.card_tables import DIRECT, HEAD, section
from benchmarks.document_parts import part_of, stale, written
from tests.real_inputs import ROOT
from tests.refusal import refusal
from tests.topox_core.papers.answers import answer_of, run, value
from topox_core.cli.main import main
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.library.run_library import RunLibrary
from topox_core.papers.card import CANCELLED, UNFINISHED, Card, Choice
from topox_core.papers.cards.opus_windows import together
from topox_core.papers.cards.topoopt_circuits import GRID_MS, NEVER_MS, break_even_ms
from topox_core.papers.catalogue import (
    CARDS,
    PAPERS,
    CardStep,
    answer_words,
    card_named,
    complete_answers,
    keep,
    kept,
    measured,
    run_cards,
    shipped_answers,
)
from topox_core.papers.rows import Answer, same_rows
from topox_core.papers.table_iii_runs import TABLE
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import COMPUTE, Rail
from topox_core.rails.measured import jittered, pass_factors
from topox_core.rails.presets import PRESETS

# Less than half a second each; those of one paper at least once.
QUICK = (
    *("topox-introduction", "topoopt-cost", "opus-window-lengths", "opus-switches", "opus-cost"),
    *("opus-provisioning", "opus-rails", "tdm-training-times", "tdm-traffic", "swot-inside"),
)
DOCUMENT = (ROOT / "docs" / "published-results.md").read_text(encoding="utf-8")
GALLERY = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


def test_a_stopped_card_keeps_its_rows_and_says_so():
    card, seen = card_named("opus-cost"), []
    answer = card.run(None, lambda: len(seen) >= 2, seen.append)
    assert (len(answer.rows), answer.lost, answer.complete) == (2, (CANCELLED,), False)
    assert (answer.finding, answer.remarks) == (UNFINISHED, ())


def test_a_card_offers_price_sets_that_there_are_and_claims_what_its_table_prints():
    offered = {value for value, _ in card_named("opus-cost").choices[1].options}
    assert offered == set(PRICE_SETS) - {"opus-v3-gb200"}
    largest, mean, time = card_named("topox-table3").claims
    speed_ups = [row.topoopt_ms / row.topox_ms for row in TABLE]
    assert largest.printed == pytest.approx(max(speed_ups), abs=0.005)
    assert mean.printed == pytest.approx(fmean(speed_ups), abs=0.005)
    assert time.printed == pytest.approx(fmean(row.topoopt_ms for row in TABLE), abs=0.005)
    assert card_named("topox-delay").claims[0].printed == TABLE[4].topox_ms


@pytest.mark.parametrize(
    "card",
    [
        pytest.param(card, id=card.name, marks=[pytest.mark.long] * (card.name not in QUICK))
        for card in DIRECT
    ],
)
def test_document_and_claims_say_what_a_card_gives(card: Card):
    """If not: python -m benchmarks.card_tables --document docs/published-results.md."""
    answer = answer_of(card.name)
    assert answer.complete and len(answer.rows) == card.row_count
    assert all(row.reason and row.ours == row.ours for row in answer.rows)
    places = {f"{row.series}/{row.item}" for row in answer.rows} | {
        row.series for row in answer.rows
    }
    assert set(card.rows) <= places
    for series in card.series:  # one chart, one axis
        assert len({row.unit for row in answer.of(series)}) == 1
    assert section(card, answer) in DOCUMENT
    assert shipped_is(answer)


def shipped_is(answer: Answer) -> bool:
    """Whether the release comes with this answer; if not: python tools/make_answers.py cards."""
    shipped = shipped_answers()[answer.card].answer
    assert same_rows(shipped.rows, answer.rows)
    return (shipped.finding, shipped.settings) == (answer.finding, answer.settings)


def test_every_card_comes_with_an_answer() -> None:
    assert list(shipped_answers()) == list(CARDS)
    for name, shipped in shipped_answers().items():
        assert shipped.answer.complete and len(shipped.answer.rows) == CARDS[name].row_count


def test_the_readme_leads_to_the_sources_that_the_gallery_names() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = [PAPERS[name] for name in ("TOPO-X", "TopoOpt", "Opus")]
    assert all(f"]({address})" in readme for _, address in named)
    assert {card.paper for card in CARDS.values()} == set(PAPERS)


def test_the_document_has_these_cards_and_no_other():
    titles = re.findall(r"^## (.*)$", DOCUMENT, re.MULTILINE)
    assert DOCUMENT.startswith(HEAD) and titles == [card.title for card in DIRECT]


@pytest.mark.long
@pytest.mark.parametrize(
    ("card", "choice"),
    [
        pytest.param(card, choice, id=f"{card.name}-{choice.key}")
        for card in DIRECT
        for choice in card.choices
    ],
)
def test_another_position_of_every_switch_gives_rows(card: Card, choice: Choice):
    other = next(value for value, _ in choice.options if value != choice.default)
    answer = run(card.name, **{choice.key: other})
    assert answer.complete and answer.rows and answer.finding


# --- cards that take long

TEXT = "one\n<!-- a -->\nold\n<!-- end of a -->\ntwo\n"


def test_the_document_opens_with_the_count_of_claims_by_kind() -> None:
    counted = (
        re.sub("<.*?>", "", answer_words(complete_answers({})))
        .partition(" TOPO")[0]
        .replace("\u00a0", " ")
    )
    assert " ".join(GALLERY.split("```")[0].split()).count(counted) == 1


def test_a_part_is_replaced_and_found_stale() -> None:
    assert part_of(TEXT, "a") == "old"
    renewed = written(TEXT, "a", "new\nlines")
    assert renewed == "one\n<!-- a -->\nnew\nlines\n<!-- end of a -->\ntwo\n"
    assert stale(renewed, {"a": "new\nlines"}) == [] and stale(TEXT, {"a": "new"}) == ["a"]
    with pytest.raises(SystemExit, match="no comment <!-- b -->"):
        part_of(TEXT, "b")


def test_every_part_has_its_place_and_content() -> None:
    for name in (*topoopt_page.NAMES, topoopt_page.OTHER):
        assert part_of(GALLERY, name).strip(), name


@pytest.mark.long
@pytest.mark.parametrize("name", topoopt_page.NAMES)
def test_document_and_claims_say_what_a_card_of_topoopt_gives(name: str) -> None:
    """If not: python -m benchmarks.topoopt_page --document docs/gallery.md."""
    answer = run(name)
    assert part_of(GALLERY, name) == topoopt_page.card_part(name, lambda *_: answer)
    assert shipped_is(answer)


@pytest.mark.long
def test_other_readings_of_topoopt_are_what_a_run_gives() -> None:
    """If they are not: python -m benchmarks.topoopt_page --document docs/gallery.md."""
    text = topoopt_page.other_part(lambda name, switches: run(name, **switches))
    assert part_of(GALLERY, topoopt_page.OTHER) == text


@pytest.mark.long
def test_the_tables_of_table_iii_are_what_a_run_gives() -> None:
    """If they are not: python -m benchmarks.table_iii_page --document docs/gallery.md --readings."""
    rows = {
        clock: {(int(row.item), row.series): row for row in run("topox-table3", **switches).rows}
        for clock, switches in table_iii_page.CLOCKS.items()
    }
    parts = {
        "TopoOpt column": table_iii_page.topoopt_part(rows),
        "all-reduce off the network": table_iii_page.off_part(rows),
        "all-reduce on the network": table_iii_page.on_part(rows),
        "constraints of the plan": table_iii_page.constraints_part(),
        "readings of the plan": table_iii_page.readings_part(),
        "readings of the TopoOpt column": table_iii_page.topoopt_readings_part(),
    }
    assert stale(GALLERY, {f"table III, {name}": part for name, part in parts.items()}) == []


QUICK_CARDS = ("topoopt-cost", "opus-cost", "tdm-traffic")


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
        later.setattr("topox_core.papers.catalogue.code_version", lambda: "another")
        assert not kept(library, [card])
        assert keep(library, card, other, -60.0)  # newer by a minute
        assert kept(library, [card])[card.name].answer == other
    assert kept(library, [card])[card.name].answer == first


def test_cards_run_one_after_the_other_until_they_are_stopped() -> None:
    steps: list[CardStep] = []
    run_cards(QUICK_CARDS, lambda: any(step.answer for step in steps), steps.append)
    assert [step.card for step in steps if step.answer is not None] == [QUICK_CARDS[0]]
    now = measured(QUICK_CARDS, steps, 1.0)
    assert (now.done, now.total, now.share) == (1, 3, pytest.approx(1 / 3))


def test_one_command_runs_all(ask: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in set(CARDS) - set(QUICK_CARDS):
        monkeypatch.delitem(CARDS, name)
    library = tmp_path / "runs.sqlite"
    command = ("gallery", "--all", "--library", library)
    record = ask(*command)
    assert sum(record["verdicts"].values()) == sum(CARDS[name].row_count for name in QUICK_CARDS)
    assert {one["card"] for one in record["cards"]} == set(QUICK_CARDS)
    assert ask(*command)["other_rows_than_before"] == []  # the same rows again
    assert RunLibrary.open(library).count() == len(QUICK_CARDS)
    assert main(["gallery", "--all", "--card", "opus-cost"]) == 2


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
    assert "spread: must be from 0 to 1" in refusal(pass_factors, build(PRESETS["toy"]), spread, 0)
    assert "field jobs: at least one job is needed" in refusal(together, [])


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


def test_the_break_even_delay_keeps_the_limit_and_the_next_does_not():
    assert break_even_ms(lambda delay: 10 + delay, 20) == max(d for d in GRID_MS if d <= 10.1)
    assert break_even_ms(lambda delay: 30 + delay, 20) == NEVER_MS
    assert break_even_ms(lambda delay: 5, 20) == GRID_MS[-1]
