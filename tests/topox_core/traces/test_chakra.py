"""Chakra traces: written, read back, read as others write them; what ASTRA-sim's rules make of ours."""

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.refusal import refusal
from tests.topox_core.traces.chakra_peer import Halted, Peer
from tests.topox_core.traces.made import JOBS, recordings
from tests.topox_core.traces.reading_back import imported
from topox_core.cli.main import main
from topox_core.io.task_graph_file import dump_graph_json, load_graph
from topox_core.io.task_graph_rules import validated
from topox_core.model.task_graph import Task
from topox_core.traces.chakra.astra_sim import read_network
from topox_core.traces.chakra.nodes import (
    COLLECTIVE,
    COMPUTE,
    RECEIVE,
    SEND,
    global_metadata,
    groups_of_text,
    node_bytes,
    read_chakra,
)
from topox_core.traces.chakra.reading import Machine, import_chakra
from topox_core.traces.chakra.writing import ChakraFiles
from topox_core.traces.importing import Imported
from topox_core.traces.run_graph import at_speed, replay_ms
from topox_core.traces.source import ImportSettings, Refused, Source
from topox_core.workloads.samples import load_sample


def read_back(made: ChakraFiles, **settings: Any) -> Imported:
    files = [Source.of_bytes(f"x.{server}.et", data) for server, data in made.files.items()]
    return import_chakra(files, ImportSettings(**settings), groups_of_text(json.loads(made.groups)))


@pytest.mark.parametrize("job", JOBS)
def test_out_and_in_again_loses_no_dependency(job: str) -> None:
    found = imported(recordings(JOBS[job](), 100.0))
    back = read_back(ChakraFiles(found.graph))
    there, again = (
        Counter((t.kind, t.size_bytes) for t in one.graph.tasks if t.size_bytes)
        for one in (found, back)
    )
    assert there == again
    for gbps in (25.0, 100.0, 400.0, 1e6):
        before, after = (replay_ms(one.run, at_speed(gbps)) for one in (found, back))
        # Durations are whole microseconds; beside them stand the nanoseconds that were rounded.
        assert after == pytest.approx(before, abs=1e-3)


def test_a_dependency_between_servers_is_a_barrier_of_two() -> None:
    tasks = [
        Task("a", "forward", server=0, duration_ms=1.0),
        Task("b", "forward", dependencies=("a",), server=1, duration_ms=2.0),
        Task(
            "x",
            "communication",
            dependencies=("b",),
            source=0,
            destination=1,
            size_bytes=50_000_000.0,
        ),
        Task("j", "barrier", dependencies=("x", "a")),
        Task("g", "broadcast", dependencies=("j",), members=(0, 1, 2), root=2, size_bytes=1e6),
        Task("c", "update", dependencies=("g",), server=2, duration_ms=0.5),
    ]
    graph = validated("made", tasks)
    made = ChakraFiles(graph)
    assert made.between_servers == 2  # b needs a, and x needs b where it is sent
    back = read_back(made)
    replayed = replay_ms(back.run, at_speed(400.0))
    assert replayed == pytest.approx(1 + 2 + 1 + 1e6 * 8 / 400e6 + 0.5, abs=0.001)
    (broadcast,) = (t for t in back.graph.tasks if t.kind == "broadcast")
    assert broadcast.root == 2 and set(broadcast.members or ()) == {0, 1, 2}
    dropped = read_back(ChakraFiles(graph, drop_dependencies=True))
    assert replay_ms(dropped.run, at_speed(400.0)) < replayed


def wire(*nodes: bytes) -> bytes:
    return b"".join([global_metadata(), *nodes])


