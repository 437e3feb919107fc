"""Circuits that stay for the whole iteration: on which switch and port each is, and which transfers cross it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from topox_core.compiled import at_once
from topox_core.model.cluster import Cluster
from topox_core.model.csr import entries_of, grouped
from topox_core.model.execution import Circuits, Execution, PathRates
from topox_core.model.layout import Layout
from topox_core.model.transfer_graph import TRANSFER, IntArray
from topox_core.schedule.kernels.colouring import colour_slots

# Circuits that are coloured without the compiler where nothing is compiled: so many take 6 ms, and compiling 9 s.
MAX_AT_ONCE = 512


def standing(execution: Execution) -> Execution:
    """Return an execution on fixed circuits with each of them as one row, from the beginning to the end.

    ``node`` is a transfer that crosses the circuit. Another execution stays as it is.
    """
    layout, rates = execution.layout, execution.rates
    if layout is None or rates is None:
        return execution
    link, switch, port = places_of_circuits(layout, execution.cluster)
    user = _users(execution, rates, len(layout.links[0]))
    used = user[link] >= 0
    link, switch, port = link[used], switch[used], port[used]
    whole = np.full(len(link), execution.makespan_ms)
    circuits = _rows(layout, link, (switch, port), user[link], np.zeros(len(link)), whole)
    return replace(execution, circuits=circuits)


def crossed(execution: Execution) -> Execution:
    """Return an execution on fixed circuits with a row for every transfer and every circuit that it crosses.

    Transfers that share a circuit overlap there. Another execution stays as it is.
    """
    layout, rates = execution.layout, execution.rates
    if layout is None or rates is None:
        return execution
    link, switch, port = places_of_circuits(layout, execution.cluster)
    pointer, circuit = grouped(link, np.arange(len(link)), len(layout.links[0]))
    hops, hop_link = grouped(rates.hop_path, rates.hop_link, len(rates.source))
    node, path = paths_of_transfers(execution, rates)
    # A row for each transfer, path and hop, and one for each circuit of the hop's link.
    crossing = hop_link[entries_of(hops, path)]
    place = circuit[entries_of(pointer, crossing)]
    users = np.repeat(np.repeat(node, np.diff(hops)[path]), np.diff(pointer)[crossing])
    circuits = _rows(
        layout,
        link[place],
        (switch[place], port[place]),
        users,
        execution.start_ms[users],
        execution.end_ms[users],
    )
    return replace(execution, circuits=circuits)


def places_of_circuits(layout: Layout, cluster: Cluster) -> tuple[IntArray, IntArray, IntArray]:
    """Return (link, switch, port) of every circuit: a balanced edge colouring, as for the circuits of a slot."""
    source, destination, count = layout.links
    link = np.repeat(np.arange(len(source)), count)
    k = max(1, cluster.ports_per_server // cluster.switches)
    talking, ends = np.unique(
        np.concatenate([source[link], destination[link]]), return_inverse=True
    )
    begin = np.zeros(len(link), np.int64)
    colouring = at_once(colour_slots) if len(link) <= MAX_AT_ONCE else colour_slots
    edge, colour, _, _ = colouring(
        ends.reshape(2, -1).astype(np.int32),
        begin,
        begin + 1,
        len(talking),
        k * cluster.switches,
        k,
        cluster.ports_per_switch,
    )
    return (
        link[edge].astype(np.int32),
        (colour // k).astype(np.int32),
        (colour % k).astype(np.int32),
    )


def paths_of_transfers(execution: Execution, rates: PathRates) -> tuple[IntArray, IntArray]:
    """Return (transfer, path) for every path of every transfer that takes time."""
    graph = execution.graph
    node = np.flatnonzero((graph.kind == TRANSFER) & (execution.end_ms > execution.start_ms))
    wide = execution.cluster.servers
    pairs, of_path = np.unique(
        rates.source.astype(np.int64) * wide + rates.destination, return_inverse=True
    )
    pointer, path = grouped(of_path, np.arange(len(rates.source)), len(pairs))
    pair = np.searchsorted(
        pairs, graph.source[node].astype(np.int64) * wide + graph.destination[node]
    )
    transfer = np.repeat(node, np.diff(pointer)[pair])
    return transfer.astype(np.int32), path[entries_of(pointer, pair)].astype(np.int32)


def _users(execution: Execution, rates: PathRates, links: int) -> IntArray:
    """Return of each link a transfer that crosses it, -1 if none does."""
    node, path = paths_of_transfers(execution, rates)
    of_path = np.full(len(rates.source), -1, np.int32)
    of_path[path[::-1]] = node[::-1]
    user = np.full(links, -1, np.int32)
    np.maximum.at(user, rates.hop_link, of_path[rates.hop_path])
    return user


def _rows(
    layout: Layout,
    link: IntArray,
    place: tuple[IntArray, IntArray],
    node: IntArray,
    start_ms: np.ndarray,
    end_ms: np.ndarray,
) -> Circuits:
    switch, port = place
    source, destination = layout.links[0][link], layout.links[1][link]
    order = np.lexsort((port, source, switch, start_ms))
    return Circuits(
        switch=switch[order],
        source=source[order],
        destination=destination[order],
        source_port=port[order],
        destination_port=port[order],
        setup_ms=start_ms[order],
        start_ms=start_ms[order],
        end_ms=end_ms[order],
        node=node[order],
        changed=np.zeros(len(order), np.bool_),
    )
