"""A model as a graph of operators: their costs when split, the bytes between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from topox_core.errors import InputError, printable, shown
from topox_core.io.ranges import is_number, is_whole

SOURCES = ("measured", "roofline", "closed form")
MAX_NAME = 80


@dataclass(frozen=True)
class Cost:
    """One partition of an operator on one server.

    Attributes
    ----------
    forward_ms, backward_ms
        Running times.
    memory_bytes
        Weights with their training state, and activations with their gradients, on each GPU that
        works on it.
    source
        ``measured``, ``roofline``, or ``closed form``: a training iteration's.
    """

    forward_ms: float
    backward_ms: float
    memory_bytes: float
    source: str


@dataclass(frozen=True)
class Weight:
    """One trained tensor; its gradient is all-reduced over the servers that share it."""

    name: str
    elements: int
    element_bytes: int = 4

    @property
    def size_bytes(self) -> int:
        """Bytes of the gradient."""
        return self.elements * self.element_bytes


@dataclass(frozen=True)
class Operator:
    """One operator.

    Attributes
    ----------
    costs
        For each number of partitions it may be split into (by samples, one server each) the cost of
        one partition. An operator that cannot be split, such as an embedding table, has 1 only.
    weights
        Trained tensors, whole on every server that has a partition.
    gpus
        GPUs of a server that work on a partition, each with its own copy of the weights.
    """

    name: str
    kind: str
    costs: Mapping[int, Cost]
    weights: tuple[Weight, ...] = ()
    gpus: int = 1

    @property
    def parameters(self) -> int:
        """Trained elements."""
        return sum(weight.elements for weight in self.weights)


@dataclass(frozen=True)
class Edge:
    """What a consumer reads of a producer, a sample; as many bytes of gradient come back."""

    producer: str
    consumer: str
    bytes_per_sample: float


@dataclass(frozen=True)
class OperatorGraph:
    """A model, ready to be split: acyclic, every operator with a cost.

    Attributes
    ----------
    samples
        Of one iteration, over all servers.
    memory_gb, gpus_per_server
        Of the machine that the costs belong to: memory of a GPU in 10^9 bytes, and GPUs of a
        server.
    source
        Where the structure and the numbers come from.

    Raises
    ------
    InputError
        If an operator has no cost or a bad one, a name is used twice, an edge names no operator, or
        edges go round.
    """

    name: str
    samples: int
    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...] = ()
    memory_gb: float = 80.0
    gpus_per_server: int = 1
    title: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if not is_whole(self.samples):
            raise self._wrong(
                f"must be a whole number of at least 1 (got {shown(self.samples)})", field="samples"
            )
        if not self.operators:
            raise self._wrong("must hold at least one operator", field="operators")
        if not is_number(self.memory_gb, above=True):
            raise self._wrong(
                f"must be a number above 0 (got {shown(self.memory_gb)})", field="memory_gb"
            )
        for operator in self.operators:
            self._check_operator(operator)
        if len(self.position) < len(self.operators):
            names = [operator.name for operator in self.operators]
            raise self._wrong("is used twice", next(n for n in names if names.count(n) > 1), "name")
        self._check_edges()

    def _wrong(self, problem: str, operator: str = "", field: str = "") -> InputError:
        return InputError(
            problem,
            file=f"model {printable(self.name)}",
            field=field,
            item=f"operator {printable(operator)}" if operator else "",
        )

    def _check_operator(self, operator: Operator) -> None:
        name = operator.name
        if not name or len(name) > MAX_NAME or not name.isprintable() or " " in name:
            raise self._wrong(
                f"must be 1 to {MAX_NAME} printable characters without spaces (got {shown(name)})",
                field="name",
            )
        if not operator.costs:
            raise self._wrong(
                "has no cost: give forward and backward ms for at least one number of partitions",
                name,
                "costs",
            )
        for partitions, cost in operator.costs.items():
            if not is_whole(partitions):
                raise self._wrong(
                    f"partitions must be whole numbers of at least 1 (got {shown(partitions)})",
                    name,
                    "costs",
                )
            for field in ("forward_ms", "backward_ms", "memory_bytes"):
                value = getattr(cost, field)
                if not is_number(value):
                    raise self._wrong(
                        f"must be a number of at least 0 for {partitions} partitions (got {shown(value)})",
                        name,
                        field,
                    )
            if cost.source not in SOURCES:
                raise self._wrong(
                    f"must be one of {', '.join(SOURCES)} (got {shown(cost.source)})",
                    name,
                    "source",
                )
        for weight in operator.weights:
            if weight.elements < 0 or weight.element_bytes < 1:
                raise self._wrong(
                    f"weight {printable(weight.name)} must have at least 0 elements of at least 1 byte",
                    name,
                    "weights",
                )

    def _check_edges(self) -> None:
        waits: dict[str, set[str]] = {operator.name: set() for operator in self.operators}
        for edge in self.edges:
            for end in (edge.producer, edge.consumer):
                if end not in waits:
                    raise self._wrong(
                        f"an edge names {shown(end)}, which is not an operator", field="edges"
                    )
            if not is_number(edge.bytes_per_sample):
                raise self._wrong(
                    f"must be a number of at least 0 (got {shown(edge.bytes_per_sample)})",
                    edge.producer,
                    "bytes_per_sample",
                )
            if edge.producer in waits[edge.consumer]:
                raise self._wrong(
                    f"has two edges from {printable(edge.producer)}: add their bytes up",
                    edge.consumer,
                    "edges",
                )
            waits[edge.consumer].add(edge.producer)
        try:
            TopologicalSorter(waits).prepare()
        except CycleError as circle:
            way = " -> ".join(map(printable, circle.args[1]))
            raise self._wrong(f"edges form a cycle: {way}", field="edges") from None

    @cached_property
    def position(self) -> dict[str, int]:
        """Position of every operator by name."""
        return {operator.name: k for k, operator in enumerate(self.operators)}

    @property
    def parameters(self) -> int:
        """Trained elements of the whole model."""
        return sum(operator.parameters for operator in self.operators)

    def operator(self, name: str) -> Operator:
        """Return an operator by name."""
        return self.operators[self.position[name]]

    def choices(self, operator: Operator, servers: int) -> tuple[int, ...]:
        """Return the numbers of partitions that suit ``servers`` and the samples, ascending."""
        return tuple(
            sorted(p for p in operator.costs if servers % p == 0 and self.samples % p == 0)
        )
