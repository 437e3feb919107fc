"""Broken rings, repaired with circuits of model-parallel traffic or free ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from topox_core.topology.ring_circuits import named, ring_pairs
from topox_core.topology.traffic import Demand, Group, Pair
from topox_core.topology.wiring import SwitchWiring

# One side of one port: ("out" or "in", server, plane).
Side = tuple[str, int, int]


def lend(
    wiring: SwitchWiring, lost: NDArray[np.bool_], banned: set[Side], demand: Demand, planes: int
) -> tuple[SwitchWiring, tuple[str, ...]]:
    """Return the wiring with broken ring circuits replaced where possible, and what was done.

    Parameters
    ----------
    lost
        Circuits that are gone.
    banned
        Port sides that no longer work.
    demand
        Whose model-parallel bytes say which circuits are missed least.
    planes
        Ports of a server.
    """
    table = _Planes(wiring, lost)
    done: list[str] = []
    for k in np.flatnonzero(lost).tolist():
        a, b = int(wiring.source[k]), int(wiring.destination[k])
        if not wiring.for_rings[k]:
            done.append(
                f"The model-parallel circuit {a} → {b} is lost; its traffic takes other ways."
            )
            continue
        options = [
            (table.missed(a, b, plane, demand), plane)
            for plane in range(planes)
            if ("out", a, plane) not in banned
            and ("in", b, plane) not in banned
            and table.may_lend(a, b, plane)
        ]
        if not options:
            done.append(f"No port can be lent to the ring circuit {a} → {b}.")
            continue
        _, plane = min(options)
        torn = table.lay(a, b, plane)
        what = " and ".join(f"{x} → {y}" for x, y in torn)
        done.append(
            f"The ring circuit {a} → {b} is laid again through port {plane}"
            + (f", lent by the model-parallel {what}." if torn else ", which was free.")
        )
    return table.wiring(), tuple(done)


def whole_rings(
    rings: Mapping[Group, tuple[int, ...]], circuits: NDArray[np.int32]
) -> tuple[dict[Group, tuple[int, ...]], tuple[str, ...]]:
    """Return the rings that still have all their circuits, and what was given up.

    All-reduce traffic is mutable, so a group drops a broken ring and sends more on its others: with
    k rings that costs k / (k - 1), where forwarding around the gap would nearly double the load of
    a circuit. A group's last ring stays, and its traffic is forwarded.
    """
    needed: Counter[Pair] = Counter()
    for members, strides in rings.items():
        for p in strides:
            needed.update(ring_pairs(members, (p,)))
    left = {members: list(strides) for members, strides in rings.items()}
    done: list[str] = []
    for (a, b), count in list(needed.items()):
        for members in left if circuits[a, b] < count else ():
            for p in list(left[members]):
                pairs = ring_pairs(members, (p,))
                if (a, b) not in pairs or circuits[a, b] >= needed[a, b]:
                    continue
                if len(left[members]) == 1:
                    done.append(
                        f"The last ring of {len(members)} servers is broken at {a} → {b}: its traffic is forwarded."
                    )
                    break
                left[members].remove(p)
                needed.subtract(pairs)
                done.append(
                    f"The ring of stride {p} of {len(members)} servers is broken at {a} → {b}: their all-reduces run on "
                    f"{named(left[members])} only."
                )
    return {members: tuple(strides) for members, strides in left.items()}, tuple(done)


class _Planes:
    """Circuits by (server, plane), out and in, while some are taken down and others laid."""

    def __init__(self, wiring: SwitchWiring, lost: NDArray[np.bool_]) -> None:
        self.circuits: dict[int, tuple[int, int, bool, int]] = {
            k: (
                int(wiring.source[k]),
                int(wiring.destination[k]),
                bool(wiring.for_rings[k]),
                int(wiring.plane[k]),
            )
            for k in np.flatnonzero(~lost).tolist()
        }
        self.out = {(a, plane): k for k, (a, _, _, plane) in self.circuits.items()}
        self.into = {(b, plane): k for k, (_, b, _, plane) in self.circuits.items()}
        self.next = len(wiring)

    def held(self, a: int, b: int, plane: int) -> list[int]:
        """Return the circuits that hold the ports a circuit a -> b on this plane needs."""
        return list(
            dict.fromkeys(
                k for k in (self.out.get((a, plane)), self.into.get((b, plane))) if k is not None
            )
        )

    def may_lend(self, a: int, b: int, plane: int) -> bool:
        """Tell whether those ports are free or of model-parallel circuits."""
        return not any(self.circuits[k][2] for k in self.held(a, b, plane))

    def missed(self, a: int, b: int, plane: int, demand: Demand) -> float:
        """Return the bytes of the circuits that would be taken down; free ports come first."""
        held = [self.circuits[k] for k in self.held(a, b, plane)]
        return sum(float(demand.model_parallel[x, y]) for x, y, _, _ in held) if held else -1.0

    def lay(self, a: int, b: int, plane: int) -> list[tuple[int, int]]:
        """Lay a ring circuit and return the ends of those taken down for it."""
        torn = []
        for k in self.held(a, b, plane):
            x, y, _, _ = self.circuits.pop(k)
            del self.out[x, plane], self.into[y, plane]
            torn.append((x, y))
        self.circuits[self.next] = (a, b, True, plane)
        self.out[a, plane] = self.into[b, plane] = self.next
        self.next += 1
        return torn

    def wiring(self) -> SwitchWiring:
        """Return the circuits as arrays."""
        rows = list(self.circuits.values())
        ends = np.array([(a, b) for a, b, _, _ in rows], np.int32).reshape(-1, 2)
        return SwitchWiring(
            ends[:, 0].copy(),
            ends[:, 1].copy(),
            np.array([ring for _, _, ring, _ in rows], np.bool_),
            np.array([plane for *_, plane in rows], np.int32),
        )
