"""Fixed circuits whose transfers take turns: an iteration on demand that never changes one, and so needs no switch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from topox_core.errors import InputError
from topox_core.fabrics.circuits import run_provisioned
from topox_core.fabrics.fluid import Pairs
from topox_core.fabrics.free_choices import MAX_COMPARED_NODES, Case, tried
from topox_core.fabrics.links import measured_on_links
from topox_core.fabrics.run import Chosen, FabricRequest, FabricRun, JobRequest
from topox_core.fabrics.static_layout import wired
from topox_core.model.cluster import Cluster
from topox_core.model.durations import bytes_per_ms
from topox_core.model.execution import Circuits, Execution, PathRates
from topox_core.model.layout import Layout
from topox_core.model.transfer_graph import TransferGraph
from topox_core.runs.stopping import Stop
from topox_core.schedule.solve import solve

WORDS = "circuits that nobody changes on demand; transfers take turns"


def in_turn(job: JobRequest, than_ms: float, stop: Stop) -> Iterator[FabricRun]:
    """Yield iterations on circuits that nobody changes, over what the settings leave free, as fixed circuits.

    Those of the provisioned controller where changes cost nothing, and plans of small graphs where a
    change takes ``than_ms``, an iteration. They do not depend on the delay of the job. Fair shares on
    the same circuits can take longer: two transfers that share one both end late.

    Raises
    ------
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    at_once = replace(job, cluster=job.cluster.changed(reconfiguration_ms=0.0), runs={})
    for lowering in tried(Case("provisioned", at_once)):
        with suppress(InputError):  # too many transfers, ports that cannot be cabled evenly
            order = at_once.lowered(lowering)
            if _few_peers(order.graph, order.cluster):
                for execution in _on_demand(order, than_ms, stop):
                    if not execution.circuits.changed.any():
                        yield from _fixed(order, execution)


def _on_demand(order: FabricRequest, than_ms: float, stop: Stop) -> Iterator[Execution]:
    yield run_provisioned(order, stop).execution
    settings = replace(order.settings, engine="list", switching="planned")
    if len(order.graph) <= MAX_COMPARED_NODES and not (settings.on_slots or settings.any_port):
        slow = order.cluster.changed(reconfiguration_ms=than_ms)
        planned = solve(order.graph, slow, settings, stop).execution
        if planned is not None:
            yield planned


def _few_peers(graph: TransferGraph, cluster: Cluster) -> bool:
    """Return whether no server sends to, or receives from, more servers than it has ports."""
    pairs = Pairs.of(graph, cluster)
    peers = (np.bincount(ends, minlength=1).max() for ends in (pairs.source, pairs.destination))
    return bool(max(peers) <= cluster.ports_per_server)


def _fixed(order: FabricRequest, execution: Execution) -> Iterator[FabricRun]:
    """Yield an execution that changes no circuit as one on fixed circuits: a transfer has one of its pair to itself.

    Raises
    ------
    InputError
        If a pair has no circuit, because all that it moves takes no time.
    """
    graph, cluster, circuits = order.graph, order.cluster, execution.circuits
    ends = np.stack([circuits.switch, circuits.source, circuits.source_port, circuits.destination])
    laid = np.zeros((cluster.servers, cluster.servers), np.int32)
    source, destination = np.unique(ends, axis=1)[[1, 3]]
    np.add.at(laid, (source, destination), 1)
    if cluster.duplex == "half" and (laid.astype(bool) & laid.T.astype(bool)).any():
        return  # fixed circuits both ways between two servers are one port at both ends
    pairs = Pairs.of(graph, cluster)
    ends_of = zip(pairs.source.tolist(), pairs.destination.tolist(), strict=True)
    routes: dict[tuple[int, int], tuple[tuple[int, ...], ...]] = {one: (one,) for one in ends_of}
    layout = Layout(laid, routes, WORDS)
    wiring = wired(layout, pairs, cluster)
    count = len(pairs)
    each, number = np.arange(count, dtype=np.int32), np.cumsum(laid.ravel() > 0).reshape(laid.shape)
    rates = PathRates(
        source=pairs.source,
        destination=pairs.destination,
        hop_path=each,
        hop_link=(number[pairs.source, pairs.destination] - 1).astype(np.int32),
        path=each,
        begin_ms=np.zeros(count),
        end_ms=np.full(count, execution.makespan_ms),
        bytes_per_ms=np.full(count, bytes_per_ms(cluster.port_gbps)),
    )
    standing = replace(execution, circuits=Circuits.none(), layout=layout, rates=rates)
    run = measured_on_links("static_graph", order, wiring, standing, WORDS)
    free = order.settings.free
    yield replace(run, chosen=Chosen(order.settings.lowering, free)) if free else run
