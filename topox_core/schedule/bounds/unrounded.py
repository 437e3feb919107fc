"""Lower bounds of an iteration on a fabric in ms, and what binds in words.

The critical path and the loads of whatever is shared cost microseconds; where transfers hold circuits
of their own dark time counts as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topox_core.model.arrays.csr import grouped, row_of_entry
from topox_core.model.cluster import Cluster
from topox_core.model.transfer_graph import (
    COMPUTE,
    TRANSFER,
    FloatArray,
    IntArray,
    TransferGraph,
    durations_ms,
)
from topox_core.schedule.kernels.chains import Ends, Times, chain_heads, latest_side
from topox_core.schedule.kernels.loads import largest_load
from topox_core.schedule.settings import Settings
from topox_core.text.numbers import short

# Whole ticks, or milliseconds.
Durations = NDArray[np.int64] | FloatArray
THRESHOLDS = 200  # head and tail thresholds tried for each device and link


@dataclass(frozen=True)
class Bound:
    """No iteration ends before ``ms``; ``text`` says what binds."""

    ms: float
    text: str


@dataclass(frozen=True)
class Loads:
    """What shared things carry, thing by thing: one at a time, or bytes at a speed.

    Attributes
    ----------
    ptr, node
        The nodes that each thing serves, in compressed rows.
    work_ms
        How long each of them keeps the whole thing busy.
    after_ms
        What follows the work before the node ends (latency).
    name
        The words for a thing, by its number.
    """

    ptr: IntArray
    node: IntArray
    work_ms: FloatArray
    after_ms: FloatArray
    name: Callable[[int], str]


def device_loads(graph: TransferGraph, cluster: Cluster) -> Loads:
    """Return the compute time on each (server, device) that holds one task at a time."""
    compute = np.flatnonzero((graph.kind == COMPUTE) & (graph.duration_ms > 0))
    code = (
        graph.server[compute].astype(np.int64) * cluster.devices_per_server + graph.device[compute]
    )
    unique, number = np.unique(code, return_inverse=True)
    ptr, node = grouped(number, compute.astype(np.int32), len(unique))

    def name(i: int) -> str:
        server, device = divmod(int(unique[i]), cluster.devices_per_server)
        single = cluster.devices_per_server == 1
        return f"the device of server {server}" if single else f"device {device} of server {server}"

    return Loads(ptr, node, graph.duration_ms[node], np.zeros(len(node)), name)


def lower_bound(graph: TransferGraph, length_ms: FloatArray, loads: Sequence[Loads]) -> Bound:
    """Return the best of the critical path and every load, naming the one that binds.

    Parameters
    ----------
    graph
        The lowered graph.
    length_ms
        The least time of every node: a transfer's with the fabric to itself, latency included.
    loads
        Devices, links, ports: for each, ``head + work + tail`` over head and tail thresholds.
    """
    if not length_ms.any():
        return Bound(0.0, "nothing to do")
    head, tail = graph.heads(length_ms), graph.tails(length_ms)
    precedence = (graph.pred_ptr, graph.pred_idx, *graph.successors)
    path = longest_path(precedence, head, length_ms, tail)
    words = path_in_words(path, graph.ids, length_ms)
    best = Bound(float((head + length_ms + tail).max()), words)
    for shared in loads:
        which, bound_ms, first, last = largest_load(
            shared.ptr,
            head[shared.node],
            shared.work_ms,
            tail[shared.node] + shared.after_ms,
            THRESHOLDS,
        )
        # A load that equals the path by another way of adding up is no better than the path.
        if which >= 0 and bound_ms > best.ms * (1 + 1e-12):
            best = Bound(bound_ms, load_in_words(shared.name(which), first, bound_ms - last, last))
    return best


def load_in_words(name: str, first_ms: float, until_ms: float, after_ms: float) -> str:
    """Return what sets a bound: from when to when it is busy, and how long the iteration goes on after that."""
    until = short(until_ms)
    then = f", and {short(after_ms)} ms must follow" if short(until_ms + after_ms) != until else ""
    return f"{name}, busy from {short(first_ms)} to {until} ms{then}"


def longest_path(
    precedence: tuple[IntArray, IntArray, IntArray, IntArray],
    head: Durations,
    length: Durations,
    tail: Durations,
) -> list[int]:
    """Return the tasks of a longest path, first to last; of several the one through the task with the least head.

    Parameters
    ----------
    precedence
        Predecessors and successors in compressed rows: two pointers and two indices.
    head, length, tail
        Of every task, in ticks or milliseconds.
    """
    pred_ptr, pred_idx, succ_ptr, succ_idx = precedence
    through = head + length + tail
    candidates = np.flatnonzero(through >= through.max() * (1 - 1e-12))
    path = [int(candidates[np.argmin(head[candidates])])]
    while len(before := pred_idx[pred_ptr[path[0]] : pred_ptr[path[0] + 1]]):
        path.insert(0, int(before[np.argmax(head[before] + length[before])]))
    while len(after := succ_idx[succ_ptr[path[-1]] : succ_ptr[path[-1] + 1]]):
        path.append(int(after[np.argmax(length[after] + tail[after])]))
    return path


def path_in_words(path: Sequence[int], names: Sequence[str], length: Durations) -> str:
    """Say that a critical path binds, and through which tasks that take time; empty if there is none."""
    named = [names[i] for i in path if names[i] and length[i] > 0]
    shown = named if len(named) <= 6 else [*named[:3], "…", *named[-2:]]
    tasks = "1 task" if len(named) == 1 else f"{len(named)} tasks"
    return f"critical path, {tasks}: {' → '.join(shown)}" if named else ""


# -- circuits of one's own -------------------------------------------------------------------------------


def circuit_bound(graph: TransferGraph, cluster: Cluster, settings: Settings) -> Bound:
    """Return a bound that no order of transfers on whole circuits can beat, and what binds.

    The best of the critical path, every device's load, and every server's port load, each
    unrounded. Only the first circuit of a port stands before the iteration begins, so c ports that
    serve P pairs change at least P - c times, each time dark for the reconfiguration delay. Where the
    iteration repeats they change once more, wherever in time (:func:`_whole_period`).

    Parameters
    ----------
    graph, cluster
        The lowered graph, and the cluster with its delay.
    settings
        Whether a device runs one task at a time, and whether the iteration repeats.
    """
    length = durations_ms(graph, cluster)
    sides = port_loads(graph, cluster, length)
    devices = [device_loads(graph, cluster)] if settings.exclusive_devices else []
    best = lower_bound(graph, length, [*devices, *sides])
    if not sides:
        return best
    best = with_set_ups(graph, cluster, length, devices, sides, best)
    return _whole_period(graph, cluster, length, sides, best) if settings.repeats else best


def _whole_period(
    graph: TransferGraph, cluster: Cluster, length: FloatArray, sides: list[Loads], best: Bound
) -> Bound:
    """Return the better of a bound and what ports need from one iteration to the next.

    A port that serves k > 1 pairs changes k times in each. Of c ports with P > c pairs some serve
    one and never change; the others change P - c + 1 times at least, and one of them at least P / c
    times, rounded up.
    """
    ports, delay = cluster.ports_per_server, cluster.reconfiguration_ms
    first_of_pair = _first_of_pair(graph, cluster, length)
    for load in sides:
        server = row_of_entry(load.ptr)
        work_ms = np.bincount(server, load.work_ms, len(load.ptr) - 1)
        pairs = np.bincount(server, first_of_pair[load.node], len(load.ptr) - 1)
        shortest_ms = np.full(len(pairs), np.inf)
        np.minimum.at(shortest_ms, server, length[load.node])
        fullest = np.ceil(pairs / ports)
        shortest_ms[pairs <= ports] = 0.0
        needed_ms = np.maximum(
            work_ms + (pairs - ports + 1) * delay / ports, fullest * (shortest_ms + delay)
        )
        needed_ms[pairs <= ports] = 0.0
        which = int(np.argmax(needed_ms))
        if needed_ms[which] > best.ms * (1 + 1e-12):
            words = f"{load.name(which)}, with the change back to the first circuit"
            best = Bound(float(needed_ms[which]), words)
    return best


def port_loads(graph: TransferGraph, cluster: Cluster, length: FloatArray) -> list[Loads]:
    """Return what each server's ports carry: out and in apart, or together in half duplex."""
    carried = np.flatnonzero((graph.kind == TRANSFER) & (length > 0)).astype(np.int32)
    if not len(carried):
        return []
    ends = [("out-ports", graph.source[carried]), ("in-ports", graph.destination[carried])]
    if cluster.duplex == "half":
        both = np.concatenate([ends[0][1], ends[1][1]])
        return [_loads("ports", both, np.concatenate([carried, carried]), cluster, length)]
    return [_loads(words, server, carried, cluster, length) for words, server in ends]


