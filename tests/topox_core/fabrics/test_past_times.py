"""Times that the reference on rival fabrics states for the samples and graphs of November 2026, on those graphs."""

from __future__ import annotations

import pytest

from tests.past import load_past
from topox_core.fabrics.circuits import run_provisioned, run_reactive
from topox_core.fabrics.fluid import simulate
from topox_core.fabrics.packet import non_blocking
from topox_core.fabrics.run import FabricRequest
from topox_core.fabrics.scheduled import run_scheduled
from topox_core.fabrics.static import run_static
from topox_core.model.cluster import Cluster
from topox_core.model.lowering import lower
from topox_core.model.task_graph import TaskGraph
from topox_core.runs.stopping import never
from topox_core.schedule.settings import Settings

SETTINGS = Settings.of(engine="list", switching="planned")


def request(task_graph: TaskGraph, of: Cluster, **changes: float) -> FabricRequest:
    return FabricRequest(lower(task_graph), of.changed(**changes), SETTINGS)


def fair_ms(task_graph: TaskGraph, of: Cluster, ports: int) -> float:
    """Iteration on a non-blocking switch with so many ports a server, shared max-min fairly."""
    one = request(task_graph, of, ports_per_server=ports, switches=ports)
    wiring = non_blocking(one)
    _, end = simulate(one.graph, one.cluster, wiring.pairs, wiring.network, True, never)
    return float(end.max())


@pytest.mark.parametrize(
    ("name", "delay_ms", "reactive_ms", "provisioned_ms"),
    [
        ("llama3-8b", 0.0, 647.119006, 647.119006),
        ("llama3-8b", 10.0, 657.119006, 647.119006),
        ("fsdp", 10.0, 313.446476, 313.446476),
        ("moe", 0.0, 211.397247, 211.397247),
        ("moe", 0.01, 209.551215, 209.521215),
        ("moe", 10.0, 884.865056, 874.865056),
        pytest.param("llama3-70b", 1.0, 3848.833053, 3848.833053, marks=pytest.mark.long),
    ],
)
def test_the_controllers_take_what_the_reference_says(
    name: str, delay_ms: float, reactive_ms: float, provisioned_ms: float
) -> None:
    one = request(*load_past(name), reconfiguration_ms=delay_ms)
    assert run_reactive(one, never).iteration_ms == pytest.approx(reactive_ms, abs=1e-6)
    assert run_provisioned(one, never).iteration_ms == pytest.approx(provisioned_ms, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "delay_ms", "most_ms"),
    [
        ("moe", 0.001, 165.613004),
        ("moe", 0.1, 156.642695),
        ("moe", 1.0, 191.897945),
        ("llama3-8b", 10.0, 647.119006),
        ("fsdp", 10.0, 313.446476),
    ],
)
def test_plans_on_one_clock_are_no_later_than_the_reference_says(
    name: str, delay_ms: float, most_ms: float
) -> None:
    one = request(*load_past(name), reconfiguration_ms=delay_ms)
    assert run_scheduled(one, never).iteration_ms <= most_ms + 1e-6


@pytest.mark.parametrize(
    ("name", "ports", "expected_ms"),
    [
        ("moe-n8l4-seed0", 4, 445.351452),
        ("moe-n8l4-seed1", 2, 657.063570),
        ("moe-n8l4-seed1", 4, 398.704238),
        ("moe-n8l4-seed1", 8, 268.197638),
        ("moe-n16l4-seed0", 4, 521.081663),
        ("moe-n16l4-seed1", 4, 496.281203),
        ("llama3-8b", 2, 554.296437),
        ("moe", 2, 219.674657),
    ],
)
def test_a_packet_switch_shared_fairly_takes_what_the_reference_says(
    name: str, ports: int, expected_ms: float
) -> None:
    assert fair_ms(*load_past(name), ports) == pytest.approx(expected_ms, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "expected_ms"), [("llama3-8b", 647.119006), ("moe", 368.572939), ("fsdp", 244.741196)]
)
def test_fixed_circuits_take_what_the_reference_says(name: str, expected_ms: float) -> None:
    one = request(*load_past(name))
    assert run_static(one, never).iteration_ms == pytest.approx(expected_ms, abs=1e-6)
