"""How long the communications of an iteration take on a rail, from their bytes and the NIC ports that a group takes.

A NIC has two sides, half its ports each: a ring takes both, one towards either neighbour. A
pipeline's pair takes the whole NIC where both its ranks have no other pipeline neighbour, else one
side at each end, so that a rank in the middle of a pipeline keeps circuits to both of its
neighbours. A NIC with one port has one side.

Wire bytes are those of rings (Patarasuk and Yuan): of a gathered or reduced tensor of S bytes every
one of n members sends S (n-1)/n, in an all-reduce twice that. A ring runs both ways at once, so it
has the whole NIC although each neighbour has only half its ports. An all-to-all has no ring to run
on: on an optical rail its pieces are forwarded through their neighbours, the shorter way round
(floor(n^2/4) S / 2n bytes on every link).
"""

from dataclasses import dataclass

import numpy as np

from topox_core.errors import refuse_if
from topox_core.model.arrays.groups import by_key
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

SIDES = 2


@dataclass(frozen=True)
class PortUse:
    """Ports by group.

    Attributes
    ----------
    sides
        Of each group the sides (``SIDES * rank + side``) it takes; none for a group of one rank.
    wiring
        Of each group a number; groups with equal numbers need the very same circuits.
    share
        Of each group its share of the NIC's speed, sent by one member.
    weight
        Of each group how many equal ones it stands for.
    plane
        Of each group a number; with a static split groups of different numbers have ports of their
        own, else all have 0.
    """

    sides: tuple[tuple[int, ...], ...]
    wiring: tuple[int, ...]
    share: FloatArray
    weight: tuple[int, ...]
    plane: tuple[int, ...]


def port_use(iteration: RailIteration, rail: Rail) -> PortUse:
    """Return the ports of each group on the rail's NIC, with a static split if there is one.

    Raises
    ------
    InputError
        If the NIC has too few ports for a static split.
    """
    sides, halved = _sides(iteration, rail.nic_ports)
    wiring = _wiring(iteration, sides)
    owner = _owners(iteration, wiring) if rail.static_split else {}
    dealt = static_ports(iteration, rail) if rail.static_split else {}
    share = np.ones(len(iteration.groups))
    for g, group in enumerate(iteration.groups):
        ports = dealt.get(group.parallelism, rail.nic_ports)
        # Ports that cannot be dealt evenly to two neighbours stay dark; a single port serves one
        # neighbour, or a ring one way.
        used = (
            max(1, ports // 2)
            if halved[g]
            else ports
            if group.size == 2 or ports == 1
            else ports - ports % 2
        )
        if rail.optical:
            share[g] = used / rail.nic_ports
    planes = {name: k for k, name in enumerate(dict.fromkeys(owner.values()))}
    plane = tuple(planes[owner[group.parallelism]] if owner else 0 for group in iteration.groups)
    weight = tuple(
        max(1, round(int(iteration.stands_for[list(group.ranks)].sum()) / max(1, group.size)))
        for group in iteration.groups
    )
    return PortUse(sides, wiring, share, weight, plane)


def static_ports(iteration: RailIteration, rail: Rail) -> dict[str, int]:
    """Return the NIC ports of each parallelism under a static split (constraint C3).

    Each gets what its circuits need at least, a port a neighbour; what is left goes to whoever has
    fewest, in the same portions. Parallelisms on the same rings share theirs.

    Raises
    ------
    InputError
        If the NIC has fewer ports than circuits to keep (constraint C2).
    """
    pair = _pairs(iteration)
    neighbours = _pipeline_neighbours(iteration, pair)
    owner = _owners(iteration, _wiring(iteration, _sides(iteration, rail.nic_ports)[0]))
    used = {int(g) for g in np.unique(iteration.group) if g >= 0}
    degrees = by_key(
        (
            owner[group.parallelism],
            max(len(neighbours[one]) for one in group.ranks) if pair[g] else min(2, group.size - 1),
        )
        for g, group in enumerate(iteration.groups)
        if group.size > 1 and g in used
    )
    need = {name: max(of) for name, of in degrees.items()}
    total = sum(need.values())
    words = ", ".join(f"{name} {count}" for name, count in need.items())
    refuse_if(
        (
            total > rail.nic_ports,
            f"a static split needs {total} ports per NIC, one for each neighbour ({words}); got {rail.nic_ports}",
        ),
        file="settings",
        field="nic_ports",
    )
    dealt = dict(need)
    left = rail.nic_ports - total
    while poorest := min(
        (name for name in dealt if need[name] <= left), key=lambda name: dealt[name], default=""
    ):
        dealt[poorest] += need[poorest]
        left -= need[poorest]
    return {name: dealt[of] for name, of in owner.items() if of in dealt}


def _sides(
    iteration: RailIteration, nic_ports: int
) -> tuple[tuple[tuple[int, ...], ...], list[bool]]:
    """Return the sides of every group, and whether it is a pair that takes one at each end."""
    pair = _pairs(iteration)
    neighbours = _pipeline_neighbours(iteration, pair)
    halved = [
        pair[g] and any(len(neighbours[rank]) > 1 for rank in group.ranks)
        for g, group in enumerate(iteration.groups)
    ]
    sides: list[tuple[int, ...]] = []
    for g, group in enumerate(iteration.groups):
        if group.size < 2:
            sides.append(())
        elif halved[g] and nic_ports > 1:
            sides.append(
                tuple(
                    SIDES * rank + neighbours[rank].index(_other(group.ranks, rank)) % SIDES
                    for rank in group.ranks
                )
            )
        else:
            sides.append(
                tuple(SIDES * rank + side for rank in group.ranks for side in range(SIDES))
            )
    return tuple(sides), halved


def _owners(iteration: RailIteration, wiring: tuple[int, ...]) -> dict[str, str]:
    """Return whose ports each parallelism uses: another's if its circuits suffice, else its own."""
    kinds = [group.parallelism for group in iteration.groups]
    circuits = {name: {*own} for name, own in by_key(zip(kinds, wiring, strict=True)).items()}
    owner: dict[str, str] = {}
    for name in sorted(circuits, key=lambda name: -len(circuits[name])):
        owner[name] = next(
            (
                other
                for other in owner
                if owner[other] == other and circuits[name] <= circuits[other]
            ),
            name,
        )
    return owner


def _pairs(iteration: RailIteration) -> list[bool]:
    sends = set(iteration.group[iteration.kind == SEND].tolist())
    return [g in sends and group.size == 2 for g, group in enumerate(iteration.groups)]


def _pipeline_neighbours(iteration: RailIteration, pair: list[bool]) -> dict[int, list[int]]:
    """Return the other ends of each rank's pairs, ascending."""
    others_of = by_key(
        (rank, _other(group.ranks, rank))
        for g, group in enumerate(iteration.groups)
        if pair[g]
        for rank in group.ranks
    )
    return {rank: sorted({*others}) for rank, others in others_of.items()}


def _other(ranks: tuple[int, ...], rank: int) -> int:
    return ranks[1] if ranks[0] == rank and len(ranks) > 1 else ranks[0]


def _wiring(iteration: RailIteration, sides: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    numbers: dict[object, int] = {}
    wiring = []
    for g, group in enumerate(iteration.groups):
        # A folded group that covers everyone its ranks stand for is known; of any other only its
        # own kind is the same.
        whole = group.size == int(iteration.stands_for[list(group.ranks)].sum())
        key = (group.ranks, group.size, sides[g], "" if whole else group.parallelism)
        wiring.append(numbers.setdefault(key, len(numbers)))
    return tuple(wiring)


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
        If the rail's NIC has too few ports for a static split.
    """
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
