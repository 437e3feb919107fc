"""A recorded iteration as a graph of segments and calls, and how long it lasts at any network speed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from topox_core.errors import InputError
from topox_core.model.arrays.waiting_order import cycle_of, length
from topox_core.model.transfer_graph import transfer_ms
from topox_core.text.numbers import and_more

# A part of a communication of a rank: (rank, entry, part).
Place = tuple[int, int, int]


@dataclass(slots=True)
class Node:
    """A segment of one rank's lane, or a call of several ranks.

    Attributes
    ----------
    kind
        ``forward``, ``backward`` or ``update`` of a segment; a collective's kind, ``send``,
        ``reduce``, ``gather``, ``scatter``, ``barrier`` or ``unknown`` of a call.
    waits
        Positions of the nodes that it waits for.
    duration_ms
        Of a segment its length; of a call its recorded time, waiting left out.
    ranks
        One of a segment; of a call those of its group in order; of a send (source, destination).
    stream
        A name that two calls share if the second follows the first on a stream of every rank.
    lane
        Of a segment: 0 for the GPU's, 1 for the host's.
    kernels
        Of a call (rank, begin, end) of each rank's kernel on the common clock, in ms.
    evidence
        Of a call: the weakest on any rank for what waits for it (:mod:`~topox_core.traces.recorded.waits`).
    places
        Of a call that was matched: where each recorded rank has it.
    server_ms
        Of a call inside one server: how long it lasts whatever the network; None else.
    """

    id: str
    kind: str
    waits: list[int]
    duration_ms: float
    ranks: tuple[int, ...]
    is_call: bool = False
    size_bytes: float | None = None
    size_from: str = ""
    group: str = ""
    description: str = ""
    parallelism: str | None = None
    root: int | None = None
    splits_bytes: tuple[tuple[float, ...], ...] | None = None
    stream: str = ""
    server_ms: float | None = None
    kernels_ms: float = 0.0
    end_ms: float = 0.0
    at_ms: float = 0.0
    shortest_ms: float = 0.0
    source_name: str = ""
    evidence: str = ""
    lane: int = 0
    kernels: tuple[tuple[int, float, float], ...] = ()
    places: tuple[Place, ...] = ()


@dataclass
class RunGraph:
    """Segments and calls of one iteration.

    Attributes
    ----------
    world
        Ranks of the job.
    present
        Ranks whose files were read.
    recorded_ms
        From the first begin to the last end over ranks, on one clock.
    """

    nodes: list[Node]
    world: int
    present: tuple[int, ...]
    recorded_ms: float
    notes: list[str] = field(default_factory=list)

    @property
    def calls(self) -> list[Node]:
        """The calls, in the order of their recorded ends."""
        return [node for node in self.nodes if node.is_call]

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return sum(not node.is_call for node in self.nodes)


class LinkedNodes:
    """A graph's nodes, copied, with what each waits for and what waits for it: nodes may be taken out.

    Attributes
    ----------
    waits, waiters
        Positions, by position; those of nodes that are out mean nothing.
    out
        Positions of the nodes that were taken out.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = [replace(node) for node in nodes]
        self.waits = [set(node.waits) for node in nodes]
        self.waiters: list[set[int]] = [set() for _ in nodes]
        self.out: set[int] = set()
        for at, befores in enumerate(self.waits):
            for before in befores:
                self.waiters[before].add(at)

    def cut(self, before: int, after: int) -> None:
        """Let a node no longer wait for another."""
        self.waits[after].discard(before)
        self.waiters[before].discard(after)

    def take_out(self, at: int) -> None:
        """Let what waits for a node wait for what it waited for."""
        for before in self.waits[at]:
            self.waiters[before].discard(at)
            self.waiters[before] |= self.waiters[at]
        for later in self.waiters[at]:
            self.waits[later].discard(at)
            self.waits[later] |= self.waits[at]
        self.out.add(at)

    def left(self) -> list[Node]:
        """Return the nodes that were not taken out, in order."""
        left = [at for at in range(len(self.nodes)) if at not in self.out]
        number = {at: k for k, at in enumerate(left)}
        for at in left:
            self.nodes[at].waits = sorted(number[before] for before in self.waits[at])
        return [self.nodes[at] for at in left]


