"""What the compiled loops work on: a plan that never changes and a state that does, both as arrays.

Transfers are cut into *parts*, one for each of their paths; parts that share a path form a *class*.
All parts of a class always get the same rate, so a class keeps one clock, ``served``: the bytes
that a part present all along would have got. A part that joins at ``served`` leaves at ``served +
bytes``, and an event costs as much as there are classes whose rate changes, however many parts they
have.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.model.arrays.heap import Heap
from topox_core.model.transfer_graph import FloatArray, IntArray

TIE = 1e-12


@compiled
def earlier(one: float, other: float) -> bool:
    """Return whether one time lies before the other by more than rounding."""
    return one < other - TIE * abs(other)


Int64Array = NDArray[np.int64]

# Places in ``State.counts`` and ``State.clock``.
EVENTS, FINISHING, ENDED, BATCHES, EPOCH, CHANGED, STACK, TOUCHED, WORK, NEWS, RANKED = range(11)
NOW, FLOOR = range(2)
# ``WORK`` counts paths on links that were looked at for new rates: what a run takes, on any machine;
# ``NEWS`` groups that began or ended in this batch.
# Bits of ``State.change``: what happened to a class in this batch.
LOST, GAINED = 1, 2


class TaskTables(NamedTuple):
    """What is to be run, and on which links.

    Attributes
    ----------
    kind, succ_ptr, succ_idx
        Of the transfer graph.
    device
        Number of the device that a task must hold alone, or -1.
    length_ms
        Compute time; of a transfer the latency that follows its last byte.
    part_ptr, part_class, part_bytes, part_node
        Parts of a node (compressed rows), with the class and bytes of each.
    class_ptr, class_link
        Links of each class (compressed rows).
    flow_ptr
        Where the heap of each class's active parts begins.
    link_ptr
        Where the list of each link's active classes begins.
    capacity
        Of each link, in bytes per ms.
    queue_ptr
        Where the queue of each device begins.
    group
        Of each node, or -1: a run that is advanced stops where a group begins or ends.
    rank
        Of each node, the most urgent first: who goes first at devices and on links. Each class has
        one part then, of its own number. Empty where devices serve by readiness, and parts share
        links fairly.
    """

    kind: NDArray[np.uint8]
    succ_ptr: IntArray
    succ_idx: IntArray
    device: IntArray
    length_ms: FloatArray
    part_ptr: IntArray
    part_class: IntArray
    part_bytes: FloatArray
    part_node: IntArray
    class_ptr: IntArray
    class_link: IntArray
    flow_ptr: IntArray
    link_ptr: IntArray
    capacity: FloatArray
    queue_ptr: IntArray
    group: IntArray
    rank: IntArray


class State(NamedTuple):
    """Where the run stands; scalars live in ``clock`` and ``counts``."""

    clock: FloatArray
    counts: Int64Array
    # nodes
    waiting: IntArray  # predecessors not ended
    open_parts: IntArray
    start: FloatArray
    end: FloatArray  # of what runs for a known time: its end to come
    events: Heap  # of nodes by end
    stack: IntArray  # nodes that ended in this batch
    # devices
    busy: NDArray[np.bool_]
    queue: Heap  # of nodes by start, one for each device
    queue_size: IntArray
    touched: IntArray  # devices that may have to choose; a task touches its device when ready and when ended
    # groups
    open: IntArray  # members not ended; minus all of them until the first is ready
    # parts
    target: FloatArray  # clock of its class at which a part is through
    flows: Heap  # of parts by target, one for each class
    # classes
    active: IntArray  # parts under way
    rate: FloatArray  # bytes per ms of each of them
    served: FloatArray
    since: FloatArray  # time at which ``served`` was true
    finish: FloatArray  # when the next part is through
    finishing: Heap  # of classes by finish; an entry that says another time counts no more
    changed: IntArray  # classes that gained or lost parts in this batch
    change: NDArray[np.uint8]  # LOST, GAINED or both
    ranked: IntArray  # active ones, the most urgent first, where there are ranks
    # links
    members: IntArray  # active classes of each link
    member_at: IntArray  # of each class and hop: where it stands in ``members``
    member_hop: IntArray  # the way back: of each place in ``members`` its (class, hop)
    link_classes: IntArray
    link_flows: IntArray
    # room for the filling
    link_mark: IntArray
    class_mark: IntArray
    new_rate: FloatArray
    residual: FloatArray
    unfilled: IntArray
    region_links: IntArray
    region_classes: IntArray
    level: FloatArray
    heap: Heap  # of links by level


def fresh(plan: TaskTables, waiting: IntArray) -> State:
    """Return the state before the first event; ``waiting`` is the number of predecessors of each node."""
    n, parts, classes, links = (
        len(plan.kind),
        len(plan.part_class),
        len(plan.class_ptr) - 1,
        len(plan.capacity),
    )
    devices, hops = len(plan.queue_ptr) - 1, len(plan.class_link)

    def whole(size: int) -> IntArray:
        return np.zeros(size, np.int32)

    def real(size: int) -> FloatArray:
        return np.zeros(size)

    def heap(size: int) -> Heap:
        return Heap(real(size), whole(size))

    return State(
        clock=real(2),
        counts=np.zeros(11, np.int64),
        waiting=waiting.astype(np.int32),
        open_parts=whole(n),
        start=np.full(n, np.nan),
        end=np.full(n, np.nan),
        events=heap(n),
        stack=whole(n),
        busy=np.zeros(devices, np.bool_),
        queue=heap(int(plan.queue_ptr[-1])),
        queue_size=whole(devices),
        touched=whole(2 * n),
        open=-np.bincount(plan.group[plan.group >= 0]).astype(np.int32),
        target=real(parts),
        flows=heap(parts),
        active=whole(classes),
        rate=real(classes),
        served=real(classes),
        since=real(classes),
        finish=real(classes),
        finishing=heap(4 * classes),
        changed=whole(classes),
        change=np.zeros(classes, np.uint8),
        ranked=whole(classes),
        members=whole(hops),
        member_at=whole(hops),
        member_hop=whole(hops),
        link_classes=whole(links),
        link_flows=whole(links),
        link_mark=whole(links),
        class_mark=whole(classes),
        new_rate=real(classes),
        residual=real(links),
        unfilled=whole(links),
        region_links=whole(links),
        region_classes=whole(classes),
        level=real(links),
        heap=heap(links),
    )
