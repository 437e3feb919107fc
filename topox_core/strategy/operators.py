"""A model as a graph of operators: their costs when split, the bytes between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property


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

    @property
    def size_bytes(self) -> int:
        """Bytes of the gradient, in FP32."""
        return 4 * self.elements


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
    """A model, ready to be split: acyclic, every operator with a cost (tests build each of the catalogue).

    Attributes
    ----------
    samples
        Of one iteration, over all servers.
    memory_gb, gpus_per_server
        Of the machine that the costs belong to: memory of a GPU in 10^9 bytes, and GPUs of a
        server.
    source
        Where the structure and the numbers come from.
    """

    name: str
    samples: int
    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...] = ()
    memory_gb: float = 80.0
    gpus_per_server: int = 1
    title: str = ""
    source: str = ""

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
