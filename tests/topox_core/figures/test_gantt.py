"""Figures of a schedule: the Gantt chart and its axis, circuits of a moment, the trace of a solve and the race of engines."""

from dataclasses import replace

import numpy as np
import pytest

from topox_core.figures.iteration.circuits import cross_connects_in, matrix
from topox_core.figures.iteration.gantt import MAX_BARS, gantt, in_view
from topox_core.figures.iteration.lanes import (
    bars_of,
    first_window,
    lanes_of,
    overview,
    overview_image,
    paint,
    port_use,
)
from topox_core.figures.iteration.search import MAX_MARKS, search
from topox_core.figures.labs.hand_schedules import hand_gantt
from topox_core.figures.palette import DARK, EXPERT, FORWARD, GRADIENT, IDLE, LIGHT
from topox_core.labs.generators.catalogue import generator
from topox_core.model.critical_path import critical_path
from topox_core.model.execution import changes_a_slot, slot_state
from topox_core.schedule.results.result import TracePoint
from topox_core.schedule.results.story import (
    ENGINES,
    Contestant,
    events_of,
    proof_of,
    race_finding,
    summary_sentence,
)
from topox_core.schedule.source import (
    ENGINES as ENGINE_SOURCES,
    LOADS,
    LOCAL_SEARCH,
    PROPAGATION,
    TraceSource,
)
from topox_core.text.numbers import apart


def drawn(execution, window=None):
    lanes = lanes_of(execution)
    window = window or (0.0, execution.makespan_ms)
    return gantt(
        execution, bars_of(execution, lanes), lanes, window, critical_path(execution), LIGHT
    )


def trace(figure, name):
    return next(t for t in figure.data if t.name == name)


def test_bars_carry_their_task_and_name_their_destination(pipeline):
    figure = drawn(pipeline)
    gradients = trace(figure, "gradient all-reduce (dp)")
    assert [row[0] for row in gradients.customdata] == ["g2", "g1"]
    assert set(trace(figure, "pipeline send").text) == {"1", "2"}


def test_bars_and_axis_are_clipped_to_the_window(pipeline):
    window = (5.0, 29.0)
    figure = drawn(pipeline, window)
    for bar in (one for one in figure.data if one.type == "bar"):
        start = np.asarray(bar.base, float)
        assert start.min() >= window[0] and (start + bar.x).max() <= window[1]


def test_the_outline_covers_the_chain_with_its_dark_stretch(pipeline):
    outline = trace(drawn(pipeline), "critical path")
    spans = {*zip(outline.base, outline.x, strict=True)}
    assert {(31.0, 2.0), (33.0, 3.0)} <= spans  # the circuit turns, then sends
    assert (4.0, 2.0) not in spans  # a0 is not on the chain


def test_at_most_five_thousand_bars_are_drawn_in_a_window_that_is_readable_at_first(crowd):
    lanes = lanes_of(crowd)
    bars, path = bars_of(crowd, lanes), critical_path(crowd)
    figure = gantt(crowd, bars, lanes, (0.0, crowd.makespan_ms), None, LIGHT)
    assert sum(len(t.x) for t in figure.data) == MAX_BARS
    window = first_window(bars, lanes, crowd.makespan_ms, 1.0)
    assert window[0] == 0
    assert 300 < len(in_view(bars, lanes, window)) < 1500
    assert len(gantt(crowd, bars, lanes, window, path, LIGHT).to_json()) < 250_000
    assert len(port_use(crowd, window, LIGHT).to_json()) < 60_000


def test_the_overview_is_a_byte_image_of_the_whole_iteration(pipeline):
    lanes = lanes_of(pipeline)
    image, each = overview_image(bars_of(pipeline, lanes), lanes, pipeline.makespan_ms, columns=37)
    device_of_server_0, switch_1_of_server_1 = image[0], image[each + 2]
    assert device_of_server_0[:36].tolist() == [FORWARD] * 8 + [IDLE] * 28
    assert switch_1_of_server_1[31:36].tolist() == [DARK] * 2 + [GRADIENT] * 3


def test_many_servers_share_rows_of_a_small_overview(crowd):
    lanes, end = replace(lanes_of(crowd), servers=5000), crowd.makespan_ms
    image, each = overview_image(bars_of(crowd, lanes), lanes, end)
    assert len(image) <= 640 and (image == EXPERT).any()
    assert len(overview(image, each, lanes, end, (0.0, end / 9), LIGHT).to_json()) < 150_000


def test_painting_keeps_within_the_image():
    image = np.zeros((2, 10), np.uint8)
    paint(image, np.array([0, 1]), np.array([-5, 9]), np.array([3, 99]), np.array([1, 2], np.uint8))
    assert image.tolist() == [[1, 1, 1] + [0] * 7, [0] * 9 + [2]]


@pytest.mark.parametrize("after_ms", [0, generator("board").make(0).x])
def test_bars_on_a_lane_of_a_hand_made_schedule_lie_apart_only_where_they_meet(after_ms) -> None:
    """Two transfers at one port at once do not hide each other; two that follow are as high as their lane."""
    one = generator("board").make(0)
    starts_ms = {"a": 0, "x": 3, "y": 3 + after_ms}
    bars = [
        (data[0], y, width)
        for trace in hand_gantt(one.graph(), one.cluster(), starts_ms, LIGHT).data
        for data, y, width in zip(trace.customdata, trace.y, trace.width, strict=True)
    ]
    (x, x_wide), (y, y_wide) = (
        min((place, width) for name, place, width in bars if name == which) for which in "xy"
    )
    assert x_wide == pytest.approx(y_wide)
    assert (x + x_wide / 2 <= y - y_wide / 2 + 1e-9) == (after_ms == 0) == (x != y)


def test_the_matrix_draws_a_cell_from_the_sender_to_the_receiver(pipeline):
    (cell,) = (t for t in matrix(pipeline, slot_state(pipeline, 4), LIGHT).data if t.type == "bar")
    assert (cell.y[0], cell.base[0] + 0.46) == (0, 1)


def test_parallel_circuits_share_their_cell(pipeline):
    circuits = replace(
        pipeline.circuits,
        destination=np.array([1, 1, 2, 2, 0, 0], np.int32),
        source=np.array([0, 0, 1, 1, 0, 0], np.int32),
        start_ms=np.zeros(6),
        setup_ms=np.zeros(6),
        end_ms=np.full(6, 5.0),
        switch=np.array([0, 1, 0, 1, 0, 1], np.int32),
    )
    crowded = replace(pipeline, circuits=circuits)
    bars = [t for t in matrix(crowded, slot_state(crowded, 0), LIGHT).data if t.type == "bar"]
    assert all(np.allclose(np.asarray(t.x, float), 0.46) for t in bars)
    assert np.isclose(abs(bars[0].base[0] - bars[1].base[0]), 0.46)


def test_a_circuit_that_is_set_up_is_dark_and_counts_as_a_change(pipeline):
    state = slot_state(pipeline, 31)
    assert state.carrying.size == 0
    assert pipeline.circuits.node[state.dark].tolist() == [pipeline.graph.ids.index("g1")]
    assert cross_connects_in(pipeline, state)["Switch 1"] == ["–", "dark → S0", "–"]
    assert np.flatnonzero(changes_a_slot(pipeline)).tolist() == [4, 10, 28, 31]


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
    figure = search(close, 2.0, LIGHT)
    first, second = figure.layout.annotations
    low, high = figure.layout.yaxis.range
    assert (second.y - first.y) / (high - low) * (figure.layout.height - 38) > 10, "px"
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
