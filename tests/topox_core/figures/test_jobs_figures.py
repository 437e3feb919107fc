"""Rounds on one clock, links with their ports, rings, and the study: what is drawn is what was decided."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from topox_core.figures.jobs import bars, numbered, pod_group_bars, timeline
from topox_core.figures.jobs_gain import GainPoint, gain_map, overlap_alone
from topox_core.figures.jobs_links import arc_points, link_matrix, link_view, ring_drawing
from topox_core.figures.jobs_pods import kind_of, pod_gantt, pod_view
from topox_core.figures.jobs_study import climb, gains
from topox_core.figures.palette import DARK_THEME, LIGHT, VERMILION
from topox_core.tdm.model.as_execution import execution_of
from topox_core.tdm.model.jobs import Job, Jobs, PodNetwork, Reading
from topox_core.tdm.model.round import (
    DRAFT,
    NOBODY,
    PULL,
    PUSH,
    Cycle,
    Phase,
    Round,
    RoundBound,
    RoundTracePoint,
)

NETWORK = PodNetwork(1, 4, 8, 100.0, 800.0, 500.0)
JOBS = Jobs(
    "three jobs",
    NETWORK,
    (
        Job("ring", "ring_all_reduce", 0, (1, 1, 1, 1), 200.0, 5.0),
        Job(
            "server",
            "parameter_server",
            0,
            (0, 1, 2, 0),
            100.0,
            8.0,
            server_pod=0,
            aggregate_s=0.25,
        ),
        Job("experts", "all_to_all", 0, (0, 0, 1, 1), 50.0, 6.0),
    ),
)
# Group A: the ring and the experts; group B: the parameter server. Every change of circuits takes
# 0.5 s.
LINKS = np.zeros((1, 2, 4, 4), np.int32)
for here, after in ((0, 1), (1, 2), (2, 3), (3, 0)):
    LINKS[0, 0, here, after] = 2
LINKS[0, 0, 3, 2] = 1
LINKS[0, 1, 1, 0], LINKS[0, 1, 2, 0] = 2, 4
# A pushes 250 Gbit over 2 links of 100 Gbit/s: 1.25 s. B pushes 200 Gbit over 4 links: 0.5 s.
PHASES = (
    Phase(0, PUSH, 0.0, 8.5, 0.5, 1.25, 8.0),
    Phase(1, PUSH, 8.5, 15.0, 0.5, 0.5, 6.0),
    Phase(0, PULL, 15.0, 16.75, 0.5, 1.25, 0.25),
    Phase(1, PULL, 16.75, 23.25, 0.5, 0.5, 6.0),
)
ROUND = Round(
    JOBS,
    Reading(),
    DRAFT,
    (0, 1, 0),
    ((0, 1, 2, 3), (), ()),
    LINKS,
    np.array([[1.25, 0.5]]),
    (Cycle((0,), PHASES),),
    "hill-climbing",
    bound=RoundBound(20.0, "training", "two groups"),
    wall_s=0.01,
)
# All jobs in A, nobody in B: communicate, train, communicate, train.
TOGETHER = replace(
    ROUND,
    algorithm="non-tdm",
    group=(0, 0, 0),
    communication_s=np.array([[2.0, 0.0]]),
    cycles=(
        Cycle(
            (0,),
            (
                Phase(0, PUSH, 0.0, 2.5, 0.5, 2.0, 0.0),
                Phase(1, PUSH, 2.5, 8.5, 0.0, 0.0, 6.0),
                Phase(0, PULL, 8.5, 11.0, 0.5, 2.0, 0.0),
                Phase(1, PULL, 11.0, 19.0, 0.0, 0.0, 8.0),
            ),
        ),
    ),
)


def test_a_group_computes_from_the_barrier_after_its_stage_while_the_other_communicates() -> None:
    drawn = {
        (bar.group, bar.kind, bar.start_s): bar.length_s for bar in bars(ROUND, ROUND.cycles[0])
    }
    assert drawn == {
        (0, "push", 0.5): 1.25,
        (0, "pull", 15.5): 1.25,
        (1, "push", 9.0): 0.5,
        (1, "pull", 17.25): 0.5,
        (0, "train", 9.0): 6.0,
        (0, "train", 17.25): 6.0,  # ring and experts train twice a round
        (1, "aggregate", 15.5): 0.25,
        (1, "train", 0.5): 8.0,
    }  # the parameter server once, after its pull


def test_the_printed_equation_lets_a_parameter_server_train_in_both_stages() -> None:
    literal = replace(ROUND, reading=Reading(eq3_literal=True))
    trains = [
        bar for bar in bars(literal, literal.cycles[0]) if bar.group == 1 and bar.kind == "train"
    ]
    assert {0.5, 15.5} <= {bar.start_s for bar in trains}


def test_no_bar_of_a_lane_covers_another() -> None:
    for round_ in (ROUND, TOGETHER):
        drawn = [bar for bar in bars(round_, round_.cycles[0]) if bar.kind != "aggregate"]
        for group in (0, 1):
            lane = sorted((bar for bar in drawn if bar.group == group), key=lambda bar: bar.start_s)
            assert all(
                a.start_s + a.length_s <= b.start_s + 1e-9 for a, b in itertools.pairwise(lane)
            )


def test_computing_that_goes_on_in_the_next_round_is_drawn_at_its_beginning() -> None:
    cycle = Cycle(
        (0,),
        (
            Phase(0, PUSH, 0.0, 1.25, 0.0, 1.25, 0.0),
            Phase(1, PUSH, 1.25, 1.75, 0.0, 0.5, 0.0),
            Phase(NOBODY, PUSH, 1.75, 7.25, 0.0, 0.0, 5.5),
            Phase(0, PULL, 7.25, 8.5, 0.0, 1.25, 0.0),
            Phase(1, PULL, 8.5, 9.0, 0.0, 0.5, 0.0),
            Phase(NOBODY, PULL, 9.0, 14.5, 0.0, 0.0, 5.5),
        ),
    )
    server = [
        bar
        for bar in bars(replace(ROUND, cycles=(cycle,)), cycle)
        if bar.group == 1 and bar.kind == "train"
    ]
    assert [(bar.start_s, bar.length_s) for bar in server] == [(9.0, 5.5), (0.0, 2.5)]


@pytest.mark.parametrize("theme", [LIGHT, DARK_THEME])
def test_rounds_share_one_clock_and_a_lane_without_jobs_is_left_out(theme) -> None:
    figure = timeline([("Hill climbing", ROUND), ("Non-TDM", TOGETHER)], theme)
    assert figure.layout.xaxis.range[1] > 23.25
    assert list(figure.layout.yaxis.ticktext) == ["A · 2 jobs", "B · 1 job", "A · 3 jobs"]
    said = " ".join(note.text for note in figure.layout.annotations).replace("\u00a0", " ")
    assert "Hill climbing" in said and "Non-TDM" in said and "23.2 s" in said and "19 s" in said
    marks = next(trace for trace in figure.data if trace.name == "circuits change")
    assert len(marks.x) == 6
    assert marks.marker.color == VERMILION
    assert {"train", "push", "pull", "aggregate"} <= {trace.name for trace in figure.data}


def test_stages_are_counted_without_those_that_take_no_time() -> None:
    cycle = Cycle((0,), (PHASES[0], Phase(NOBODY, PUSH, 8.5, 8.5, 0.0, 0.0, 0.0), PHASES[1]))
    assert [(number, phase.group) for number, phase in numbered(cycle)] == [(1, 0), (2, 1)]


def test_without_a_round_the_clock_is_empty() -> None:
    assert len(timeline([("nothing", replace(ROUND, cycles=()))], LIGHT).data) == 0


def test_links_carry_what_is_sent_and_take_a_port_at_both_ends() -> None:
    view = link_view(ROUND, 0, 0)
    assert view.demand_gbit[2, 3] == 250.0  # the ring's arc and the experts' pair
    assert view.time_s[2, 3] == 1.25 and view.worst == (2, 3)
    assert view.ports.tolist() == [4, 4, 5, 5]
    assert not view.wanted[0, 1] and view.wanted[2, 3]


def test_a_pull_is_its_push_turned_round() -> None:
    push, pull = link_view(ROUND, 0, 1), link_view(ROUND, 0, 1, PULL)
    assert push.worst == (1, 0) or push.time_s[push.worst] == push.time_s.max()
    assert np.array_equal(pull.time_s, push.time_s.T) and np.array_equal(pull.ports, push.ports)


def test_a_physical_ring_carries_twice_the_volume_less_one_part() -> None:
    assert link_view(replace(ROUND, reading=Reading(physical_ring=True)), 0, 0).demand_gbit[
        0, 1
    ] == pytest.approx(300.0)


def test_the_matrix_outlines_the_slowest_pair_and_writes_links_and_seconds() -> None:
    figure = link_matrix(link_view(ROUND, 0, 0), LIGHT)
    outline = figure.layout.shapes[0]
    assert (outline.x0, outline.y0) == (3 - 0.47, 2 - 0.47)
    written = [
        text
        for trace in figure.data
        if trace.type == "scatter" and trace.mode == "text"
        for text in trace.text
    ]
    assert "<b>2</b><br>1.25" in written and "<b>1</b><br>0.5" in written
    assert "5/8" in written


def test_a_full_pod_is_written_in_bold() -> None:
    crowded = replace(ROUND, jobs=replace(JOBS, network=replace(NETWORK, ports_per_pod=5)))
    written = [
        text
        for trace in link_matrix(link_view(crowded, 0, 0), DARK_THEME).data
        if trace.type == "scatter" and trace.mode == "text"
        for text in trace.text
    ]
    assert "<b>5</b>/5" in written and "4/5" in written


def test_a_pod_group_where_nothing_is_sent_is_an_empty_matrix() -> None:
    quiet = replace(ROUND, group=(1, 1, 1), links=np.zeros_like(LINKS))
    view = link_view(quiet, 0, 0)
    assert view.worst is None
    assert not link_matrix(view, LIGHT).layout.shapes


def test_a_ring_says_how_many_links_it_added() -> None:
    figure = ring_drawing(ROUND, 0, 0, LIGHT)
    names = [trace.name for trace in figure.data]
    assert "ring: 4 arcs, 3 added" in names  # pod 2 to pod 3 was wanted by the experts
    arrows = next(trace for trace in figure.data if trace.marker.symbol == "arrow")
    assert [mark[1] for mark in arrows.customdata] == ["P0 → P1", "P1 → P2", "P2 → P3", "P3 → P0"]
    back = next(
        trace
        for trace in ring_drawing(ROUND, 0, 0, LIGHT, way=PULL).data
        if trace.marker.symbol == "arrow"
    )
    assert {mark[1] for mark in back.customdata} == {"P3 → P2", "P2 → P1", "P1 → P0", "P0 → P3"}


def test_a_link_and_the_link_back_are_two_lines() -> None:
    here, there = np.array([0.0, 0.0]), np.array([1.0, 0.0])
    assert arc_points(here, there, 0.1)[8, 1] > 0 > arc_points(there, here, 0.1)[8, 1]


def test_the_slowest_pod_group_of_each_group_is_named() -> None:
    wide = replace(ROUND, communication_s=np.array([[1.0, 4.0], [3.0, 2.0]]))
    figure = pod_group_bars(wide, [5.0, 5.0], LIGHT)
    assert [(note.x, note.text) for note in figure.layout.annotations] == [
        (1, "<b>3</b>"),
        (0, "<b>4</b>"),
    ]
    assert figure.layout.yaxis.range == figure.layout.yaxis2.range


def test_a_search_is_drawn_with_what_it_is_compared_with() -> None:
    story = [
        RoundTracePoint(0.0, 0, 180.0, 0.0, "all in A"),
        RoundTracePoint(0.1, 1, 150.0, 0.0, "flip"),
        RoundTracePoint(0.2, 2, 131.0, 0.0, "flip"),
    ]
    figure = climb(story, [("non-TDM", 180.0, "dash"), ("best", 107.0, "dot")], LIGHT)
    assert list(figure.data[0].y) == [180.0, 150.0, 131.0, 131.0]
    assert [note.text.split("<br>")[0] for note in figure.layout.annotations] == ["best", "non-TDM"]
    low, high = figure.layout.yaxis.range
    assert low < 107.0 < 180.0 < high


def test_an_exact_search_shows_its_bound_rise() -> None:
    figure = climb(
        [RoundTracePoint(0.1, 0, 20.0, 5.0, "start"), RoundTracePoint(1.0, 1, 15.0, 12.0, "HiGHS")],
        [],
        LIGHT,
        by_step=False,
    )
    assert [trace.name for trace in figure.data] == ["bound", "round"]
    assert list(figure.data[0].y) == [5.0, 12.0, 12.0]


def test_a_study_has_a_dot_a_seed_and_the_mean_written() -> None:
    values = {
        "hill-climbing": {256: [0.2, 0.3], 512: [0.1, 0.2]},
        "best": {256: [0.4, 0.4], 512: [0.5, 0.4]},
    }
    figure = gains(
        values, {"hill-climbing": "Hill climbing", "best": "Best"}, "jobs", LIGHT, here=512
    )
    means = [trace for trace in figure.data if trace.mode == "lines+markers+text"]
    assert [list(trace.text) for trace in means] == [
        ["<b>25</b>", "<b>15</b>"],
        ["<b>40</b>", "<b>45</b>"],
    ]
    assert sum(len(trace.x) for trace in figure.data if trace.mode == "markers") == 8
    assert len({trace.line.dash for trace in means}) == 2
    assert list(figure.layout.xaxis.ticktext) == ["256", "512"] and figure.layout.shapes[0].x0 == 1


def test_two_means_that_are_close_are_written_above_and_below() -> None:
    values = {
        "hill-climbing": {64: [0.32]},
        "best-grouping": {64: [0.36]},
        "all-train": {64: [0.362]},
    }
    figure = gains(values, {name: name for name in values}, "jobs", LIGHT)
    means = [trace for trace in figure.data if trace.mode == "lines+markers+text"]
    assert [(trace.text[0], trace.textposition[0]) for trace in means] == [
        ("<b>32</b>", "bottom center"),
        ("<b>36</b>", "top center"),
        ("", "top center"),
    ]


def test_one_ring_alone_keeps_its_colour_and_what_it_added() -> None:
    two = replace(
        ROUND,
        group=(0, 1, 0),
        jobs=replace(JOBS, jobs=(JOBS.jobs[0], JOBS.jobs[1], replace(JOBS.jobs[0], id="other"))),
        rings=((0, 1, 2, 3), (), (3, 2, 1, 0)),
    )

    def lines(only: int | None) -> dict[str, str]:
        return {
            trace.name: trace.line.color
            for trace in ring_drawing(two, 0, 0, LIGHT, only=only).data
            if trace.mode == "lines" and "arcs" in (trace.name or "")
        }

    assert len(lines(None)) == 2
    assert lines(2) == {
        name: colour for name, colour in lines(None).items() if name.startswith("other")
    }


# -- one pod on the common clock -------------------------------------------------------------------------

EXECUTION = execution_of(ROUND, 0)
NAMES = [job.id for job in JOBS.jobs]


def test_a_pod_shows_its_own_jobs_and_the_ports_it_uses() -> None:
    """Pod 0 has a unit of the ring, and aggregates; 4 ports serve the ring (2 links in, 2 out), 6 the parameter server."""
    view = pod_view(EXECUTION, 0, NAMES)
    assert view.lanes.jobs == ("ring", "server")
    assert len(view.lanes.ports) == 6
    assert view.lanes.names()[:3] == ["ring", "server", "port 0"]
    assert (view.execution.circuits.source == 0).all() and not (
        view.execution.circuits.destination == 0
    ).any()
    assert set(view.bars.server.tolist()) == {0} and view.bars.row.max() < view.lanes.rows


def test_what_arrives_is_drawn_on_the_port_it_arrives_at() -> None:
    """Every link into a pod takes one of its ports too: busy port time in and out are all there."""
    for pod in range(4):
        view = pod_view(EXECUTION, pod, NAMES)
        circuits = EXECUTION.circuits
        touching = (circuits.source == pod) | (circuits.destination == pod)
        ports = np.where(circuits.source == pod, circuits.source_port, circuits.destination_port)[
            touching
        ]
        assert sorted(view.execution.circuits.source_port.tolist()) == sorted(ports.tolist())
        on_ports = view.bars.circuit >= 0
        drawn = (view.bars.end_ms - view.bars.start_ms)[on_ports].sum()
        assert drawn == pytest.approx((circuits.end_ms - circuits.setup_ms)[touching].sum())


def test_a_pod_without_jobs_has_no_bars() -> None:
    lonely = replace(
        ROUND,
        jobs=replace(
            JOBS,
            network=replace(NETWORK, pods_per_group=5),
            jobs=tuple(replace(job, units_per_pod=(*job.units_per_pod, 0)) for job in JOBS.jobs),
        ),
        links=np.pad(LINKS, ((0, 0), (0, 0), (0, 1), (0, 1))),
    )
    assert len(pod_view(execution_of(lonely, 0), 4, NAMES).bars) == 0


def test_kinds_are_told_by_the_name_of_a_task() -> None:
    assert [
        kind_of(name)
        for name in (
            "a/b/push/0-3",
            "j/pull/3-0",
            "j/train 2, from the round before/1",
            "j/aggregate/0",
        )
    ] == ["push", "pull", "train", "aggregate"]


def test_a_pod_is_drawn_in_the_timeline_s_colours_with_both_ends_of_each_transfer() -> None:
    view = pod_view(EXECUTION, 0, NAMES)
    figure = pod_gantt(view, (0.0, EXECUTION.makespan_ms), LIGHT)
    legend = {
        trace.name: trace.marker.color
        for trace in figure.data
        if trace.showlegend and not trace.name.startswith("dark")
    }
    clock = {
        trace.name: trace.marker.color
        for trace in timeline([("one", ROUND)], LIGHT).data
        if trace.type == "bar"
    }
    assert legend and legend.items() <= clock.items()
    said = {
        row[2] for trace in figure.data if trace.customdata is not None for row in trace.customdata
    }
    assert {"P0 → P1", "P3 → P0", "P1 → P0", "P2 → P0", "in P0"} <= said
    written = {
        text
        for trace in pod_gantt(view, (8_500.0, 15_000.0), LIGHT).data
        for text in (trace.text or ())
    }
    assert {"from 1", "from 2"} <= written
    begins = sorted(shape.x0 for shape in figure.layout.shapes if shape.type == "line")
    assert begins == pytest.approx([8_500.0, 15_000.0, 16_750.0])


# -- where the gain is -----------------------------------------------------------------------------------


def test_overlap_alone_hides_the_shorter_behind_the_longer() -> None:
    """C = T: 2 C + 2 T becomes 2 C, half; C = 3 T: a quarter is training; C = T / 3: a quarter is communication."""
    assert overlap_alone(1.0) == 0.5
    assert overlap_alone(3.0) == pytest.approx(0.25) == overlap_alone(1 / 3)


def test_the_gain_map_has_a_mark_for_every_set_of_jobs_told_by_colour_and_shape() -> None:
    points = {
        "hill-climbing": [GainPoint(2.0, 0.1, 64, "64 jobs"), GainPoint(8.0, 0.3, 256, "256 jobs")],
        "all-train": [GainPoint(2.0, 0.2, 64, "64 jobs"), GainPoint(8.0, -0.05, 256, "256 jobs")],
    }
    figure = gain_map(
        points, {name: name for name in points}, {64: "64 jobs", 256: "256 jobs"}, DARK_THEME
    )
    marks = [trace for trace in figure.data if trace.mode == "markers"]
    assert [(trace.x[0], trace.y[0]) for trace in marks] == [
        (2.0, 10.0),
        (8.0, 30.0),
        (2.0, 20.0),
        (8.0, -5.0),
    ]
    assert len({(trace.marker.color, trace.marker.symbol) for trace in marks}) == 2
    assert (
        figure.layout.xaxis.range == figure.layout.xaxis2.range
        and figure.layout.yaxis.range[0] < -5
    )
    low, high = figure.layout.xaxis.range
    assert 10**low < 0.9 and 10**high > 8


def test_a_gain_map_of_nothing_is_empty_and_still_drawn() -> None:
    assert not [
        trace
        for trace in gain_map({"all-train": []}, {"all-train": "all"}, {}, LIGHT).data
        if trace.mode == "markers"
    ]
