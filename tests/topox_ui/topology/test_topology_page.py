"""Fixed circuits: the record of TopologyFinder step by step."""

import json
from dataclasses import replace

import pytest

from tests.topox_ui.conftest import (
    address,
    choose,
    control,
    metric,
    press,
    spoken,
    the_error,
    traces,
    unbroken,
    words,
)
from topox_core.fabrics.comparison.compare import compare
from topox_core.fabrics.controllers.one_collective import OneCollective
from topox_core.fabrics.options import FabricOptions
from topox_core.io.task_graph_file import load_graph
from topox_core.schedule.settings import FREE, Settings
from topox_core.topology.finder import find_layout, traffic_of
from topox_core.workloads.samples import load_sample

TOPOLOGY = "Fixed circuits"


@pytest.mark.long
def test_the_page_leads_with_what_the_circuits_make_of_the_job(visit):
    """The iteration is the one that Compare shows for fixed circuits."""
    graph, cluster = load_sample("moe")
    found = find_layout(traffic_of(graph, cluster.servers), cluster.ports_per_server)
    settings = Settings.of(engine="list", free=FREE)
    run = compare(graph, cluster, settings, ("static",), FabricOptions())["static"]
    at = visit(TOPOLOGY, sample="moe")
    assert f"takes up to {found.longest_route} hops" in words(at)
    assert metric(at, "Iteration time") == spoken(run.iteration_ms)
    assert metric(at, "Links") == str(len(found.layout.links[0]))
    assert "busiest circuits, S3 → S4, S5 → S6 and S7 → S0, carry 1.99× the average" in words(at)
    assert "busiest, S3\u00a0→\u00a0S4, S5\u00a0→\u00a0S6 and S7\u00a0→\u00a0S0: 1.99×" in traces(
        at, "ring"
    )
    searched = compare(graph, cluster, settings, ("static_graph",), FabricOptions())["static_graph"]
    assert f"searched for the task graph take only {spoken(searched.iteration_ms)}" in words(at)


def test_servers_that_never_talk_are_no_contradiction(visit):
    """Two pairs that have nothing to say to each other: what is promised is promised to those that talk."""
    at = visit(TOPOLOGY, sample="race")
    send = {"kind": "communication", "size_bytes": 1e6, "dependencies": [], "parallelism": "pp"}
    tasks = [
        {**send, "id": f"{a}{b}", "source": a, "destination": b}
        for a, b in ((0, 1), (1, 0), (2, 3), (3, 2))
    ]
    file = {"format": "topox-taskgraph", "version": 1, "name": "two pairs", "tasks": tasks}
    graph = load_graph(json.dumps(file).encode(), "two.taskgraph.json")
    at.session_state["loaded"] = replace(at.session_state["loaded"], graph=graph)
    assert not unbroken(at.run()).error
    assert "Data takes" not in words(at) and "All data goes directly, over 1 hop" in words(at)
    assert "no path: 8 pairs, which exchange no data" in words(at)


def test_stepping_back_takes_circuits_away_and_play_begins_at_the_first_step(visit):
    at = visit(TOPOLOGY, sample="dlrm-16")
    choose(at, route_from=0, route_to=2)
    graph, cluster = load_sample("dlrm-16")
    routes = find_layout(traffic_of(graph, cluster.servers), 4).layout.routes[0, 2]
    assert {" → ".join(f"S{s}" for s in path) for path in routes} <= set(traces(at, "ring"))
    drawn = traces(at, "ring")
    press(press(at, "step_back"), "step_back")
    assert address(at)["step"] == "4"
    assert "stride 7 (16)" in drawn and "stride 7 (16)" not in traces(at, "ring")
    assert press(at, "play").button(key="play").label == "Stop"
    assert press(at, "play").button(key="play").label == "Play"


def test_the_released_variant_lays_rings_both_ways_and_one_all_reduce_is_the_textbook_case(visit):
    at = visit(TOPOLOGY, sample="dlrm-16", traffic="ring", variant="released")
    assert any("both ways" in name for name in traces(at, "ring"))
    assert metric(at, "Bandwidth tax") == "1" and "Rings carry all data" in words(at)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"degree": "0"}, "must be a whole number from 1"),
        ({"degree": "3", "variant": "released"}, "must be even"),
        ({"degree": "99999"}, "must be a whole number from 1 to 4,096"),
    ],
)
def test_a_degree_that_cannot_be_is_one_line(visit, query, says):
    assert says in the_error(visit(TOPOLOGY, sample="race", **query))


@pytest.mark.parametrize("by", ["matrix", "graph"])
def test_circuits_by_bytes_or_graph_are_those_of_compare(visit, by):
    """Sample race has 53 layouts, of which all are tried; a link restores the choice."""
    settings, options = Settings.of(engine="list", free=FREE), FabricOptions(layout_by=by)
    name = "static_graph" if by == "graph" else "static"
    run = compare(*load_sample("race"), settings, (name,), options)[name]
    at = visit(TOPOLOGY, sample="race", layout_by=by)
    assert not at.error and address(at)["layout_by"] == by
    assert metric(at, "Iteration time") == spoken(run.iteration_ms)
    assert ("less than TopologyFinder" in words(at)) == (by == "graph")


def test_every_way_stands_beside_the_others(visit):
    """Two ports of 360 Gbit/s: 360 MB take 8 ms on one."""
    query = {"collective": "all_to_all", "tensor_mb": "360", "switch_ms": "0.8"}
    at = visit("One collective", sample="fsdp", port_gbps="360", **query)
    assert not at.error
    one = OneCollective("all_to_all", "pairwise", 8, 2, 8.0, 0.0, 0.8)
    assert metric(at, "All ports together") == spoken(one.together().makespan_ms)
    assert metric(at, "One port per step") == spoken(one.one_port_a_step().makespan_ms)
    assert metric(at, "Uneven split") == spoken(one.split().makespan_ms) == "6.9 ms"
    assert address(at)["tensor_mb"] == "360"


def test_the_collective_begins_as_the_largest_of_the_loaded_job_at_its_delay(visit):
    at = visit("One collective", sample="fsdp", port_gbps="360")
    assert "with rings that never change; all ports together" in words(at)
    assert "reduce-scatter of 8 servers, 2 ports of 360G each, 0 ms delay" in words(at)
    assert control(at, "tensor_mb").value == 2973.794304
    assert "Port speed and delay are those of fsdp, and this is its largest collective" in words(at)
    assert "circuits change for free" in words(at) and "Thin bars" not in words(at)
    press(at, "real_mems")
    assert "15 ms delay" in words(at) and "change for free" not in words(at)
    said = words(at)
    assert "Switching gains nothing in this one reduce-scatter: " in said
    assert "Thin bars are set-ups" in said
    assert "change for free" in words(press(at, "real_none"))
    press(at, "real_mems")
    choose(at, members=4)
    assert "its largest collective is the reduce-scatter of 8 servers, 2.97 GB each" in words(at)
    at = visit("One collective", sample="race")
    assert "has no collective that runs by such steps: this one is an example" in words(at)
    assert control(at, "tensor_mb").value == 100.0
