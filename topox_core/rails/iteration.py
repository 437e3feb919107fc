"""One training iteration as a rail sees it: computing and communications in order of issue."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from topox_core.io.content import record_of
from topox_core.model.quantities import DelayMs, Gbps, LatencyUs
from topox_core.model.transfer_graph import FloatArray, IntArray
from topox_core.schema.fields import PRINTABLE, plain_setting, setting
from topox_core.schema.records import check_fields

FORMAT, VERSION = "topox-rail-run", 1

# Kinds of a node; the names are those of the task graph's collectives, ``send`` for a pipeline's
# transfer.
KINDS = ("compute", "all_gather", "reduce_scatter", "all_reduce", "all_to_all", "send")
COMPUTE, ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, ALL_TO_ALL, SEND = range(6)
# What computing belongs to; the names are those of the task graph's computing.
WORK = ("forward", "backward", "update")
FORWARD, BACKWARD, UPDATE = range(3)


@dataclass(frozen=True)
class RailGroup:
    """Ranks that communicate: one ring on the rail, or the pair of a pipeline's transfer.

    Attributes
    ----------
    parallelism
        ``fsdp``, ``dp``, ``pp``, ``cp`` or ``ep``.
    ranks
        Those in the iteration, ascending; in a folded one a representative stands for its equals.
    size
        Ranks of the group in the job; more than ``len(ranks)`` only when folded.
    """

    name: str
    parallelism: str
    ranks: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class RailIteration:
    """A directed acyclic graph of computing and communications on one representative rail.

    A rank is one server's (scale-up domain's) GPU on that rail. Tensor parallelism stays inside the
    server and is part of the compute time. A node is numbered after its predecessors.

    Attributes
    ----------
    ranks
        Ranks in the arrays; ``stands_for`` of each how many ranks of the job it represents (1
        unless folded).
    stage
        Of each rank, the pipeline stage.
    kind, rank, duration_ms
        Per node; rank is -1 for communications. ``duration_ms`` only of computing: a communication
        lasts as long as the rail takes for its bytes.
    work
        Per node, of computing an index of :data:`WORK`; -1 for communications.
    group, size_bytes, microbatch, layer
        Per node; -1 (0 bytes) where they do not apply. ``size_bytes`` is the full tensor of one
        member, as in the task graph's file: gathered output, reduced input, an all-to-all's send
        buffer, a message.
    label
        Per node, e.g. "forward 3 layer 7" or "gather layer 7": what hovers and logs call it.
    pred_ptr, pred_idx
        Predecessors as CSR over nodes.
    issue_ptr, issue_idx
        Nodes that each rank takes part in, in the order in which its program issues them (CSR over
        ranks); one rank's computing runs in this order, and its communications of one group too.
    """

    name: str
    ranks: int
    stands_for: IntArray
    stage: IntArray
    kind: IntArray
    rank: IntArray
    duration_ms: FloatArray
    work: IntArray
    group: IntArray
    size_bytes: FloatArray
    microbatch: IntArray
    layer: IntArray
    label: tuple[str, ...]
    pred_ptr: IntArray
    pred_idx: IntArray
    issue_ptr: IntArray
    issue_idx: IntArray
    groups: tuple[RailGroup, ...]

    def __len__(self) -> int:
        return len(self.kind)


def senders(iteration: RailIteration) -> NDArray[np.int64]:
    """Return the sender of each transfer, by the first node it waits for; -1 if there is none."""
    sender = np.full(len(iteration), -1, np.int64)
    for node in np.flatnonzero(iteration.kind == SEND).tolist():
        begin, end = iteration.pred_ptr[node], iteration.pred_ptr[node + 1]
        if begin == end:
            continue
        first = int(iteration.pred_idx[begin])
        if iteration.kind[first] == COMPUTE:
            sender[node] = iteration.rank[first]
        else:
            # What an exchange between experts ends is sent by the one rank that took part in it.
            both = set(iteration.groups[iteration.group[first]].ranks) & set(
                iteration.groups[iteration.group[node]].ranks
            )
            sender[node] = both.pop() if len(both) == 1 else -1
    return sender


@dataclass(frozen=True)
class Rail:
    """The rail and its control plane.

    Attributes
    ----------
    nic_gbps, nic_ports
        Speed of a GPU's NIC on the rail, and the ports it is split over: half of them towards
        either neighbour of a ring, which turns both ways and so has the whole NIC
        (docs/rails-control.md).
    optical
        False: an electrical rail, nothing is ever switched.
    reconfiguration_ms, link_up_ms
        Of the switch, and of the NIC until it sees light again; both are dark time of a circuit
        that changes.
    provisioned
        Circuits of the next group are asked for as soon as the previous traffic has ended; False:
        on demand.
    static_split
        Ports are dealt to the parallelisms for good (constraint C3): nothing is switched,
        everything is slower.

    Raises
    ------
    InputError
        If a speed is not positive, a delay negative or beyond all measure, or a NIC has no port.
    """

    nic_gbps: Gbps = 400.0
    nic_ports: Annotated[int, plain_setting("NIC ports", "ports of a NIC", ge=1)] = 2
    latency_us: Annotated[
        LatencyUs,
        setting(
            "Latency of a step",
            description="added to each step of a ring and to each message",
            steps=(0.0, 1.0, 5.0, 10.0, 20.0, 50.0),
        ),
    ] = 0.0
    optical: bool = True
    reconfiguration_ms: Annotated[
        DelayMs, setting(description="reconfiguration delay (default 0, or the switch's)")
    ] = 0.0
    link_up_ms: Annotated[
        DelayMs,
        setting(
            "Link start-up",
            description="until a NIC sees light again",
            steps=(0.0, 1.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 3000.0, 6000.0),
        ),
    ] = 0.0
    provisioned: Annotated[
        bool,
        plain_setting("Provisioning", "ask for circuits ahead of the traffic (default on)"),
    ] = True
    static_split: Annotated[
        bool,
        plain_setting(
            "Static split", "ports split between the parallelisms permanently (constraint C3)"
        ),
    ] = False

    def __post_init__(self) -> None:
        check_fields(self, file="settings")

    @property
    def dark_ms(self) -> float:
        """How long a changed circuit carries nothing."""
        return self.reconfiguration_ms + self.link_up_ms

    @property
    def switches(self) -> bool:
        """Whether circuits ever change on it."""
        return self.optical and not self.static_split


@dataclass(frozen=True)
class Window:
    """The time between two phases of one rank on one rail (section 3 of the paper).

    Attributes
    ----------
    rank, rail
        Where.
    before, after
        Parallelism (or group) of the traffic on both sides; ``operation`` the first of the traffic
        after it.
    begin_ms, length_ms
        From the last end before to the first start after it; negative where they overlap.
    size_bytes
        Of the traffic after it, up to the next window.
    """

    rank: Annotated[int, setting(ge=0, le=10_000_000)]
    rail: Annotated[int, setting(ge=0, le=10_000_000)]
    before: Annotated[str, setting(max_length=80, without=PRINTABLE)]
    after: Annotated[str, setting(max_length=80, without=PRINTABLE)]
    operation: Annotated[str, setting(max_length=80, without=PRINTABLE)]
    begin_ms: Annotated[float, setting(ge=0, le=1e15)]
    length_ms: Annotated[float, setting(ge=-1e15, le=1e15)]
    size_bytes: Annotated[float, setting(ge=0, le=1e15)]


@dataclass(frozen=True)
class Message:
    """One message of the control plane, as the log shows it."""

    at_ms: float
    sender: str
    receiver: str
    word: str
    group: str
    note: str = ""


@dataclass(frozen=True)
class RailCircuit:
    """A group's circuits: dark from ``setup_ms`` to ``start_ms``, in place until ``end_ms``."""

    group: int
    setup_ms: float
    start_ms: float
    end_ms: float
    changed: bool


