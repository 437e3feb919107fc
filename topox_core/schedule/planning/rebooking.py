"""A schedule on fewer ports: what a lost port carried goes over those that are left, in the order of the schedule."""

from typing import NamedTuple

import numpy as np

from topox_core.errors import InputError
from topox_core.model.arrays.csr import ranks
from topox_core.model.execution import Execution
from topox_core.schedule.circuits.held_ports import carried_tasks
from topox_core.schedule.kernels.continuous import Before, nothing_before
from topox_core.schedule.kernels.serial import FAR, NOTHING
from topox_core.schedule.planning.fine_clock import FineClock
from topox_core.schedule.planning.list_scheduler import PortGenerator
from topox_core.schedule.planning.planner import prepare
from topox_core.schedule.planning.replay import replayed_on_circuits
from topox_core.schedule.settings import Settings
from topox_core.schedule.source import ELSEWHERE

# What a lost port holds, until long after every iteration.
GONE, NEVER = NOTHING - 1, FAR >> 1


class LostPort(NamedTuple):
    """One end of circuits that is gone: the out- or the in-port of a server on a switch (half duplex: both)."""

    way: str
    server: int
    switch: int
    port: int


def rebooked(
    execution: Execution,
    lost: frozenset[LostPort],
    settings: Settings,
) -> Execution:
    """Return an execution with the orders of another one that uses none of the lost ports.

    Booked on whole slots where transfers keep to them or a switch may fill (eq. 7 is counted by
    slots), else on a clock without.

    Parameters
    ----------
    execution
        Whose transfers hold circuits.
    settings
        Whether devices are held alone, transfers start on slots, and the iteration repeats.

    Raises
    ------
    InputError
        If a server that talks has no port left.
    """
    graph, cluster = execution.graph, execution.cluster
    prepared = prepare(graph, cluster, settings)
    if not (settings.on_slots or prepared.reduction.problem.switch_network.switches_may_fill):
        prepared = FineClock.of(prepared, execution.makespan_ms).prepared
    generator, dark = prepared.planner.generator, prepared.reduction.dark_slots
    ports = PortGenerator.of(generator, dark, spare=len(lost))
    order = np.lexsort((ranks(graph.order), execution.start_ms)).astype(np.int32)
    plan, _ = ports.one_pass(order, ELSEWHERE, False, _without(ports, lost))
    booked = prepared.execution(plan)
    assert booked is not None
    return replayed_on_circuits(booked, cluster, settings, rounded=settings.on_slots)


def _without(generator: PortGenerator, lost: frozenset[LostPort]) -> Before:
    """Return ports that hold nothing, but for those that are lost, which never get free.

    Raises
    ------
    InputError
        If two servers that talk have no switch in common any more; they are named.
    """
    ports, network = generator.ports, generator.network
    carried = carried_tasks(generator.generator.problem)
    before = nothing_before(len(ports.port_ptr) - 1, network.repeats)
    number = {int(network.source[j]): int(ports.source[j]) for j in carried}
    number |= {int(network.destination[j]): int(ports.destination[j]) for j in carried}
    for way, server, switch, port in lost:
        if server in number and port < ports.k:
            at = (number[server] * ports.switches + switch) * ports.k + port
            at += ports.in_base if way == "in" else 0
            before.held[at], before.free[at] = GONE, NEVER
    gone = (before.held == GONE).reshape(-1, ports.switches, ports.k).all(axis=2)
    into = ports.in_base // (ports.switches * ports.k)
    cut = (gone[ports.source[carried]] | gone[into + ports.destination[carried]]).all(axis=1)
    for j in carried[cut][:1]:
        raise InputError(
            f"server {network.source[j]} can no longer reach server {network.destination[j]}: no switch has a port of both",
            file="failure",
        )
    return before
