"""Small inputs on which independent models once refuted what was claimed: each is answered at least as well as they did."""

import pytest

from topox_core.api import (
    compare_fabrics,
    load_cluster,
    load_graph,
    verdict,
)

DELAYS_MS = (0.0, 1.0, 2.5, 5.0, 10.0)


@pytest.fixture
def case(real_inputs):
    """Return graph and cluster of a case."""

    def read(name):
        file = real_inputs / "cases" / name
        return load_graph(f"{file}.taskgraph.json"), load_cluster(f"{file}.cluster.json")

    return read


@pytest.mark.parametrize(("name", "fixed_ms"), [("broadcast", 25), ("all-to-all-4", 50)])
def test_fixed_circuits_take_what_a_layout_by_hand_takes(case, name, fixed_ms):
    fixed = verdict(*case(name)).as_record()["rivals"]["fixed"]
    assert fixed["iteration_ms"] == pytest.approx(fixed_ms)


def test_a_fourth_port_does_not_slow_matchings_down(case):
    graph, cluster = case("fourth-port-phased")
    of_three, of_four = (
        compare_fabrics(graph, cluster.changed(ports_per_server=ports, switches=ports), ["phased"])
        for ports in (3, 4)
    )
    assert of_four["phased"].iteration_ms <= of_three["phased"].iteration_ms


def test_a_faster_switch_slows_no_plan_down_and_does_not_move_the_ideal_one(case):
    graph, cluster = case("faster-switch-slower")
    runs = [
        compare_fabrics(graph, cluster.changed(reconfiguration_ms=delay), ["ideal", "scheduled"])
        for delay in DELAYS_MS
    ]
    times = [run["scheduled"].iteration_ms for run in runs]
    assert times == sorted(times)
    assert len({run["ideal"].iteration_ms for run in runs}) == 1


def test_halving_and_doubling_of_five_takes_the_documents_formula(case):
    graph, cluster = case("halving-5")
    lowering = {"algorithm": {"all_reduce": "halving_doubling"}}
    runs = compare_fabrics(graph, cluster, ["reactive", "provisioned"], lowering=lowering)
    assert runs["reactive"].iteration_ms == pytest.approx(53.6)
    assert runs["provisioned"].iteration_ms == pytest.approx(48.2)