@dataclass(frozen=True)
class RailRun:
    """One iteration on one rail, after the profiling one.

    Attributes
    ----------
    start_ms, end_ms
        Per node.
    undisturbed_ms
        The same iteration when switching takes no time.
    stall_ms
        ``iteration_ms - undisturbed_ms``.
    reconfigurations
        Times that a group's circuits had to change.
    messages, messages_sent
        The first messages of the control plane, and how many there were.
    """

    iteration: RailIteration
    rail: Rail
    start_ms: FloatArray
    end_ms: FloatArray
    iteration_ms: float
    undisturbed_ms: float
    reconfigurations: int
    circuits: tuple[RailCircuit, ...]
    messages: tuple[Message, ...]
    windows: tuple[Window, ...]
    messages_sent: int = 0

    @property
    def stall_ms(self) -> float:
        """What switching adds to the iteration."""
        return max(0.0, self.iteration_ms - self.undisturbed_ms)

    def as_record(self) -> dict[str, Any]:
        """Return the run as JSON has it: its times, circuits, and first messages."""
        groups = self.iteration.groups
        return {
            "format": FORMAT,
            "version": VERSION,
            **record_of(
                self, "iteration_ms undisturbed_ms stall_ms reconfigurations messages_sent"
            ),
            "circuits": [
                {
                    "group": groups[one.group].name,
                    **record_of(one, "setup_ms start_ms end_ms"),
                    "changed": bool(one.changed),
                }
                for one in self.circuits
            ],
            "messages": [
                {
                    "from": one.sender,
                    "to": one.receiver,
                    **record_of(one, "at_ms word group note"),
                }
                for one in self.messages
            ],
        }
