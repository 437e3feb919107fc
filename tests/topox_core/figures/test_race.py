"""The trace of a solve in words and marks, and engines against each other: who found what when, and what is said of it."""

import pytest

from topox_core.figures.palette import LIGHT
from topox_core.figures.search import MAX_MARKS, search
from topox_core.schedule.result import TracePoint
from topox_core.schedule.source import (
    ENGINES as ENGINE_SOURCES,
    LOADS,
    LOCAL_SEARCH,
    PROPAGATION,
    TraceSource,
)
from topox_core.schedule.story import (
    ENGINES,
    Contestant,
    events_of,
    proof_of,
    race_finding,
    summary_sentence,
)
from topox_core.text.numbers import apart

BY_NAME = {
    "parallel LST": TraceSource("rules", "parallel LST"),
    "parallel LFT": TraceSource("rules", "parallel LFT"),
    "serial LFT": TraceSource("rules", "serial LFT"),
    "propagation": PROPAGATION,
    "local search": LOCAL_SEARCH,
    "CP-SAT neighbourhoods": TraceSource("neighbourhoods", "CP-SAT neighbourhoods"),
    "CP-SAT": ENGINE_SOURCES["cpsat"],
    "HiGHS": ENGINE_SOURCES["highs"],
}


def point(elapsed_s: float, incumbent_ms: float, bound_ms: float, source: str) -> TracePoint:
    """Return a point whose source raised the bound if sources of its family can."""
    by = BY_NAME[source]
    bounds = by.family in ("exact", "bounds")
    return TracePoint(elapsed_s, incumbent_ms, bound_ms, by, by if bounds else LOADS)


LONG = (
    point(0.004, 300.0, 250.0, "parallel LST"),
    point(0.06, 285.0, 250.0, "serial LFT"),
    point(0.9, 285.0, 259.0, "propagation"),
    point(1.2, 272.0, 259.0, "local search"),
    point(3.0, 271.0, 259.0, "CP-SAT neighbourhoods"),
    point(4.0, 270.5, 259.0, "local search"),
    point(8.0, 270.0, 259.0, "CP-SAT neighbourhoods"),
)
AT_ONCE = (
    point(0.002, 10.0, 10.0, "parallel LST"),
    point(0.06, 10.0, 10.0, "parallel LST"),
)
PROVED = (
    point(0.01, 14.0, 12.0, "parallel LST"),
    point(0.4, 13.0, 12.0, "CP-SAT"),
    point(0.7, 13.0, 13.0, "CP-SAT"),
)


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("trace", "proof", "sentence"),
    [
        (
            LONG,
            None,
            "List scheduling reached 285 ms in 0.06 s, local search 270.5 ms, large neighbourhoods 270 ms after 8 s; "
            "propagation raised the bound from 250 ms to 259 ms after 0.9 s.",
        ),
        (
            AT_ONCE,
            ("parallel LST", 0.002),
            "List scheduling met the bound, 10 ms, after 0.002 s: nothing shorter exists.",
        ),
        (
            PROVED,
            ("CP-SAT", 0.7),
            "List scheduling reached 14 ms in 0.01 s, CP-SAT 13 ms after 0.4 s; CP-SAT raised the bound from 12 ms to 13 ms "
            "after 0.7 s. Schedule and bound are equal: nothing shorter exists.",
        ),
    ],
    ids=["open", "at once", "by search"],
)
def test_a_trace_is_one_sentence_that_says_what_proves_it(trace, proof, sentence):
    events = events_of(trace)
    assert plain(summary_sentence(events)) == sentence
    found = proof_of(events)
    assert (found and (found.source, found.elapsed_s)) == proof