def replay_ms(graph: RunGraph, call_ms: Callable[[Node], float]) -> float:
    """Return how long the iteration lasts if every node begins as early as it may.

    Parameters
    ----------
    call_ms
        How long a call takes, in ms.

    Raises
    ------
    InputError
        If the graph has a cycle.
    """
    nodes = graph.nodes
    lasts_ms = [call_ms(node) if node.is_call else node.duration_ms for node in nodes]
    waits = [node.waits for node in nodes]
    last_ms = length(waits, lasts_ms)
    if last_ms is None:
        raise InputError(
            "the inferred waits form a cycle: the files are not of one recording, or not of one step",
            item=nodes[min(cycle_of(waits))].id,
        )
    return last_ms


def recorded_time(node: Node) -> float:
    """Return the time a call was recorded with, waiting left out."""
    return node.duration_ms


def at_speed(gbps: float) -> Callable[[Node], float]:
    """Return how long a call takes on a network of ``gbps`` a server without contention.

    A ring collective of n members moves 2 (n - 1) / n times its bytes (an all-reduce) or (n - 1) / n
    times; a send moves its bytes.
    """

    def call_ms(node: Node) -> float:
        if node.server_ms is not None:
            return node.server_ms
        return float(transfer_ms((node.size_bytes or 0.0) * share_moved(node), gbps))

    return call_ms


def free(node: Node) -> float:
    """Return how long a call takes on a network that takes no time."""
    return node.server_ms or 0.0


# How often a call's bytes go round, so that each member but itself has its part; others send all of them.
_ROUNDS = {
    "all_reduce": 2,
    **dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all", "unknown"), 1),
    **dict.fromkeys(("gather", "scatter"), 1),
}


def share_moved(node: Node) -> float:
    """Return what one member sends of a call's bytes."""
    n = len(node.ranks)
    if node.kind == "barrier" or n < 2:
        return 0.0
    if node.splits_bytes is not None and node.size_bytes:
        return most_moved(node.splits_bytes) / node.size_bytes
    rounds = _ROUNDS.get(node.kind)
    return 1.0 if rounds is None else rounds * (n - 1) / n


def most_moved(splits: Sequence[Sequence[float]]) -> float:
    """Return the most bytes that one member of an exchange sends to or receives from the others."""
    n = len(splits)
    sent = [sum(row) - row[i] for i, row in enumerate(splits)]
    received = [sum(splits[i][j] for i in range(n) if i != j) for j in range(n)]
    return max(*sent, *received)


@dataclass(frozen=True)
class StepTime:
    """One recorded step: how long it lasted, and how long it would with a network that takes no time."""

    number: int
    recorded_ms: float
    free_ms: float

    @property
    def words(self) -> str:
        """Its number; a file without steps is one."""
        return str(self.number) if self.number >= 0 else "all"


@dataclass(frozen=True)
class CallBar:
    """What one rank's kernel of a call did: it waited for the last rank, then moved bytes; in ms."""

    rank: int
    begin_ms: float
    latest_ms: float
    end_ms: float
    call: Node

    @property
    def waiting_ms(self) -> float:
        """How long it waited for the last rank."""
        return self.latest_ms - self.begin_ms

    @property
    def transfer_ms(self) -> float:
        """How long it moved bytes."""
        return self.end_ms - self.latest_ms


def call_bars(graph: RunGraph, ranks: Sequence[int]) -> list[CallBar]:
    """Return the calls of some ranks, each split where the last of its ranks began."""
    wanted = set(ranks)
    return [
        CallBar(rank, begin, min(max(begin, node.at_ms), end), end, node)
        for node in graph.calls
        for rank, begin, end in node.kernels
        if rank in wanted
    ]


def label_of(node: Node, labels: Mapping[str, str]) -> str:
    """Return the parallelism of a call: the reader's label, else what its group's description says; "" if none."""
    return labels.get(node.group) or labels.get(node.description) or node.parallelism or ""


def spans(numbers: Sequence[int], most: int = 6) -> str:
    """Return numbers in words: 0, 2 to 5, and 12 more."""
    places = groupby(enumerate(numbers), lambda place: place[1] - place[0])
    runs = [[one for _, one in run] for _, run in places]
    words = [f"{run[0]}" + f" to {run[-1]}" * (len(run) > 1) for run in runs[:most]]
    return ", ".join(words) + and_more(len(runs), most)
