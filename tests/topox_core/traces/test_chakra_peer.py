"""What is exported means the same to a reader that follows ASTRA-sim's rules, and what it writes means the same here."""

import json
from collections.abc import Sequence

import pytest

from tests.topox_core.traces.chakra_peer import Halted, Peer
from topox_core.io.task_graph_rules import validated
from topox_core.model.task_graph import Task
from topox_core.traces.chakra_in import import_chakra
from topox_core.traces.chakra_nodes import COLLECTIVE, global_metadata, node_bytes
from topox_core.traces.chakra_out import export_chakra
from topox_core.traces.network import read_network
from topox_core.traces.source import ImportSettings, Source
from topox_core.workloads.samples import load_sample

GBPS = 8.0
MB = 1e6  # takes 1 ms


def peer_ms(tasks: Sequence[Task], **options: bool) -> float:
    made = export_chakra(validated("probe", tasks), GBPS, **options)
    return Peer(made.files, made.groups, GBPS).run_ms()


# Measured in ASTRA-sim 2 with a free reduction; the last four take the lowest number first, not who is ready.
@pytest.mark.parametrize(
    ("name", "ms"),
    [
        ("fsdp", 182.461),
        ("llama3-8b", 555.288),
        ("dlrm-16", 36.3092),
        ("llama3-70b", 2769.357),
        ("moe", 126.098),
        ("race", 77.171),
        ("patience", 17.0),
        ("blackboard", 10.0),
    ],
)
def test_samples_take_there_what_was_measured(name: str, ms: float) -> None:
    graph, cluster = load_sample(name)
    gbps = cluster.ports_per_server * cluster.port_gbps
    made = export_chakra(graph, gbps)
    assert Peer(made.files, made.groups, gbps).run_ms() == pytest.approx(ms, rel=1e-4)


def test_collectives_of_the_same_servers_come_in_one_order() -> None:
    """Without it ranks of dlrm-16 take different all-reduces for the next one."""
    graph, cluster = load_sample("dlrm-16")
    gbps = cluster.ports_per_server * cluster.port_gbps
    made = export_chakra(graph, gbps)
    peer = Peer(made.files, made.groups, gbps)
    number = {task.id: 2 * at + 1 for at, task in enumerate(graph.tasks)}
    for (rank, node), one in peer.nodes.items():
        if one.type == COLLECTIVE:
            task = graph.tasks[(node - 1) // 2]
            one.waits = {number[name] for name in task.dependencies} & {
                there for there_rank, there in peer.nodes if there_rank == rank
            }
    peer.link()
    with pytest.raises(Halted, match="come to different collectives"):
        peer.run_ms()


def computing(name: str, server: int, ms: float, *waits: str) -> Task:
    return Task(name, "forward", waits, server=server, duration_ms=ms)


def test_a_dependency_between_servers_is_a_message_of_one_byte() -> None:
    tasks = [computing("a", 0, 3.0), computing("b", 1, 5.0, "a")]
    assert peer_ms(tasks) == pytest.approx(8.0, abs=1e-4)
    assert peer_ms(tasks, drop_dependencies=True) == 5.0


def test_a_barrier_waits_for_the_last_and_holds_nobody_before() -> None:
    """2 and 4 ms, all-reduces meanwhile, then 3 ms on both: 7 ms."""
    early = [Task(f"s{k}", "all_reduce", members=(0, 1), size_bytes=MB / 2) for k in range(3)]
    meet = Task("meet", "barrier", ("a", "b"))
    after = [computing("c", 0, 3.0, "meet"), computing("d", 1, 3.0, "meet")]
    tasks = [meet, computing("a", 0, 2.0), computing("b", 1, 4.0), *after, *early]
    assert peer_ms(tasks) == pytest.approx(7.0, abs=1e-3)


def test_what_only_the_receiver_of_a_transfer_knows_is_waited_for_there() -> None:
    sent = Task("x", "communication", source=0, destination=1, size_bytes=5 * MB)
    assert peer_ms([sent, computing("c", 2, 3.0, "x")]) == pytest.approx(8.0, abs=1e-4)


def test_nothing_has_no_bytes_and_a_broadcast_takes_its_time() -> None:
    empty = Task("x", "communication", ("a",), source=0, destination=1, size_bytes=0.0)
    tasks = [computing("a", 0, 3.0), empty, computing("b", 1, 5.0, "x")]
    assert peer_ms(tasks) == pytest.approx(8.0, abs=1e-4)
    broadcast = Task("g", "broadcast", members=(0, 1, 2), root=2, size_bytes=8 * MB)
    assert peer_ms([broadcast]) == pytest.approx(8.0)


@pytest.mark.parametrize("us", [0.0, 0.4, 1.6])
def test_a_thousand_computations_take_what_they_take_together(us: float) -> None:
    tasks = [computing(f"c{k}", 0, us / 1000, *((f"c{k - 1}",) if k else ())) for k in range(1_000)]
    assert peer_ms(tasks) == pytest.approx(us, abs=1e-9)


def test_the_size_of_an_all_gather_is_what_one_rank_puts_in() -> None:
    """8 MB gathered by four at 8 Gbit/s take 6 ms there; a node of 2 MB is 8 MB here."""
    gathered = Task("g", "all_gather", members=(0, 1, 2, 3), size_bytes=8 * MB)
    assert peer_ms([gathered]) == pytest.approx(6.0)
    facts = {"comm_type": 2, "comm_size": 2_000_000, "pg_name": "0"}
    node = global_metadata() + node_bytes(1, "g", COLLECTIVE, [], 0, facts)
    files = [Source.of_bytes(f"x.{rank}.et", node) for rank in range(4)]
    # "0" is the group of all ranks where no groups file names it.
    (task,) = import_chakra(files, ImportSettings(), {}).graph.tasks
    assert (task.kind, task.size_bytes, task.members) == ("all_gather", 8 * MB, (0, 1, 2, 3))


def test_the_order_of_collectives_binds_nobody_who_reads_the_files_back() -> None:
    tasks = [
        computing("a", 0, 4.0),
        computing("b", 1, 1.0),
        Task("late", "all_reduce", ("a",), members=(0, 1), size_bytes=MB),
        Task("early", "all_reduce", ("b",), members=(0, 1), size_bytes=MB),
    ]
    made = export_chakra(validated("probe", tasks), GBPS)
    assert Peer(made.files, made.groups, GBPS).run_ms() == pytest.approx(5.0)
    files = [Source.of_bytes(f"x.{rank}.et", data) for rank, data in made.files.items()]
    groups = {name: tuple(ranks) for name, ranks in json.loads(made.groups).items()}
    back = import_chakra(files, ImportSettings(), groups)
    calls = {task.id: task for task in back.graph.tasks if task.kind == "all_reduce"}
    assert len(calls) == 2 and not any(
        set(one.dependencies) & calls.keys() for one in calls.values()
    )


@pytest.mark.parametrize(("kind", "us"), [("Ring", 0.5), ("FullyConnected", 0.5), ("Switch", 1.0)])
def test_a_network_files_units(kind: str, us: float) -> None:
    """2^30 bytes a second are one of bandwidth; through a switch a message takes two hops."""
    text = f"topology: [ {kind} ]\nnpus_count: [ 8 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n"
    cluster, _ = read_network(Source.of_bytes("net.yml", text.encode()), ports=1)
    assert cluster.port_gbps == pytest.approx(429.4967296)
    assert cluster.latency_us == pytest.approx(us)
