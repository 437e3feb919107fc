"""What limits a job, computing or ports: how long either takes at least or is busy, in one sentence."""

import numpy as np

from topox_core.compiled import at_once
from topox_core.model.arrays.csr import entries_of, grouped
from topox_core.model.arrays.intervals import added_ms
from topox_core.model.arrays.passes import heads, topological_order
from topox_core.model.execution import Execution, in_port, out_port
from topox_core.model.transfer_graph import (
    COMPUTE,
    TRANSFER,
    FloatArray,
    TransferGraph,
    bytes_per_ms,
    work_bytes,
)
from topox_core.schedule.circuits.standing import paths_of_transfers
from topox_core.text.numbers import time

# Of the longer time that share the shorter one has where both limit a job alike, and of the iteration
# that which the longer one has at least.
ALIKE, FEW = 0.9, 0.5


def what_limits(execution: Execution, exclusive_devices: bool) -> str:
    """Say whether computing or ports limit a job.

    Computing is what the tasks take on a network of any speed, in their order and on their devices;
    the ports are those of the busiest server, while they carry data or are dark.

    Parameters
    ----------
    execution
        With a row for each transfer and circuit; see :func:`~topox_core.schedule.circuits.standing.crossed`.
    exclusive_devices
        Whether a device runs one task at a time.
    """
    compute_ms = computing_alone_ms(execution.graph, exclusive_devices)
    whole_ms = execution.makespan_ms
    ports, ports_ms = busiest_ports(execution)
    (most_ms, verdict, first), (least_ms, _, second) = sorted(
        [
            (
                compute_ms,
                "Computing limits this job",
                f"computing alone takes at least {time(compute_ms)}",
            ),
            (ports_ms, "Ports limit this job", f"{ports} are busy for {time(ports_ms)}"),
        ],
        reverse=True,
    )
    if most_ms < FEW * whole_ms:
        verdict = "Neither computing nor ports limit this job alone"
    elif least_ms >= ALIKE * most_ms:
        verdict = "Computing and ports limit this job alike"
    return f"{verdict}: {first} of the {time(whole_ms)}, and {second}."


def computing_alone_ms(graph: TransferGraph, exclusive_devices: bool) -> float:
    """Return what computing takes at least on a network of any speed: the longest chain of tasks, or the busiest device."""
    length_ms = np.where(graph.kind == COMPUTE, np.nan_to_num(graph.duration_ms), 0.0)
    # A first page does not wait for the compiler.
    order = at_once(topological_order)(graph.pred_ptr, *graph.successors)
    chain_ms = at_once(heads)(order, graph.pred_ptr, graph.pred_idx, length_ms) + length_ms
    device = graph.devices(exclusive_devices)[0]
    load_ms = np.bincount(device[device >= 0], length_ms[device >= 0])
    return float(max(chain_ms.max(initial=0.0), load_ms.max(initial=0.0)))


def busiest_ports(execution: Execution) -> tuple[str, float]:
    """Return the busiest ports of a server in words, and how long each of them carries data or is dark, in the mean (ms)."""
    cluster, circuits = execution.cluster, execution.circuits
    out_ms, in_ms = (
        np.bincount(server, added_ms(port, circuits.setup_ms, circuits.end_ms), cluster.servers)
        / cluster.ports_per_server
        for server, port in (
            (circuits.source, out_port(circuits)),
            (circuits.destination, in_port(circuits)),
        )
    )
    return _busiest(out_ms, in_ms, cluster.duplex == "half")


def most_data(execution: Execution) -> tuple[str, float]:
    """Return the ports of a server through which most data goes in words, and how long it takes at full speed, in the mean (ms).

    What a server forwards goes through its ports as well. Dark time does not count.
    """
    graph, cluster = execution.graph, execution.cluster
    layout, rates = execution.layout, execution.rates
    size, sent = work_bytes(graph, cluster), np.flatnonzero(graph.kind == TRANSFER)
    data, ends = size[sent], (graph.source[sent], graph.destination[sent])
    if layout is not None and rates is not None:
        node, path = paths_of_transfers(execution, rates)
        hops, hop_link = grouped(rates.hop_path, rates.hop_link, len(rates.source))
        link = hop_link[entries_of(hops, path)]
        data = np.repeat(size[node] / np.bincount(node)[node], np.diff(hops)[path])
        ends = layout.links[0][link], layout.links[1][link]
    full = cluster.ports_per_server * bytes_per_ms(cluster.port_gbps)
    out_ms, in_ms = (np.bincount(end, data, cluster.servers) / full for end in ends)
    return _busiest(out_ms, in_ms, cluster.duplex == "half")


def _busiest(out_ms: FloatArray, in_ms: FloatArray, half: bool) -> tuple[str, float]:
    """Return which server's ports have the longest time, and that; of servers alike the first, whatever the last digits."""
    out_ms, in_ms = np.round(out_ms, 6), np.round(in_ms, 6)
    sides = (
        {"the ports": out_ms + in_ms} if half else {"the out-ports": out_ms, "the in-ports": in_ms}
    )
    words = max(sides, key=lambda one: float(sides[one].max()))
    return f"{words} of server {int(sides[words].argmax())}", float(sides[words].max())
