"""Where the bytes went in an execution whose transfers hold circuits: direct, port by port."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topox_core.fabrics.run import Traffic
from topox_core.model.execution import Execution
from topox_core.model.measures import in_port, out_port
from topox_core.model.transfer_graph import FloatArray, IntArray


def circuit_traffic(execution: Execution) -> Traffic:
    """Return the traffic of direct circuits: bandwidth tax 1, and how busy each port is.

    One row an out-port (its destination -1, the switch) and one an in-port (its source -1). Dark
    time and idle circuits are not use.
    """
    circuits, cluster = execution.circuits, execution.cluster
    time = execution.makespan_ms or 1.0
    out_server, sent = _carrying(execution, out_port(circuits), circuits.source)
    in_server, received = _carrying(execution, in_port(circuits), circuits.destination)
    core = -np.ones(len(out_server) + len(in_server), np.int32)
    source, destination = core.copy(), core.copy()
    source[: len(out_server)] = out_server
    destination[len(out_server) :] = in_server
    busy = np.bincount(out_server, sent, cluster.servers) / (cluster.ports_per_server * time)
    return Traffic(
        bandwidth_tax=1.0,
        mean_hops=1.0,
        longest_hops=1 if len(circuits) else 0,
        link_source=source,
        link_destination=destination,
        link_gbps=np.full(len(core), cluster.port_gbps),
        link_busy=np.concatenate([sent, received]) / time,
        port_busy=busy,
    )


def _carrying(
    execution: Execution, port: NDArray[np.int64], server: IntArray
) -> tuple[IntArray, FloatArray]:
    """Return server and carrying time of each port in use; a shared circuit counts once."""
    circuits = execution.circuits
    if not len(circuits):
        return np.zeros(0, np.int32), np.zeros(0)
    order = np.lexsort((circuits.start_ms, port))
    used, first, number = np.unique(port[order], return_index=True, return_inverse=True)
    begin, end = circuits.start_ms[order], circuits.end_ms[order]
    # Each port's clock is shifted beyond the last one's, so that one running maximum serves all.
    shift = (float(end.max()) + 1.0) * number
    reach = np.maximum.accumulate(end + shift)
    before = np.concatenate(([-np.inf], reach[:-1])) - shift
    time = np.clip(end - np.maximum(begin, before), 0.0, None)
    carrying: FloatArray = np.bincount(number, time, len(used)).astype(np.float64)
    return server[order][first], carrying
