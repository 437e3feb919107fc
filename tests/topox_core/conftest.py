"""A small pipeline on two switches, built by hand: what figures and measures are tested on."""

import numpy as np
import pytest

from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution
from topox_core.model.lowering_choices import Lowering
from topox_core.model.transfer_graph import COMPUTE, TRANSFER, TransferGraph


def build(tasks: list[tuple], circuits: list[tuple], cluster: Cluster) -> Execution:
    """Build an execution from rows.

    Tasks: (id, kind word, parallelism, server or (source, destination), start, end, predecessors).
    Circuits: (switch, source, destination, setup, start, end, task id, changed).
    """
    ids = tuple(t[0] for t in tasks)
    at = {name: i for i, name in enumerate(ids)}
    moves = np.array([isinstance(t[3], tuple) for t in tasks])
    ptr = np.concatenate(([0], np.cumsum([len(t[6]) for t in tasks]))).astype(np.int32)
    graph = TransferGraph(
        ids=ids,
        kind=np.where(moves, TRANSFER, COMPUTE).astype(np.uint8),
        origin=np.arange(len(tasks), dtype=np.int32),
        server=np.array([-1 if isinstance(t[3], tuple) else t[3] for t in tasks], np.int32),
        device=np.where(moves, -1, 0).astype(np.int32),
        source=np.array([t[3][0] if isinstance(t[3], tuple) else -1 for t in tasks], np.int32),
        destination=np.array([t[3][1] if isinstance(t[3], tuple) else -1 for t in tasks], np.int32),
        duration_ms=np.array([t[5] - t[4] for t in tasks], float),
        size_bytes=np.where(moves, 1e6, np.nan),
        pred_ptr=ptr,
        pred_idx=np.array([at[p] for t in tasks for p in t[6]], np.int32),
        task_kind=tuple(t[1] for t in tasks),
        parallelism=tuple(t[2] for t in tasks),
        lowering=Lowering(),
        digest="hand",
    )
    columns = list(zip(*circuits, strict=True)) if circuits else [()] * 8
    whole = np.array([columns[0], columns[1], columns[2]], np.int32)
    zero = np.zeros(len(circuits), np.int32)
    laid = Circuits(
        np.array([at[name] for name in columns[6]], np.int32),
        whole[0],
        zero,
        zero,
        np.array(columns[7], bool),
        whole[1],
        whole[2],
        *(np.array(columns[i], float) for i in (3, 4, 5)),
    )
    return Execution(
        graph,
        cluster,
        np.array([t[4] for t in tasks], float),
        np.array([t[5] for t in tasks], float),
        laid,
    )


@pytest.fixture
def pipeline() -> Execution:
    """Two micro-batches through three stages and back, then a gradient ring; the second switch turns once, 2 ms dark."""
    cluster = Cluster(
        servers=3,
        ports_per_server=2,
        switches=2,
        ports_per_switch=3,
        port_gbps=100,
        reconfiguration_ms=2.0,
    )
    tasks = [
        ("f0s0", "forward", "", 0, 0, 4, []),
        ("f1s0", "forward", "", 0, 4, 8, ["f0s0"]),
        ("a0", "communication", "pp", (0, 1), 4, 6, ["f0s0"]),
        ("f0s1", "forward", "", 1, 6, 10, ["a0"]),
        ("a1", "communication", "pp", (0, 1), 8, 10, ["f1s0"]),
        ("f1s1", "forward", "", 1, 10, 14, ["a1"]),
        ("b0", "communication", "pp", (1, 2), 10, 12, ["f0s1"]),
        ("f0s2", "forward", "", 2, 12, 16, ["b0"]),
        ("b1", "communication", "pp", (1, 2), 14, 16, ["f1s1"]),
        ("f1s2", "forward", "", 2, 16, 20, ["b1"]),
        ("B2", "backward", "", 2, 20, 28, ["f0s2", "f1s2"]),
        ("g2", "communication", "dp", (2, 0), 28, 31, ["B2"]),
        ("g1", "communication", "dp", (1, 0), 33, 36, ["B2"]),
        ("u0", "update", "", 0, 36, 37, ["g2", "g1"]),
    ]
    circuits = [
        (0, 0, 1, 4, 4, 6, "a0", True),
        (0, 0, 1, 8, 8, 10, "a1", False),
        (0, 1, 2, 10, 10, 12, "b0", True),
        (0, 1, 2, 14, 14, 16, "b1", False),
        (1, 2, 0, 28, 28, 31, "g2", True),
        # The in-port of server 0 on switch 1 turns from server 2 to server 1.
        (1, 1, 0, 31, 33, 36, "g1", True),
    ]
    return build(tasks, circuits, cluster)


@pytest.fixture
def crowd() -> Execution:
    """Sixteen servers, 12,000 tasks and 4,000 transfers: for budgets."""
    servers, each = 16, 750
    cluster = Cluster(
        servers=servers, ports_per_server=4, switches=4, ports_per_switch=16, port_gbps=100
    )
    tasks = [
        (
            f"s{s}t{k}",
            "backward" if k % 2 else "forward",
            "",
            s,
            4 * k,
            4 * k + 3,
            [f"s{s}t{k - 1}"] if k else [],
        )
        for s in range(servers)
        for k in range(each)
    ]
    tasks += [
        (
            f"s{s}c{k}",
            "communication",
            "ep",
            (s, (s + 1 + k % 4) % servers),
            12 * k + 3,
            12 * k + 7,
            [f"s{s}t{3 * k}"],
        )
        for s in range(servers)
        for k in range(250)
    ]
    circuits = [
        (k % 4, s, (s + 1 + k % 4) % servers, 12 * k + 2, 12 * k + 3, 12 * k + 7, f"s{s}c{k}", True)
        for k in range(250)
        for s in range(servers)
    ]
    return build(tasks, circuits, cluster)