def test_a_bound_that_rose_beside_a_schedule_is_not_put_down_to_who_found_the_schedule():
    trace = (
        TracePoint(0.01, 80.0, 60.0, BY_NAME["parallel LST"], LOADS),
        TracePoint(0.3, 70.0, 67.0, LOCAL_SEARCH, PROPAGATION),
    )
    by = {(event.moved, event.elapsed_s): event.source for event in events_of(trace)}
    assert (by["schedule", 0.3], by["bound", 0.3]) == ("local search", "propagation")
    (schedule, _) = events_of([TracePoint(0.1, 14.0, 12.0, PROPAGATION, PROPAGATION)])
    assert (schedule.moved, schedule.family) == ("schedule", "rules"), "found on the way to a bound"


def test_a_search_of_thousands_of_steps_stays_small_and_keeps_its_last():
    steps = [point(0.01 * k, 5000.0 - k, 100.0, "local search") for k in range(1, 3000)]
    marks = next(trace for trace in search(steps, 30.0, LIGHT).data if trace.name == "local search")
    assert len(marks.x) <= MAX_MARKS + 2
    assert marks.y[-1] == 5000.0 - 2999


def test_the_values_at_the_end_never_lie_on_each_other_nor_read_the_same():
    close = [point(0.1, 300.0, 100.0, "parallel LST"), point(1.0, 200.2, 200.0, "CP-SAT")]
    first, second = search(close, 2.0, LIGHT).layout.annotations
    assert first.yshift - second.yshift > 10
    assert plain(first.text) != f"<b>{plain(second.text)}</b>"
    assert [*map(plain, apart([1231.0, 1232.0]))] == ["1.231 s", "1.232 s"]


def run(
    engine: str,
    *lines: tuple[float, float, float, str],
    wall_s: float = 5.0,
    ended: str = "time_limit",
) -> Contestant:
    return Contestant(engine, events_of([point(*line) for line in lines]), wall_s, ended)


LISTED = (0.01, 42.0, 40.0, "parallel LFT")
FOUR = [
    run("list", LISTED, wall_s=0.05, ended="heuristic"),
    run(
        "highs",
        LISTED,
        (3.0, 41.0, 40.0, "HiGHS"),
        (3.5, 41.0, 41.0, "HiGHS"),
        wall_s=3.5,
        ended="proof",
    ),
    run(
        "cpsat",
        LISTED,
        (0.3, 41.0, 40.0, "CP-SAT"),
        (0.4, 41.0, 41.0, "CP-SAT"),
        wall_s=0.4,
        ended="proof",
    ),
    run(
        "auto",
        LISTED,
        (0.2, 41.0, 40.0, "local search"),
        (0.42, 41.0, 41.0, "CP-SAT"),
        wall_s=0.5,
        ended="proof",
    ),
]
BEGUN = (0.01, 300.0, 250.0, "parallel LFT")


@pytest.mark.parametrize(
    ("runners", "words"),
    [
        (
            FOUR,
            "CP-SAT and auto both prove 41 ms after 0.4 s; HiGHS needs 3.1 s longer; list is 2.44 % above.",
        ),
        (
            [
                run("highs", BEGUN, (2.0, 290.0, 259.0, "HiGHS")),
                run("auto", BEGUN, (4.0, 270.0, 250.0, "local search")),
            ],
            "Auto reaches 270 ms, the shortest, by local search after 4 s; HiGHS is 7.41 % above; no engine proves it; "
            "the best bound, 259 ms, is that of HiGHS.",
        ),
        (
            [
                run(engine, (0.01, 10.0, 10.0, "parallel LFT"), wall_s=0.02, ended="proof")
                for engine in ENGINES
            ],
            "List, HiGHS, CP-SAT and auto all prove 10 ms after 0.01 s.",
        ),
        (
            [FOUR[2], run("highs", LISTED, (3.0, 41.0, 40.0, "local search"))],
            "HiGHS reaches the same without proving it",
        ),
    ],
    ids=["proofs", "no proof", "at once", "reached"],
)
def test_the_finding_names_who_proves_or_is_shortest_and_who_is_how_far_behind(runners, words):
    assert words in plain(race_finding(runners))