def test_a_ring_whose_receives_follow_its_sends_has_no_circle() -> None:
    """Each rank sends, then receives, then computes: waiting for both ends would be a circle."""
    files, sent = [], {"comm_tag": 1, "comm_size": 50_000_000}
    for rank in range(4):
        nodes = wire(
            node_bytes(0, "s", SEND, [], 0, {"comm_src": rank, "comm_dst": (rank + 1) % 4, **sent}),
            node_bytes(
                1, "r", RECEIVE, [0], 0, {"comm_src": (rank - 1) % 4, "comm_dst": rank, **sent}
            ),
            node_bytes(2, "c", COMPUTE, [1], 1_000, {}),
        )
        files.append(Source.of_bytes(f"ring.{rank}.et", nodes))
    found = import_chakra(files, ImportSettings(), {})
    assert found.report["calls"] == 4
    assert found.report["replay_ms"]["400_gbps"] == pytest.approx(2.0)


def test_times_of_nodes_without_a_duration_and_packed_files() -> None:
    facts = {"num_ops": 800_000_000_000, "tensor_size": 1_000}
    data = wire(
        node_bytes(0, "gemm", COMPUTE, [], 0, facts),
        node_bytes(1, "add", COMPUTE, [0], 0, {"tensor_size": 3_350_000_000, "num_ops": 1}),
        node_bytes(7, "all", COLLECTIVE, [1, 99], 0, {"comm_type": 0, "comm_size": 1_000_000}),
        node_bytes(8, "host", COLLECTIVE, [7], 40, {"is_cpu_op": True}),
    )
    found = import_chakra(
        [Source.of_bytes("y.0.et.gz", gzip.compress(data))], ImportSettings(world=2), {}, Machine()
    )
    assert sum(t.duration_ms or 0 for t in found.graph.tasks) == pytest.approx(2.0 + 1.0 + 0.04)
    assert found.report["host_wrappers"] == 1
    assert "1 dependencies name nodes that do not exist" in found.report["checks"][0]["words"]


def test_json_is_read_whatever_its_keys_look_like() -> None:
    nodes = [
        {
            "Id": 1,
            "Name": "a",
            "type": "COMP_NODE",
            "ctrlDeps": [],
            "data_deps": [],
            "runtime": 1000,
            "attr": 7,  # no list of attributes: it is passed over
        },
        {
            "Id": 2,
            "Name": "b",
            "type": 7,
            "ctrlDeps": [2],
            "data_deps": [1],
            "comm_type": 2,
            "commSize": 800,
        },
    ]
    data = Source.of_bytes("z.0.json", json.dumps({"workload_graph": nodes}).encode())
    one = read_chakra(data)
    assert one.nodes[1].waits == (0,) and one.control_ignored == 1
    found = import_chakra([data], ImportSettings(world=4), {})
    assert (
        found.report["calls_by_kind"] == {"all_gather": 1} and found.report["size_bytes"] == 4 * 800
    )


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        (b"", "x.0.et: is empty"),
        (b"\xff\xff\xff", "x.0.et: is no Chakra trace, or is cut, near byte 0"),
        (b"\x05hello\x7f", "x.0.et: is no Chakra trace, or is cut, near byte 6"),
        (global_metadata(), "x.0.et: holds no node"),
        (global_metadata() + b"\x03\x0b\x01\x02", "x.0.et, message 1: is no Chakra node"),
        (
            wire(
                *(node_bytes(i, "c", COMPUTE, [(i - 17 + 1) % 3 + 17], 1, {}) for i in (17, 18, 19))
            ),
            "x.0.et: data_deps are in a cycle of 3 nodes: 17 -> 18 -> 19",
        ),
        (
            wire(node_bytes(41, "g", COLLECTIVE, [], 0, {"comm_type": 0, "pg_name": "5"})),
            "x.0.et, node 41, field pg_name: '5' is not in the groups file",
        ),
        (
            wire(node_bytes(1, "g", COLLECTIVE, [], 0, {"comm_type": 12, "pg_name": "1"})),
            "x.0.et, node 1, field comm_type: must be from 0 to 9 (got 12)",
        ),
        (
            wire(node_bytes(1, "a", COMPUTE, [], 1, {}), node_bytes(1, "b", COMPUTE, [], 1, {})),
            "is used twice",
        ),
    ],
)
def test_what_is_wrong_is_told_in_a_line(nodes: bytes, line: str) -> None:
    assert line in refusal(
        import_chakra, [Source.of_bytes("x.0.et", nodes)], ImportSettings(), {"1": (0, 1)}
    )


