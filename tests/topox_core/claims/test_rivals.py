"""Who is right: sides, leads, plans of longer delays, claims judged by what they count, and the six studies run in turn."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.document_parts import part_of
from benchmarks.who_is_right_page import ALL, claims_part, job_part
from topox_core.claims.cells import (
    JOBS,
    Cell,
    cells_of,
    known_results,
    rivals_run,
    shipped_results,
    study_of_job,
)
from topox_core.claims.claims import (
    CLAIMS,
    argument,
    crossings,
    measured_words,
    tried,
    verdict_words,
)
from topox_core.library.run_library import RunLibrary
from topox_core.runs.run import finish
from topox_core.studies.point import run_cell
from topox_core.studies.study_run import (
    PointRow,
    StudyResult,
    StudyRun,
    chains,
    plan_of,
    with_harder_plans,
)


def cell(delay_ms: float = 1.0, unchanged: tuple[str, ...] = (), **times: float) -> Cell:
    return Cell("dense", 2, 100.0, delay_ms, times, {}, frozenset(unchanged))


def claim(name: str):
    return next(one for one in CLAIMS if one.name == name)


def result_of(
    times: dict[tuple[str, float], float], changes: float = 3.0, to_come: bool = False
) -> StudyResult:
    """A result that has only some points of the job ``dense`` on two ports of 100 Gbit/s; the others failed or are to come."""
    study, rows = study_of_job("dense"), []
    for number, point in enumerate(study.points):
        value = study.values(point)
        at = (str(value["fabric"]), float(value["cluster.reconfiguration_ms"]))
        known = at in times and (value["cluster.degree"], value["cluster.port_gbps"]) == (2, 100.0)
        measures = {"iteration_ms": times.get(at), "changes": changes, "dollars": 10.0}
        none = None if to_come else {}
        status = "" if known or to_come else "failed"
        rows.append(PointRow(number, point, measures=measures if known else none, status=status))
    return StudyResult(study, with_harder_plans(rows, chains(study)))


@pytest.mark.parametrize(
    ("times", "side"),
    [
        ({"static": 100.0, "scheduled": 97.0}, "changing"),
        ({"static": 100.0, "scheduled": 99.0}, "changing"),
        ({"static": 100.0, "scheduled": 99.6}, "even"),
        ({"static": 100.0, "fat_tree": 90.0, "scheduled": 97.0}, "fixed"),
        ({"static": 100.0}, "even"),
        ({}, ""),
    ],
)
def test_a_side_wins_by_more_than_what_is_called_equal(times: dict[str, float], side: str) -> None:
    assert cell(**times).side == side


def test_the_fastest_of_equal_fabrics_is_the_simplest() -> None:
    even, won = (cell(static=100.0, scheduled=ms) for ms in (99.6, 90.0))
    assert (even.fastest, won.fastest, won.lead) == ("static", "scheduled", pytest.approx(0.1))


def test_a_controller_that_changes_nothing_is_a_fixed_network() -> None:
    one = cell(static=100.0, scheduled=80.0, reactive=200.0, unchanged=("scheduled",))
    assert (one.side, one.lead) == ("fixed", pytest.approx(0.6))


def test_a_plan_for_a_longer_delay_is_carried_out_at_the_shorter_ones() -> None:
    times = {("scheduled", 10.0): 50.0, ("scheduled", 1.0): 60.0, ("scheduled", 0.1): 40.0}
    found = cells_of({"dense": result_of(times)})
    planned = {one.delay_ms: one.times_ms["scheduled"] for one in found}
    assert planned == {0.1: 40.0, 1.0: 50.0, 10.0: 50.0}


def test_a_plan_may_stay_as_the_circuits_that_are_fixed_from_the_task_graph() -> None:
    (one,) = cells_of({"dense": result_of({("scheduled", 1.0): 50.0, ("static_graph", 1.0): 45.0})})
    assert one.times_ms["scheduled"] == 45.0
    assert (one.unchanged, one.side) == ({"scheduled"}, "even")
    (one,) = cells_of({"dense": result_of({("scheduled", 1.0): 50.0}, changes=0.0)})
    assert one.unchanged == {"scheduled"}


def test_changing_circuits_win_up_to_a_delay() -> None:
    times = ((0.1, 80.0), (1.0, 90.0), (10.0, 100.0))
    cells = [cell(delay, static=100.0, scheduled=ms) for delay, ms in times]
    assert crossings(cells, "dense") == ((2, 100.0, 1.0),)
    assert "up to a delay of 1 ms" in argument(cells)
    assert crossings([cell(static=50.0, scheduled=80.0)], "dense") == ((2, 100.0, None),)
    assert argument(cells).startswith(
        "Of 1\u00a0claim that can be judged 1 holds, none holds in part and none fails; 9 cannot"
    )
    assert argument([]) == "Nothing is computed yet."


def test_words_are_of_complete_cells_alone_and_ties_are_ties() -> None:
    times = {("static", 1.0): 50.0, ("scheduled", 1.0): 40.0}
    (one,) = cells_of({"dense": result_of(times, to_come=True)})
    assert (one.complete, one.side) == (False, "")
    assert argument([one], complete=False) == "Nothing is computed yet."
    assert tried(claim("planned-over-fixed"), [one]).trials == 0
    even = [cell(k + 1.0, static=100.0) for k in range(9)]
    assert argument([*even, one], complete=False).replace("\u00a0", " ") == (
        "Changing circuits inside an iteration is faster in none of 9 cells so far; fixed networks are faster in none; 9 are even."
    )


def at_one_and(beyond_ms: float, at_one_ms: float = 100.0) -> list[Cell]:
    """Circuits re-evaluated at a microsecond and at ten, beside fixed ones of 100 ms."""
    return [
        cell(1e-3, static=100.0, reevaluated=at_one_ms),
        cell(1e-2, static=100.0, reevaluated=beyond_ms),
    ]


def provisioned(slow_ms: float) -> list[Cell]:
    return [cell(1e-5, provisioned=100.0), cell(10.0, provisioned=slow_ms)]


def experts(gbps: float, regional_ms: float) -> list[Cell]:
    """A mixture of experts whose regional circuits cost two thirds of a fat-tree that takes 100 ms."""
    times, dollars = (
        {"fat_tree": 100.0, "regional": regional_ms},
        {"fat_tree": 3.0, "regional": 2.0},
    )
    return [Cell("experts", 2, gbps, 1.0, times, dollars)]


def beside(fabric: str, rival: str, ms: float) -> list[Cell]:
    return [cell(**{rival: 100.0, fabric: ms})]


@pytest.mark.parametrize(
    ("name", "true", "false"),
    [
        (
            "delay-precludes",
            [cell(static_graph=100.0, scheduled=100.0, unchanged=("scheduled",), reactive=110.0)],
            [
                cell(static_graph=100.0, scheduled=90.0),
                cell(static_graph=100.0, scheduled=100.0),
                cell(static_graph=100.0, scheduled=100.4),
                cell(static_graph=100.0, scheduled=100.0, unchanged=("scheduled",)),
            ],
        ),
        (
            "graph-over-matrix",
            beside("static_graph", "static", 99.0),
            [*beside("static_graph", "static", 99.6), *beside("static_graph", "static", 110.0)],
        ),
        (
            "planned-over-fixed",
            beside("scheduled", "static", 99.0),
            [
                *beside("scheduled", "static", 99.6),
                *beside("scheduled", "static", 110.0),
                cell(static=100.0, scheduled=80.0, unchanged=("scheduled",)),
            ],
        ),
        ("one-shot", at_one_and(110.0), at_one_and(90.0)),
        ("one-shot", at_one_and(101.0, 90.0), at_one_and(100.0)),
        ("one-shot", at_one_and(101.0, 100.4), at_one_and(100.4)),
        ("one-shot", at_one_and(110.0), at_one_and(110.0, 101.0)),
        ("windows-hide", provisioned(103.0), provisioned(104.0)),
        ("windows-hide", provisioned(100.0), provisioned(200.0)),
        (
            "phases-over-demand",
            beside("phased", "reactive", 99.0),
            [*beside("phased", "reactive", 99.6), *beside("phased", "reactive", 110.0)],
        ),
        (
            "inside-collective",
            beside("in_collective", "static", 99.0),
            [
                *beside("in_collective", "static", 99.6),
                *beside("in_collective", "static", 110.0),
                cell(static=100.0, in_collective=80.0, unchanged=("in_collective",)),
            ],
        ),
        ("regional-100", experts(100.0, 138.0), experts(100.0, 140.0)),
        ("regional-400", experts(400.0, 87.0), experts(400.0, 88.0)),
    ],
)
def test_a_claim_is_tried_by_its_own_sentence_in_both_directions(
    name: str, true: Sequence[Cell], false: Sequence[Cell]
) -> None:
    """What is even is among what does not support a claim that somebody is faster."""
    assert tried(claim(name), true).share == 1
    assert tried(claim(name), false).share == 0


def test_what_cannot_fail_and_what_was_built_from_an_abstract_has_no_verdict_and_no_tick() -> None:
    tests = {one.name for one in CLAIMS if not (one.identity or one.abstract)}
    assert tests == {"planned-over-fixed", "one-shot", "windows-hide"}
    for name, words in (
        (
            "planned-hides-delay",
            "true by construction: fixed circuits are among the candidates of a plan; 100 % of 1 are cells in which ",
        ),
        (
            "inside-collective",
            "not judged: the paper's setting is not public; on ours true of 100 % of 1 cell",
        ),
    ):
        fabric = claim(name).needs[0]
        one = tried(claim(name), beside(fabric, "static", 50.0))
        assert (one.share, one.verdict) == (1.0, "not printed")
        assert verdict_words(one).replace("\u00a0", " ").startswith(words)


def test_a_share_that_nobody_would_measure_is_said_to_be_nothing() -> None:
    one = tried(claim("phases-over-demand"), beside("phased", "reactive", 50.0))
    tiny = replace(one, middle=7.86e-8, largest=0.968)
    assert measured_words(tiny).replace("\u00a0", " ") == "nothing at the median, 96.8 % at most"


OPEN = replace(claim("planned-hides-delay"), identity="")


@pytest.mark.parametrize(
    ("true", "verdict"), [(10, "match"), (9, "match"), (8, "trend"), (5, "trend"), (4, "differs")]
)
def test_a_claim_holds_by_the_share_of_cells_it_is_true_of(true: int, verdict: str) -> None:
    cells = [cell(1.0, static=100.0, scheduled=90.0 if k < true else 110.0) for k in range(10)]
    one = tried(OPEN, cells)
    assert (one.trials, one.share, one.verdict) == (10, true / 10, verdict)
    assert one.by_job == {"dense": (true, 10)}
    for other in CLAIMS:  # what did not run is not tried
        assert tried(other, [cell(fat_tree=1.0)]).share is None


def test_every_decade_of_the_delay_weighs_alike_and_the_other_share_is_told() -> None:
    """Nine delays below a microsecond at which the claim is true, one of a millisecond at which it is not."""
    true = [cell(1e-4 * (1 + k / 2), static=100.0, scheduled=90.0) for k in range(9)]
    one = tried(OPEN, [*true, cell(1.0, static=100.0, scheduled=110.0)])
    assert (one.share, one.of_all, one.verdict) == (0.5, 0.9, "trend")
    assert verdict_words(one).replace("\u00a0", " ") == (
        "≈ holds in part: true of 50 % of 10 cells, 0 % to 100 % by decade of the delay, 90 % with all weighed alike"
    )
    even = tried(OPEN, [true[0], cell(1.0, static=100.0, scheduled=110.0)])
    assert "weighed alike" not in verdict_words(even)


def test_iterations_a_dollar_count_price_and_time() -> None:
    found = tried(claim("regional-100"), experts(100.0, 80.0))
    assert found.middle == pytest.approx(100 / 80 * 3 / 2)


# -- the studies, one after the other ---------------------------------------------------------------

DOCUMENT = (Path(__file__).parents[3] / "docs" / "who-is-right.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("job", JOBS)
def test_the_document_says_what_comes_with_the_release(job: str) -> None:
    """If not: python -m benchmarks.who_is_right_page --document docs/who-is-right.md."""
    assert part_of(DOCUMENT, job) == job_part(cells_of(shipped_results()), job)


def test_the_claims_of_the_document_are_those_of_the_release() -> None:
    assert part_of(DOCUMENT, ALL) == claims_part(cells_of(shipped_results()))


def same(row: PointRow, of_release: PointRow) -> bool:
    other = {name: value and pytest.approx(value) for name, value in of_release.measures.items()}
    return row.status == of_release.status and dict(row.measures) == other


@pytest.mark.parametrize("number", [0, 137, 359])
def test_a_point_that_comes_with_the_release_is_what_it_gives(number: int) -> None:
    """If not: python tools/make_answers.py claims."""
    plan = plan_of(study_of_job("serving"))
    one = run_cell(plan.job, plan.cells[number])
    assert same(one, shipped_results()["serving"].rows[number])


@pytest.mark.long
def test_a_cancelled_run_keeps_what_it_has(tmp_path: Path) -> None:
    library = RunLibrary.open(tmp_path / "runs.sqlite")
    run = rivals_run(library, 1, ("serving", "pipeline"))
    while run.running and not run.progress.done:
        run.poll()
    run.cancel()
    done = sum(one.done for one in run.result().values())
    assert not run.running and done > 0
    assert sum(one.done for one in known_results(library).values()) >= done


@pytest.mark.long
def test_its_points_are_those_of_the_study_and_none_is_computed_twice(
    tmp_path: Path, ask: Any
) -> None:
    path = tmp_path / "runs.sqlite"
    library = RunLibrary.open(path)
    alone = finish(StudyRun(plan_of(study_of_job("serving")), library, 2))
    with ThreadPoolExecutor(1) as nobody:  # shut down here: it takes no call
        pass
    assert finish(rivals_run(library, nobody, ("serving",)))["serving"].rows == alone.rows
    shipped = shipped_results()["serving"].rows
    assert all(map(same, alone.rows, shipped))
    given = ("study", "rivals", "--jobs", "serving", "--library", path)
    assert len(ask(*given)["cells"]) == 36


@pytest.mark.long
def test_the_document_is_what_a_run_gives() -> None:
    """If it is not: python -m benchmarks.who_is_right_page --document docs/who-is-right.md."""
    with ThreadPoolExecutor(1) as here:
        cells = cells_of(finish(rivals_run(None, here, ("pipeline",))))
    assert part_of(DOCUMENT, "pipeline") == job_part(cells, "pipeline")
