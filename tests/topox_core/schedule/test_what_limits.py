"""What limits a job is said of what computing takes alone and of the busiest ports, dark time included."""

from dataclasses import replace

import numpy as np
import pytest

from topox_core.fabrics.planning.scheduled import schedule
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.schedule.circuits.standing import crossed
from topox_core.schedule.results.what_limits import busiest_ports, most_data, what_limits
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample

PORTS, COMPUTE = "the out-ports of server 0 are busy for", "computing alone takes at least 6 ms"
# a, then x, b and z in series: 2 + 3 + 4 + 1 ms; server 0 sends x and y, 3 + 2 ms. With a delay its port
# is dark between the two, and c follows y: 2 + 3 + 2 + 2 + 2 ms.
BLACKBOARD = (
    (0.0, f"Computing limits this job: {COMPUTE} of the 10 ms, and {PORTS} 5 ms."),
    (2.0, f"Ports limit this job: {PORTS} 7 ms of the 11 ms, and {COMPUTE}."),
)


def planned(name: str, delay_ms: float = 0.0) -> Execution:
    graph, cluster = load_sample(name)
    settings = Settings.of(switching="planned", engine="list", iteration="first")
    made = schedule(graph, cluster.changed(reconfiguration_ms=delay_ms), settings).execution
    assert made is not None
    return crossed(made)


@pytest.mark.parametrize(("delay_ms", "said"), BLACKBOARD)
def test_the_verdict_on_a_job_by_hand(delay_ms, said):
    assert (
        what_limits(planned("blackboard", delay_ms), exclusive_devices=True).replace("\u00a0", " ")
        == said
    )


def test_ports_limit_a_sharded_transformer_and_each_of_two_counts():
    execution = planned("fsdp")
    graph, cluster = execution.graph, execution.cluster
    sent_ms = np.bincount(
        graph.source[graph.source >= 0], (execution.end_ms - execution.start_ms)[graph.source >= 0]
    )
    words, busy_ms = busiest_ports(execution)
    assert busy_ms == pytest.approx(sent_ms.max() / cluster.ports_per_server)
    assert what_limits(execution, True).startswith(f"Ports limit this job: {words} are busy for ")


@pytest.mark.parametrize("delay_ms", [0.0, 2.0])
def test_data_through_ports_by_hand_without_the_dark_time(delay_ms):
    assert most_data(planned("blackboard", delay_ms)) == ("the out-ports of server 0", 5.0)


def test_what_a_server_forwards_goes_through_its_ports():
    """On a ring 0 1 2 of one port each 8 MB from 0 to 2 pass server 1: 8 ms in and 8 out at 1 MB/ms, beside 4 MB of its own."""
    tasks = (
        Task("far", "communication", dependencies=(), source=0, destination=2, size_bytes=8e6),
        Task("own", "communication", dependencies=(), source=1, destination=2, size_bytes=4e6),
        Task("home", "communication", dependencies=(), source=2, destination=0, size_bytes=1e6),
    )
    cluster = Cluster(servers=3, ports_per_server=1, switches=1, ports_per_switch=3, port_gbps=8.0)
    job = TaskGraph("by hand", tasks)
    fixed = schedule(job, cluster, Settings.of(switching="fixed")).execution
    assert fixed.layout.circuits.tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert most_data(fixed) == ("the out-ports of server 1", pytest.approx(12.0))


def test_in_half_duplex_a_port_is_busy_with_what_it_sends_and_what_it_receives():
    whole = planned("race")
    both = replace(whole, cluster=whole.cluster.changed(duplex="half"))
    assert busiest_ports(both)[1] > busiest_ports(whole)[1]
    assert busiest_ports(both)[0].startswith("the ports of server")


def test_a_job_that_mostly_waits_is_limited_by_neither():
    whole = planned("blackboard")
    late = replace(whole, end_ms=whole.end_ms + 10.0)
    assert what_limits(late, True).startswith("Neither computing nor ports limit this job alone: ")


def test_without_any_transfer_computing_limits():
    whole = planned("blackboard")
    said = what_limits(replace(whole, circuits=Circuits.none()), True)
    assert said.startswith("Computing limits this job: computing alone takes at least 6")
    assert said.endswith("are busy for 0\u00a0ms.")