def _loads(
    words: str, server: IntArray, node: IntArray, cluster: Cluster, length: FloatArray
) -> Loads:
    ptr, by_server = grouped(server, node, cluster.servers)
    several = f" ({cluster.ports_per_server} at once)" if cluster.ports_per_server > 1 else ""
    return Loads(
        ptr,
        by_server,
        length[by_server] / cluster.ports_per_server,
        np.zeros(len(node)),
        lambda s: f"{words} of server {s}{several}",
    )


def with_set_ups(
    graph: TransferGraph,
    cluster: Cluster,
    length: FloatArray,
    devices: list[Loads],
    sides: list[Loads],
    best: Bound,
) -> Bound:
    """Return the better of a bound and those that count what must change before a task, after it and at a port.

    For any set of transfers c ports spend at least work + (P - c) * delay between the first head
    and the last tail. One transfer of each pair carries its set-up, and the delay that c ports save
    is taken off at the end, so that head and tail thresholds cut the sum as they cut the work.
    """
    delay, ports = cluster.reconfiguration_ms, cluster.ports_per_server
    head, tail = chain_heads_and_tails(graph, cluster, length)
    through = head + length + tail
    j = int(np.argmax(through))
    if through[j] > best.ms * (1 + 1e-12):
        name = graph.ids[j] or "a lowered transfer"
        best = Bound(float(through[j]), f"what must run before and after {name}, set-ups included")
    first_of_pair = _first_of_pair(graph, cluster, length)
    for load, saved in [*((one, 0.0) for one in devices), *((one, delay) for one in sides)]:
        work = load.work_ms + first_of_pair[load.node] * saved / ports
        which, load_ms, first, last = largest_load(
            load.ptr, head[load.node], work, tail[load.node], THRESHOLDS
        )
        if which >= 0 and load_ms - saved > best.ms * (1 + 1e-12):
            words = load_in_words(load.name(which), first, load_ms - saved - last, last)
            best = Bound(load_ms - saved, f"{words}, set-ups included")
    circuit = _circuit_of(graph, cluster)
    for load in port_loads(graph, cluster, length):
        which, end_ms = latest_side(
            load.ptr, load.node, circuit[load.node], Times(head, length, tail), ports, delay
        )
        if which >= 0 and end_ms > best.ms * (1 + 1e-12):
            best = Bound(end_ms, f"circuits that follow each other at {load.name(which)}")
    return best


