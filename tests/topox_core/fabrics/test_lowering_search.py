"""What is left free is chosen, and the critical path is the least over all that may be."""

from dataclasses import replace

import pytest

from tests.conftest import long_after
from topox_core.check.checker import check
from topox_core.fabrics.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schedule.bounds.open_bound import least_chain
from topox_core.schedule.result_file import to_record
from topox_core.schedule.settings import Settings
from topox_core.workloads.catalogue import generate
from topox_core.workloads.samples import SAMPLES, load_sample

FREE = replace(Settings.of("physical", engine="list"), free=("rings", "algorithm"))
# On moe the path of one ring, 98.9 ms, is above the bound; on llama3-8b that of all rings on one port each.
FIRST = ("moe", "llama3-8b")


@pytest.mark.parametrize(
    "name", long_after(2, [*FIRST, *(name for name in SAMPLES if name not in FIRST)])
)
def test_no_critical_path_is_above_the_bound_of_a_sample(name: str) -> None:
    graph, cluster = load_sample(name)
    path_ms, path = least_chain(graph, cluster, FREE)
    assert 0 < path_ms <= schedule(graph, cluster, FREE).bound_ms * (1 + 1e-9)
    assert path


@pytest.mark.parametrize(
    "name", long_after(1, ["moe", *(name for name in SAMPLES if name != "moe")])
)
def test_a_first_plan_is_checked_and_no_shorter_than_the_list_schedule(name: str) -> None:
    graph, cluster = load_sample(name)
    first = schedule(graph, cluster, FREE, quickly=True)
    whole = schedule(graph, cluster, FREE)
    assert check(graph, cluster, to_record(first)).ok
    assert whole.makespan_ms <= first.makespan_ms * (1 + 1e-9)
    assert first.bound_ms == pytest.approx(whole.bound_ms), "both over every lowering"


# The first three are planned in a fraction of a second; what a search has to improve takes several.
PORTS = [(4, 1), (5, 2), (3, 4), *((seed, ports) for seed in (0, 1, 7) for ports in (1, 2, 4))]


@pytest.mark.parametrize(("seed", "ports"), long_after(3, PORTS))
def test_no_critical_path_is_above_the_bound_of_a_random_graph(seed: int, ports: int) -> None:
    graph, cluster = generate("random-layered", {"seed": seed, "width": 4, "layers": 5})
    cluster = cluster.changed(ports_per_server=ports, switches=ports)
    path_ms, _ = least_chain(graph, cluster, FREE)
    assert path_ms <= schedule(graph, cluster, FREE).bound_ms * (1 + 1e-9)


def test_a_critical_path_by_hand() -> None:
    # 4 ms of computing, then 8 MB on two ports of 1 MB/ms each.
    tasks = (
        Task("a", "forward", (), server=0, device=0, duration_ms=4.0),
        Task("x", "communication", ("a",), source=0, destination=1, size_bytes=8e6),
    )
    cluster = Cluster(servers=2, ports_per_server=2, switches=2, ports_per_switch=2, port_gbps=8.0)
    assert least_chain(TaskGraph("by hand", tasks), cluster, FREE) == (
        pytest.approx(8.0),
        ("a", "x"),
    )
