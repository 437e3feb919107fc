"""Topology: the record of TopologyFinder step by step."""

import json
from dataclasses import replace

import pytest

from tests.topox_ui.conftest import address, chart, control, metric, words
from topox_core.fabrics.compare import compare
from topox_core.fabrics.run import FabricOptions
from topox_core.io.task_graph_file import load_graph
from topox_core.schedule.settings import FREE, Settings
from topox_core.text.numbers import short, time
from topox_core.topology.finder import find_layout, traffic_of
from topox_core.workloads.samples import load_sample

TOPOLOGY = "pages/4_Topology.py"


@pytest.mark.long
def test_the_page_leads_with_what_the_circuits_make_of_the_job(visit):
    """The iteration is the one that Compare shows for fixed circuits."""
    graph, cluster = load_sample("moe")
    found = find_layout(traffic_of(graph, cluster.servers), cluster.ports_per_server)
    settings = Settings.of(engine="list", free=FREE)
    run = compare(graph, cluster, settings, ("static",), FabricOptions())["static"]
    planned = compare(graph, cluster, settings, ("scheduled",), FabricOptions())["scheduled"]
    iteration = time(run.iteration_ms).replace("\u00a0", " ")
    at = visit(TOPOLOGY, sample="moe")
    assert not at.exception and not at.error
    assert (
        f"Fixed circuits, which never change, take {iteration}, "
        f"{short(run.iteration_ms / planned.iteration_ms)}× the time of planned circuits"
        in words(at)
    )
    assert "The busiest link carries" in words(at)
    assert f"takes up to {found.longest_route} hops" in words(at)
    assert metric(at, "Iteration time") == iteration
    assert metric(at, "Links") == str(len(found.layout.links[0]))
    routes = sum(map(len, found.layout.routes.values()))
    assert f"talking pairs have {routes} routes" in words(at)
    busiest = [t["name"] for t in chart(at, "ring")["data"] if t["name"].startswith("busiest")]
    assert len(busiest) == 1 and metric(at, "Busiest link") in busiest[0]


def test_servers_that_never_talk_are_no_contradiction(visit):
    """Two pairs that have nothing to say to each other: what is promised is promised to those that talk."""
    at = visit(TOPOLOGY, sample="race")
    sends = [
        {"id": f"{a}{b}", "kind": "communication", "source": a, "destination": b, "size_bytes": 1e6}
        for a, b in ((0, 1), (1, 0), (2, 3), (3, 2))
    ]
    tasks = [{**one, "dependencies": [], "parallelism": "pp"} for one in sends]
    file = {"format": "topox-taskgraph", "version": 1, "name": "two pairs", "tasks": tasks}
    graph = load_graph(json.dumps(file).encode(), "two.taskgraph.json")
    at.session_state["loaded"] = replace(at.session_state["loaded"], graph=graph)
    at.run()
    assert not at.exception and not at.error
    assert "Data takes" not in words(at) and "All data goes directly, over 1 hop" in words(at)
    assert "8 pairs of servers exchange no data and have no path" in words(at)
    assert "no path: 8 pairs, which exchange no data" in words(at)


def test_stepping_back_takes_circuits_away_and_is_in_the_address(visit):
    at = visit(TOPOLOGY, sample="dlrm-16")
    drawn = {t["name"] for t in chart(at, "ring")["data"]}
    at.button(key="step_back").click().run()
    at.button(key="step_back").click().run()
    assert not at.exception
    assert address(at)["step"] == "4"
    before = {t["name"] for t in chart(at, "ring")["data"]}
    assert "stride 7 (16)" in drawn and "stride 7 (16)" not in before


def test_the_first_step_has_no_circuit_and_no_way(visit):
    at = visit(TOPOLOGY, sample="moe", step="0")
    assert not at.exception
    assert [t["name"] for t in chart(at, "ring")["data"]] == ["servers"]
    assert "no path: 56 pairs" in words(at)


def test_the_released_variant_lays_rings_both_ways(visit):
    at = visit(TOPOLOGY, sample="dlrm-16", variant="released")
    assert not at.exception
    assert "stride 5 both ways (32)" in {t["name"] for t in chart(at, "ring")["data"]}


def test_play_begins_at_the_first_step_and_stop_keeps_the_place(visit):
    at = visit(TOPOLOGY, sample="moe")
    at.button(key="play").click().run()
    assert not at.exception
    assert at.button(key="play").label == "Stop"
    at.button(key="play").click().run()
    assert at.button(key="play").label == "Play"


def test_a_route_is_drawn_and_told(visit):
    at = visit(TOPOLOGY, sample="dlrm-16")
    control(at, "route_from").set_value(0)
    control(at, "route_to").set_value(2).run()
    assert not at.exception
    graph, cluster = load_sample("dlrm-16")
    routes = find_layout(traffic_of(graph, cluster.servers), 4).layout.routes[0, 2]
    assert {" → ".join(f"S{s}" for s in path) for path in routes} <= {
        t["name"] for t in chart(at, "ring")["data"]
    }


def test_one_all_reduce_is_the_textbook_case(visit):
    at = visit(TOPOLOGY, sample="dlrm-16", traffic="ring", variant="released")
    assert not at.exception
    assert metric(at, "Bandwidth tax") == "1"
    assert "Rings carry all data" in words(at)
    assert "all links carry the same" in words(at).lower()


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"degree": "0"}, "must be a whole number from 1"),
        ({"degree": "3", "variant": "released"}, "must be even"),
        ({"degree": "99999"}, "must be a whole number from 1 to 4,096"),
    ],
)
def test_a_degree_that_cannot_be_is_one_line(visit, query, says):
    at = visit(TOPOLOGY, sample="moe", **query)
    assert not at.exception
    assert len(at.error) == 1 and says in at.error[0].value


@pytest.mark.long
def test_a_hundred_and_twenty_eight_servers_are_drawn(visit):
    at = visit(TOPOLOGY, sample="llama3-70b")
    assert not at.exception and not at.error
    assert len(chart(at, "hops")["data"]) == 1


@pytest.mark.parametrize("by", ["matrix", "graph"])
def test_circuits_by_bytes_or_graph_are_those_of_compare(visit, by):
    """Sample race has 53 layouts, of which all are tried; a link restores the choice."""
    graph, cluster = load_sample("race")
    settings = Settings.of(engine="list", free=FREE)
    options = FabricOptions(layout_by=by)
    name = "static_graph" if by == "graph" else "static"
    run = compare(graph, cluster, settings, (name,), options)[name]
    at = visit(TOPOLOGY, sample="race", layout_by=by)
    assert not at.exception and not at.error
    assert address(at)["layout_by"] == by
    assert metric(at, "Iteration time") == time(run.iteration_ms).replace("\u00a0", " ")
    assert metric(at, "Given back") == "0"
    assert chart(at, "searched_hops")["data"]
    if by == "graph":
        assert "less than TopologyFinder" in words(at) and "abstract of DELTA" in words(at)