def test_a_send_without_a_receive_is_refused() -> None:
    send = node_bytes(0, "s", SEND, [], 0, {"comm_src": 0, "comm_dst": 1, "comm_tag": 4})
    nodes = send, node_bytes(0, "c", COMPUTE, [], 5, {})
    files = [Source.of_bytes(f"x.{rank}.et", wire(node)) for rank, node in enumerate(nodes)]
    with pytest.raises(Refused, match="send 0 to 1, tag 4, number 1: has no receive on rank 1"):
        import_chakra(files, ImportSettings(), {})


def test_the_commands_go_out_and_in(tmp_path: Path, ask: Any) -> None:
    graph = imported(recordings(JOBS["experts"](layers=1), 100.0)).graph
    path, back, prefix = (str(tmp_path / name) for name in ("a.json", "b.taskgraph.json", "out"))
    Path(path).write_bytes(dump_graph_json(graph))
    assert main(["trace", "export", path, "--format", "chakra", "--output", prefix]) == 0
    files = [f"{prefix}.{rank}.et" for rank in range(4)]
    told = ask("trace", "import", *files, "--output", back)
    assert load_graph(Path(back).read_bytes(), back).digest == told["digest"]


GBPS = 8.0
MB = 1e6  # takes 1 ms


def peer_ms(tasks: Sequence[Task], **options: bool) -> float:
    made = ChakraFiles(validated("probe", tasks), GBPS, **options)
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
    made = ChakraFiles(graph, gbps)
    assert Peer(made.files, made.groups, gbps).run_ms() == pytest.approx(ms, rel=1e-4)


def test_collectives_of_the_same_servers_come_in_one_order() -> None:
    """Without it ranks of dlrm-16 take different all-reduces for the next one."""
    graph, cluster = load_sample("dlrm-16")
    gbps = cluster.ports_per_server * cluster.port_gbps
    made = ChakraFiles(graph, gbps)
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
    return Task(name, "forward", dependencies=waits, server=server, duration_ms=ms)


def test_a_dependency_between_servers_is_a_message_of_one_byte() -> None:
    tasks = [computing("a", 0, 3.0), computing("b", 1, 5.0, "a")]
    assert peer_ms(tasks) == pytest.approx(8.0, abs=1e-4)
    assert peer_ms(tasks, drop_dependencies=True) == 5.0


def test_a_barrier_waits_for_the_last_and_holds_nobody_before() -> None:
    """2 and 4 ms, all-reduces meanwhile, then 3 ms on both: 7 ms."""
    early = [Task(f"s{k}", "all_reduce", members=(0, 1), size_bytes=MB / 2) for k in range(3)]
    meet = Task("meet", "barrier", dependencies=("a", "b"))
    after = [computing("c", 0, 3.0, "meet"), computing("d", 1, 3.0, "meet")]
    tasks = [meet, computing("a", 0, 2.0), computing("b", 1, 4.0), *after, *early]
    assert peer_ms(tasks) == pytest.approx(7.0, abs=1e-3)


def test_what_only_the_receiver_of_a_transfer_knows_is_waited_for_there() -> None:
    sent = Task("x", "communication", source=0, destination=1, size_bytes=5 * MB)
    assert peer_ms([sent, computing("c", 2, 3.0, "x")]) == pytest.approx(8.0, abs=1e-4)


def test_nothing_has_no_bytes_and_a_broadcast_takes_its_time() -> None:
    empty = Task("x", "communication", dependencies=("a",), source=0, destination=1, size_bytes=0.0)
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
        Task("late", "all_reduce", dependencies=("a",), members=(0, 1), size_bytes=MB),
        Task("early", "all_reduce", dependencies=("b",), members=(0, 1), size_bytes=MB),
    ]
    made = ChakraFiles(validated("probe", tasks), GBPS)
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
