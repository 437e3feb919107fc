"""The rules of circuits on continuous time, checked one by one; shares no code with the controllers."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np

from topox_core.model.execution import Execution
from topox_core.model.transfer_graph import COMPUTE, TRANSFER

EPS = 1e-7


def broken_rules(execution: Execution, exclusive_devices: bool = True) -> list[str]:
    """Every rule that an execution breaks, in words; empty for a valid one.

    Times may be longer than a task needs (rounded up to slots), never shorter.
    """
    return [
        *_tasks(execution, exclusive_devices),
        *_carried(execution),
        *_ports(execution),
        *_switches(execution),
    ]


def _tasks(execution: Execution, exclusive_devices: bool) -> list[str]:
    graph, cluster, start, end = (
        execution.graph,
        execution.cluster,
        execution.start_ms,
        execution.end_ms,
    )
    wrong = []
    on_device = defaultdict(list)
    for i in range(len(graph)):
        needs = 0.0
        if graph.kind[i] == COMPUTE:
            needs = graph.duration_ms[i]
            if needs > 0:
                on_device[int(graph.server[i]), int(graph.device[i])].append(i)
        elif graph.kind[i] == TRANSFER:
            given = graph.duration_ms[i]
            needs = (
                cluster.latency_us / 1000 + graph.size_bytes[i] * 8 / cluster.port_gbps / 1e6
                if np.isnan(given)
                else given
            )
        if start[i] < -EPS or end[i] - start[i] < needs - EPS:
            wrong.append(f"{graph.ids[i]} runs from {start[i]} to {end[i]}, but needs {needs} ms")
        wrong += [
            f"{graph.ids[i]} starts at {start[i]}, before {graph.ids[j]} ends at {end[j]}"
            for j in graph.pred_idx[graph.pred_ptr[i] : graph.pred_ptr[i + 1]]
            if start[i] < end[j] - EPS
        ]
    for device, tasks in on_device.items() if exclusive_devices else ():
        tasks.sort(key=lambda i: start[i])
        wrong += [
            f"{graph.ids[a]} and {graph.ids[b]} share device {device}"
            for a, b in pairwise(tasks)
            if start[b] < end[a] - EPS
        ]
    return wrong


def _carried(execution: Execution) -> list[str]:
    """One circuit carries each transfer from its start to its end, between its own two servers."""
    graph, circuits = execution.graph, execution.circuits
    rows = defaultdict(list)
    for row, node in enumerate(circuits.node.tolist()):
        rows[node].append(row)
    wrong = []
    for i in np.flatnonzero(
        (graph.kind == TRANSFER) & (execution.end_ms > execution.start_ms)
    ).tolist():
        if len(rows[i]) != 1:
            wrong.append(f"{graph.ids[i]} is carried by {len(rows[i])} circuits")
            continue
        row = rows.pop(i)[0]
        ends = (circuits.source[row], circuits.destination[row]) == (
            graph.source[i],
            graph.destination[i],
        )
        carries = circuits.start_ms[row], circuits.end_ms[row]
        times = np.allclose(carries, (execution.start_ms[i], execution.end_ms[i]), atol=EPS)
        if not ends or not times:
            wrong.append(f"the circuit of {graph.ids[i]} is another one's")
    return wrong + [
        f"a circuit carries node {node}, which is no transfer"
        for node, left in rows.items()
        if left
    ]


def _ports(execution: Execution) -> list[str]:
    """A port holds one circuit from set-up to end, and is dark for the delay before a circuit it did not have."""
    cluster, circuits = execution.cluster, execution.circuits
    k = cluster.ports_per_server // cluster.switches
    held = defaultdict(list)
    wrong = []
    for row in range(len(circuits)):
        here = (
            int(circuits.source[row]),
            int(circuits.switch[row]),
            int(circuits.source_port[row]),
        )
        there = (
            int(circuits.destination[row]),
            int(circuits.switch[row]),
            int(circuits.destination_port[row]),
        )
        if not (0 <= here[1] < cluster.switches and 0 <= here[2] < k and 0 <= there[2] < k):
            wrong.append(f"circuit {row} uses a port that is not there")
        for port, side in ((here, "out"), (there, "in")):
            held[port if cluster.duplex == "half" else (*port, side)].append(
                (float(circuits.setup_ms[row]), row, (here, there))
            )
    turned = set()
    for port, holders in held.items():
        holders.sort()
        for (_, first, before), (setup, row, circuit) in pairwise(holders):
            if setup < circuits.end_ms[first] - EPS:
                wrong.append(
                    f"port {port} is taken at {setup} from a circuit in use until {circuits.end_ms[first]}"
                )
            if circuit != before:
                turned.add(row)
    for row in range(len(circuits)):
        dark = circuits.start_ms[row] - circuits.setup_ms[row]
        if bool(circuits.changed[row]) != (row in turned):
            wrong.append(
                f"circuit {row} is{'' if circuits.changed[row] else ' not'} marked as changed"
            )
        if dark < (cluster.reconfiguration_ms if row in turned else 0.0) - EPS:
            wrong.append(f"circuit {row} is dark for {dark} ms only")
        if circuits.setup_ms[row] < -EPS:
            wrong.append(f"circuit {row} is set up before the iteration")
    return wrong


def _switches(execution: Execution) -> list[str]:
    """Eq. 7: at most d_OCS circuits at once on a switch, dark ones included."""
    cluster, circuits = execution.cluster, execution.circuits
    wrong = []
    for switch in range(cluster.switches):
        mine = np.flatnonzero(circuits.switch == switch)
        # At equal times a circuit ends before the next begins; a hair apart counts as equal.
        steps = sorted(
            [(round(float(circuits.setup_ms[i]) / EPS), 1) for i in mine]
            + [(round(float(circuits.end_ms[i]) / EPS - 0.5), -1) for i in mine]
        )
        most = int(np.cumsum([step for _, step in steps]).max(initial=0))
        if most > cluster.ports_per_switch:
            wrong.append(f"switch {switch} carries {most} circuits at once")
    return wrong