def chain_heads_and_tails(
    graph: TransferGraph, cluster: Cluster, length: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return heads and tails in ms that count the work and the changes of direct predecessors, or successors, at one server."""
    order = graph.order
    carried = (graph.kind == TRANSFER) & (length > 0)
    source, peer = graph.source.astype(np.int32), graph.destination.astype(np.int32)
    apart = 0 if cluster.duplex == "half" else cluster.servers
    side = np.where(carried, np.stack([source, peer + apart]), -1)
    ends = Ends(side.astype(np.int32), _circuit_of(graph, cluster))
    ports, delay = cluster.ports_per_server, cluster.reconfiguration_ms
    head, tail = np.zeros(len(graph)), np.zeros(len(graph))
    chain_heads(head, order, graph.pred_ptr, graph.pred_idx, length, ends, ports, delay)
    chain_heads(tail, order[::-1].copy(), *graph.successors, length, ends, ports, delay)
    return head, tail


def _circuit_of(graph: TransferGraph, cluster: Cluster) -> IntArray:
    """Return the circuit that each transfer needs; one the other way is another circuit."""
    return graph.source.astype(np.int32) * cluster.servers + graph.destination.astype(np.int32)


def _first_of_pair(graph: TransferGraph, cluster: Cluster, length: FloatArray) -> NDArray[np.bool_]:
    carried = np.flatnonzero((graph.kind == TRANSFER) & (length > 0))
    code = graph.source[carried].astype(np.int64) * cluster.servers + graph.destination[carried]
    first = np.zeros(len(graph), np.bool_)
    first[carried[np.unique(code, return_index=True)[1]]] = True
    return first
