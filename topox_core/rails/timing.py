"""How long the communications of an iteration take on a rail, from their bytes.

Wire bytes are those of rings (Patarasuk and Yuan): of a gathered or reduced tensor of S bytes every
one of n members sends S (n-1)/n, in an all-reduce twice that. A ring runs both ways at once, so it
has the whole NIC although each neighbour has only half its ports. An all-to-all has no ring to run
on: on an optical rail its pieces are forwarded through their neighbours, the shorter way round
(floor(n^2/4) S / 2n bytes on every link).
"""

from __future__ import annotations

import numpy as np

from topox_core.errors import wrong_setting
from topox_core.model.transfer_graph import FloatArray, transfer_ms
from topox_core.rails.iteration import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COMPUTE,
    REDUCE_SCATTER,
    SEND,
    Rail,
    RailIteration,
)
from topox_core.rails.ports import port_use

MAX_DELAY_MS = 1e9


def wire_bytes(iteration: RailIteration) -> FloatArray:
    """Return what a member sends for each node: 0 for computing, all-to-alls not forwarded."""
    n = _members(iteration)
    parts = np.where(n > 1, (n - 1) / n, 0.0)
    kind = iteration.kind
    factor = np.select(
        [kind == ALL_REDUCE, kind == SEND, kind == COMPUTE], [2 * parts, 1.0, 0.0], parts
    )
    return np.asarray(factor * iteration.size_bytes)


def durations_ms(iteration: RailIteration, rail: Rail) -> FloatArray:
    """Return each node's duration in ms: computing as given, communications by the rail.

    Notes
    -----
    On an electrical rail a message has the whole NIC, an all-to-all goes straight to its receivers,
    and a collective needs the latency of ceil(log2 n) steps (recursive doubling); on an optical one
    of the n - 1 steps of its ring, the cost of constraint C1.

    Raises
    ------
    InputError
        If a setting of the rail is out of range, or its NIC has too few ports for a static split.
    """
    check_rail(rail)
    n = _members(iteration)
    use = port_use(iteration, rail)
    share = np.ones(len(iteration))
    grouped = iteration.group >= 0
    share[grouped] = use.share[iteration.group[grouped]]
    carried = wire_bytes(iteration)
    exchange = iteration.kind == ALL_TO_ALL
    if rail.optical:
        carried[exchange] = _forwarded(
            iteration.size_bytes[exchange], n[exchange], rail.nic_ports == 1
        )
    lasting = (
        transfer_ms(carried, rail.nic_gbps * share)
        + _steps(iteration, n, rail) * rail.latency_us / 1e3
    )
    # A group of one has nobody to talk to.
    return np.where(iteration.kind == COMPUTE, iteration.duration_ms, np.where(n > 1, lasting, 0.0))


def check_rail(rail: Rail) -> None:
    """Refuse a rail that cannot be.

    Raises
    ------
    InputError
        If a speed is not positive, a delay negative or beyond all measure, or a NIC has no port.
    """
    if not 0 < rail.nic_gbps <= 1e9:
        raise wrong_setting(
            "nic_gbps", f"must be greater than 0 and at most 1e9 (got {rail.nic_gbps:g})"
        )
    if rail.nic_ports < 1:
        raise wrong_setting("nic_ports", f"must be at least 1 (got {rail.nic_ports})")
    for field in ("latency_us", "reconfiguration_ms", "link_up_ms"):
        check_delay(getattr(rail, field), field)


def check_delay(value: float, field: str) -> None:
    """Refuse a delay that is negative, not a number, or beyond all measure.

    Raises
    ------
    InputError
        If it is.
    """
    if not 0 <= value <= MAX_DELAY_MS:
        raise wrong_setting(field, f"must be 0 to {MAX_DELAY_MS:g} (got {value:g})")


def _members(iteration: RailIteration) -> FloatArray:
    sizes = np.array([group.size for group in iteration.groups] + [1], dtype=np.float64)
    return sizes[iteration.group]  # computing has group -1: the last entry


def _forwarded(size_bytes: FloatArray, n: FloatArray, one_way: bool) -> FloatArray:
    """Return the bytes that every member sends, others' included, of an all-to-all on a ring."""
    hops = n * (n - 1) / 2 if one_way else np.floor(n * n / 4)
    return size_bytes * hops / n


def _steps(iteration: RailIteration, n: FloatArray, rail: Rail) -> FloatArray:
    once = n - 1 if rail.optical else np.ceil(np.log2(np.maximum(n, 1)))
    exchange = np.floor(n / 2) if rail.optical else np.ones(len(n))
    kind = iteration.kind
    return np.select(
        [
            (kind == ALL_GATHER) | (kind == REDUCE_SCATTER),
            kind == ALL_REDUCE,
            kind == ALL_TO_ALL,
            kind == SEND,
        ],
        [once, 2 * once, exchange, np.ones(len(n))],
        0.0,
    )
