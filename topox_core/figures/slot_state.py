"""What circuits do at one moment of each slot, and how many begin to be set up in each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topox_core.model.execution import Circuits, Execution
from topox_core.model.measures import in_port, out_port
from topox_core.model.transfer_graph import FloatArray


@dataclass(frozen=True)
class SlotState:
    """Circuits at one moment: positions of those that carry data, and of those only set up."""

    slot: int
    at_ms: float
    carrying: NDArray[np.intp]
    dark: NDArray[np.intp]

    @property
    def all(self) -> NDArray[np.intp]:
        """Carrying, then dark."""
        return np.concatenate([self.carrying, self.dark])


def slots(execution: Execution) -> int:
    """Return how many slots the iteration has (at least one)."""
    return max(1, int(np.ceil(execution.makespan_ms / execution.cluster.slot_ms - 1e-9)))


def moments(execution: Execution) -> FloatArray:
    """Return the moment that is shown of each slot: its middle, where one circuit holds a port."""
    low = np.arange(slots(execution), dtype=np.float64) * execution.cluster.slot_ms
    high = np.minimum(low + execution.cluster.slot_ms, execution.makespan_ms or np.inf)
    middle: FloatArray = (low + high) / 2
    return middle


def slot_state(execution: Execution, slot: int) -> SlotState:
    """Return what circuits do in the middle of ``slot``."""
    return state_at(execution, float(moments(execution)[slot]), slot)


def state_at(execution: Execution, at_ms: float, slot: int = 0) -> SlotState:
    """Return what circuits do at a moment."""
    circuits, edge = execution.circuits, 1e-6 * execution.cluster.slot_ms
    begun = circuits.start_ms <= at_ms + edge
    carries = begun & (circuits.end_ms > at_ms + edge)
    row, begin, end = circuits.dark_times(execution.makespan_ms)
    dark = np.unique(row[(begin <= at_ms + edge) & (end > at_ms + edge)])
    return SlotState(slot, at_ms, np.flatnonzero(carries), dark)


def ports_busy(circuits: Circuits, chosen: NDArray[np.intp], inwards: bool = False) -> int:
    """Return how many different ports the chosen circuits hold."""
    return len(np.unique((in_port if inwards else out_port)(circuits)[chosen]))


def ports_carrying_a_slot(execution: Execution) -> NDArray[np.int64]:
    """Return how many out-ports carry data at the moment of each slot, as :func:`slot_state` counts them."""
    circuits, n, edge = execution.circuits, slots(execution), 1e-6 * execution.cluster.slot_ms
    shown = moments(execution)
    first = np.searchsorted(shown, circuits.start_ms - edge)
    last = np.searchsorted(shown, circuits.end_ms - edge) - 1
    # Of a port a slot counts once: each circuit counts from behind those before it. Ports stand one
    # behind the other on one axis, so that one running maximum serves all.
    port = np.unique(out_port(circuits), return_inverse=True)[1].astype(np.int64)
    order = np.lexsort((circuits.start_ms, port))
    own = port[order] * (n + 1)
    first, last = own + first[order], own + np.minimum(last[order], n - 1)
    before = np.concatenate(([-1], np.maximum.accumulate(last)[:-1]))
    first = np.maximum(first, before + 1)
    held = first <= last
    begun = np.bincount((first - own)[held], minlength=n + 1)
    ended = np.bincount((last - own)[held] + 1, minlength=n + 1)
    busy: NDArray[np.int64] = np.cumsum(begun - ended)[:n]
    return busy


def busiest_slot(execution: Execution) -> int:
    """Return the slot in which most out-ports carry data; of several the one in which most circuits are set up."""
    busy, changes = ports_carrying_a_slot(execution), changes_a_slot(execution)
    return int(np.lexsort((-changes, -busy))[0])


def changes_a_slot(execution: Execution) -> NDArray[np.int64]:
    """Return how many circuits begin to be set up in each slot."""
    circuits, n = execution.circuits, slots(execution)
    setup_ms = circuits.setup_ms[circuits.changed]
    setup_ms = np.where(setup_ms < 0, setup_ms + execution.makespan_ms, setup_ms)
    begun = np.floor(setup_ms / execution.cluster.slot_ms + 1e-6)
    return np.bincount(np.clip(begun.astype(np.int64), 0, n - 1), minlength=n)


def cross_connects_in(execution: Execution, state: SlotState) -> dict[str, list[str]]:
    """Return a row a server, a column a switch: where its out-ports lead, ``–`` if free."""
    circuits, cluster = execution.circuits, execution.cluster
    table = {f"Switch {r}": ["–"] * cluster.servers for r in range(cluster.switches)}
    for part, word in ((state.carrying, ""), (state.dark, "dark → ")):
        for r, s, d in zip(
            circuits.switch[part].tolist(),
            circuits.source[part].tolist(),
            circuits.destination[part].tolist(),
            strict=True,
        ):
            cell = table[f"Switch {r}"]
            cell[s] = f"{word}S{d}" if cell[s] == "–" else f"{cell[s]}, {word}S{d}"
    return {"Server": [f"S{s}" for s in range(cluster.servers)], **table}
