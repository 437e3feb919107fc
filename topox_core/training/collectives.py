"""How long a group of GPUs communicates, alone on its links.

Rings (Patarasuk and Yuan, 2009): of a tensor of S bytes every one of n members sends (n-1)/n S, in an
all-reduce twice that, in as many steps. Across servers the members of one server use their network cards
together; the other cards belong to other groups of the kind, which run at the same time.
"""

from __future__ import annotations

from topox_core.training.groups import Group
from topox_core.training.machine import Machine


def all_reduce_ms(machine: Machine, group: Group, size_bytes: float) -> float:
    """Return the time to add up ``size_bytes`` of every member and give all of them the sum."""
    return _ring_ms(machine, group, size_bytes, 2)


def gather_ms(machine: Machine, group: Group, size_bytes: float) -> float:
    """Return the time in which all get the whole of ``size_bytes``, of which each has a part."""
    return _ring_ms(machine, group, size_bytes, 1)


# Adding up ``size_bytes`` of every member and leaving each a part of the sum moves the same bytes.
scatter_ms = gather_ms


def all_to_all_ms(machine: Machine, group: Group, size_bytes: float) -> float:
    """Return the time in which each sends every other its part of ``size_bytes``."""
    n, m = group.size, group.together
    if n == 1:
        return 0.0
    inside_ms = (m - 1) / n * size_bytes / machine.inside_per_ms
    if not group.crosses:
        return _latency_ms(machine, group.crosses, 1) + inside_ms
    network_ms = (n - m) / n * size_bytes / machine.nic_per_ms
    return _latency_ms(machine, group.crosses, 1) + max(network_ms, inside_ms)


def message_ms(machine: Machine, group: Group, size_bytes: float) -> float:
    """Return the time in which one member sends ``size_bytes`` to another."""
    if group.size == 1:
        return 0.0
    speed = machine.nic_per_ms if group.crosses else machine.inside_per_ms
    return _latency_ms(machine, group.crosses, 1) + size_bytes / speed


def _ring_ms(machine: Machine, group: Group, size_bytes: float, rounds: int) -> float:
    n = group.size
    if n == 1:
        return 0.0
    speed = machine.inside_per_ms
    if group.crosses:
        speed = min(group.together * machine.nic_per_ms, speed)
    carried = rounds * (n - 1) / n * size_bytes
    return _latency_ms(machine, group.crosses, rounds * (n - 1)) + carried / speed


def _latency_ms(machine: Machine, crosses: bool, steps: int) -> float:
    if crosses:
        return (machine.network_call_us + machine.network_step_us * steps) / 1e3
    return (machine.inside_call_us + machine.inside_step_us * steps) / 1e3
