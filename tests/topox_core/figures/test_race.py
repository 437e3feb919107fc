"""The trace of a solve in words and marks, and engines against each other: names, shapes, sentences."""

from __future__ import annotations

import numpy as np
import pytest

from tests.topox_core.figures.test_other_figures import lab_of_a_deuteranope
from topox_core.figures.palette import DARK_THEME, LIGHT
from topox_core.figures.race import COLOURS, ENGINES, SYMBOLS, Contestant, finding, race, race_table
from topox_core.figures.search import GLYPHS, families_of, search
from topox_core.figures.search import SYMBOLS as FAMILY_SYMBOLS
from topox_core.figures.trace import (
    FAMILY_WORDS,
    event_table,
    events_of,
    proof_of,
    summary_sentence,
)
from topox_core.schedule.result import TracePoint
from topox_core.schedule.source import ENGINES as ENGINE_SOURCES
from topox_core.schedule.source import LOADS, LOCAL_SEARCH, PROPAGATION, TraceSource
from topox_core.text.numbers import apart

RULE = TraceSource("rules", "parallel LST")
BY_NAME = {
    "parallel LST": RULE,
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


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def test_a_trace_is_one_sentence():
    assert plain(summary_sentence(events_of(LONG))) == (
        "List scheduling came to 285 ms in 0.06 s, local search to 270.5 ms, large neighbourhoods to 270 ms after 8 s; "
        "propagation lifted the bound from 250 ms to 259 ms after 0.9 s."
    )


def test_a_rule_that_meets_the_bound_at_once_proves_it():
    trace = (
        point(0.002, 10.0, 10.0, "parallel LST"),
        point(0.06, 10.0, 10.0, "parallel LST"),
    )
    events = events_of(trace)
    assert (
        plain(summary_sentence(events))
        == "List scheduling met the bound, 10 ms, after 0.002 s: nothing shorter exists."
    )
    assert proof_of(events).elapsed_s == 0.002


def test_a_proof_by_search_says_that_the_lines_meet():
    trace = (
        point(0.01, 14.0, 12.0, "parallel LST"),
        point(0.4, 13.0, 12.0, "CP-SAT"),
        point(0.7, 13.0, 13.0, "CP-SAT"),
    )
    assert plain(summary_sentence(events_of(trace))) == (
        "List scheduling came to 14 ms in 0.01 s, CP-SAT to 13 ms after 0.4 s; CP-SAT lifted the bound from 12 ms to 13 ms "
        "after 0.7 s. They meet: nothing shorter exists."
    )
    assert proof_of(events_of(trace)).source == "CP-SAT"


def test_a_bound_that_rose_beside_a_schedule_is_not_put_down_to_who_found_the_schedule():
    trace = (
        TracePoint(0.01, 80.0, 60.0, RULE, LOADS),
        TracePoint(0.3, 70.0, 67.0, LOCAL_SEARCH, PROPAGATION),
    )
    by = {(event.moved, event.elapsed_s): event.source for event in events_of(trace)}
    assert by["schedule", 0.3] == "local search"
    assert by["bound", 0.3] == "propagation"


def test_a_schedule_found_on_the_way_to_a_bound_counts_as_listed():
    (schedule, _) = events_of([TracePoint(0.1, 14.0, 12.0, PROPAGATION, PROPAGATION)])
    assert (schedule.moved, schedule.family) == ("schedule", "rules")


def test_the_table_has_every_step_and_the_state_after_it():
    table = event_table(events_of(LONG))
    assert table["moved"] == [
        "schedule",
        "bound",
        "schedule",
        "bound",
        "schedule",
        "schedule",
        "schedule",
        "schedule",
    ]
    assert table["schedule (ms)"][-1] == 270.0 and table["bound (ms)"][-1] == 259.0
    assert all(
        a >= b for a, b in zip(table["schedule (ms)"], table["schedule (ms)"][1:], strict=False)
    )


def test_time_is_logarithmic_exactly_where_it_spans_more_than_a_factor_of_thirty():
    assert search(LONG, 10.0, LIGHT).layout.xaxis.type == "log"
    short = [
        point(1.0, 300.0, 250.0, "parallel LST"),
        point(20.0, 280.0, 250.0, "local search"),
    ]
    assert search(short, 29.0, LIGHT).layout.xaxis.type != "log"
    assert search(short, 31.0, LIGHT).layout.xaxis.type == "log"


def test_each_family_has_a_shape_a_glyph_and_a_word_of_its_own():
    for each in (FAMILY_SYMBOLS, GLYPHS, FAMILY_WORDS):
        assert len(set(each.values())) == len(each) == 6
    figure = search(LONG, 10.0, LIGHT)
    marks = {trace.name: trace.marker.symbol for trace in figure.data if trace.mode == "markers"}
    assert marks == {FAMILY_WORDS[f]: FAMILY_SYMBOLS[f] for f in families_of(events_of(LONG))}
    assert len(marks) == 4


def test_the_band_lies_between_a_falling_and_a_rising_line():
    bound, best = search(LONG, 10.0, LIGHT).data[:2]
    assert (bound.name, best.name, best.fill) == ("bound", "best found", "tonexty")
    assert list(best.y) == sorted(best.y, reverse=True) and list(bound.y) == sorted(bound.y)
    assert best.x[-1] == bound.x[-1] == 10.0


def test_a_search_of_thousands_of_steps_stays_small_and_keeps_its_last():
    steps = [point(0.01 * k, 5000.0 - k, 100.0, "local search") for k in range(1, 3000)]
    figure = search(steps, 30.0, LIGHT)
    marks = next(trace for trace in figure.data if trace.name == "local search")
    assert len(marks.x) <= 62
    assert marks.y[-1] == 5000.0 - 2999


def test_the_values_at_the_end_never_lie_on_each_other():
    close = [point(0.1, 300.0, 100.0, "parallel LST"), point(1.0, 200.2, 200.0, "CP-SAT")]
    first, second = search(close, 2.0, LIGHT).layout.annotations
    assert first.yshift - second.yshift > 10
    assert plain(first.text) != f"<b>{plain(second.text)}</b>"


def test_different_times_never_read_the_same():
    assert [plain(w) for w in apart([41.0, 41.0])] == ["41 ms", "41 ms"]
    assert [plain(w) for w in apart([41.03, 41.01])] == ["41.03 ms", "41.01 ms"]
    assert [plain(w) for w in apart([1231.0, 1232.0])] == ["1.231 s", "1.232 s"]


def run(
    engine: str,
    *lines: tuple[float, float, float, str],
    wall_s: float = 5.0,
    ended: str = "time_limit",
) -> Contestant:
    return Contestant(engine, events_of([point(*line) for line in lines]), wall_s, ended)


LISTED = (0.01, 42.0, 40.0, "parallel LFT")
OF_LIST = run("list", LISTED, wall_s=0.05, ended="heuristic")
OF_HIGHS = run(
    "highs",
    LISTED,
    (3.0, 41.0, 40.0, "HiGHS"),
    (3.5, 41.0, 41.0, "HiGHS"),
    wall_s=3.5,
    ended="proof",
)
OF_CPSAT = run(
    "cpsat",
    LISTED,
    (0.3, 41.0, 40.0, "CP-SAT"),
    (0.4, 41.0, 41.0, "CP-SAT"),
    wall_s=0.4,
    ended="proof",
)
OF_AUTO = run(
    "auto",
    LISTED,
    (0.2, 41.0, 40.0, "local search"),
    (0.42, 41.0, 41.0, "CP-SAT"),
    wall_s=0.5,
    ended="proof",
)
FOUR = [OF_LIST, OF_HIGHS, OF_CPSAT, OF_AUTO]


def test_the_finding_names_who_proves_how_much_longer_others_need_and_who_is_behind():
    assert plain(finding(FOUR)) == (
        "CP-SAT and auto both prove 41 ms after 0.4 s; HiGHS needs 3.1 s longer; "
        "list is 2.44 % above."
    )


def test_without_a_proof_the_finding_names_the_shortest_and_the_best_bound():
    highs = run("highs", (0.01, 300.0, 250.0, "parallel LFT"), (2.0, 290.0, 259.0, "HiGHS"))
    auto = run("auto", (0.01, 300.0, 250.0, "parallel LFT"), (4.0, 270.0, 250.0, "local search"))
    assert plain(finding([highs, auto])) == (
        "Auto comes to 270 ms, the shortest, by local search after 4 s; HiGHS is 7.41 % above; nobody proves it; "
        "the best bound, 259 ms, is that of HiGHS."
    )


def test_where_the_list_schedule_meets_the_bound_nobody_needs_an_engine():
    each = [
        run(engine, (0.01, 10.0, 10.0, "parallel LFT"), wall_s=0.02, ended="proof")
        for engine in ENGINES
    ]
    assert plain(finding(each)) == "List, HiGHS, CP-SAT and auto all prove 10 ms after 0.01 s."
    assert race_table(each)["proved by"] == ["loads and critical path"] * 4


def test_the_same_schedule_without_a_proof_is_told_apart_from_a_proof():
    reaches = run("highs", LISTED, (3.0, 41.0, 40.0, "local search"))
    assert "HiGHS reaches the same without proving it" in finding([OF_CPSAT, reaches])


def test_the_race_table_says_when_and_by_whom():
    table = race_table(FOUR)
    assert table["engine"] == ["list", "HiGHS", "CP-SAT", "auto"]
    assert table["iteration (ms)"] == [42.0, 41.0, 41.0, 41.0]
    assert table["gap (%)"] == [4.762, 0.0, 0.0, 0.0]
    assert table["best after (s)"] == [0.01, 3.0, 0.3, 0.2]
    assert table["proof after (s)"] == [None, 3.5, 0.4, 0.42]
    assert table["found by"] == ["list scheduling", "HiGHS", "CP-SAT", "local search"]
    assert table["proved by"] == ["", "HiGHS", "CP-SAT", "CP-SAT"]


def test_the_race_draws_schedule_bound_and_end_of_every_engine():
    figure = race(FOUR, 5.0, LIGHT)
    assert len(figure.data) == 3 * len(FOUR)
    ends = [trace for trace in figure.data if trace.mode == "markers"]
    assert [trace.marker.symbol for trace in ends] == [SYMBOLS[r.engine] for r in FOUR]
    # Filled: proved; open: not.
    assert [trace.marker.color == LIGHT.page for trace in ends] == [True, False, False, False]
    widths = [
        trace.line.width
        for trace in figure.data
        if trace.mode == "lines" and trace.line.dash == "solid"
    ]
    assert widths == sorted(widths, reverse=True) and len(set(widths)) == 4
    assert "logarithmic" in figure.layout.xaxis.title.text


def test_engines_that_end_level_share_a_label():
    labels = [plain(label.text) for label in race(FOUR, 5.0, LIGHT).layout.annotations]
    assert labels[0].startswith("<b>42 ms</b>") and labels[0].endswith("list")
    assert labels[1] == "<b>41 ms</b> all but list"


def test_a_race_that_has_just_begun_draws():
    assert len(race([], 5.0, DARK_THEME).data) == 0
    assert len(race([Contestant.running("auto", (), 0.1)], 5.0, LIGHT).data) == 0
    assert finding([]) == ""


@pytest.mark.parametrize("theme", [LIGHT, DARK_THEME])
def test_engines_stay_apart_for_a_deuteranope(theme):
    colours = [COLOURS[theme.name][engine] for engine in ENGINES]
    for i, a in enumerate(colours):
        for b in [*colours[:i], theme.page]:
            assert np.linalg.norm(lab_of_a_deuteranope(a) - lab_of_a_deuteranope(b)) > 15, (a, b)
