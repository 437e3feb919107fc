"""A model as a graph of operators: their costs when split, the bytes between them, and how one is written down."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from topox_core.io.limits import check_whole


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


TABLES = Path(__file__).parent / "tables"

# A server: four A100 of 80 GB, which share a partition's samples. Measured dense layers run at 14 to 18.3
# of the 19.5 TFLOP/s that one has in plain FP32; convolutions, which cuDNN does in TF32 unless told
# otherwise, at about half of 156. Measured lookups move 0.8 to 1.0 of 2.039 TB/s.
GPUS, MEMORY_GB = 4, 80.0
TFLOPS, TENSOR_TFLOPS = 19.5 * 0.85, 156.0 * 0.5
MEMORY_PER_MS = 2039.0 * 0.5 * 1e6
# No operator is faster than this on a GPU; the measured tables bottom out at 0.0098 ms.
LAUNCH_MS = 0.01


@dataclass(frozen=True)
class Work:
    """What an operator does, from which the roofline is drawn.

    Attributes
    ----------
    flop
        Forward floating-point operations a sample.
    moved_bytes
        Bytes that the forward pass reads and writes a sample, weights apart.
    weight_bytes
        Read once a pass by each GPU.
    state_bytes
        Weights, gradients and optimizer state together; twice the weights for plain SGD.
    kept_bytes
        Activations kept for the backward pass, a sample; as much again for their gradients is
        counted.
    tensor_cores
        Whether its products run there.
    """

    flop: float
    moved_bytes: float
    weight_bytes: float = 0.0
    state_bytes: float = 0.0
    kept_bytes: float = 0.0
    tensor_cores: bool = False


def roofline(work: Work, samples: int, gpus: int) -> Cost:
    """Return the cost of ``samples`` samples on one server: roofline, backward twice forward.

    Williams et al., Roofline, CACM 2009. The backward pass has two products for each of the forward
    pass; the measured tables have ratios around 1.9.
    """
    each = samples / gpus
    tflops = TENSOR_TFLOPS if work.tensor_cores else TFLOPS
    arithmetic_ms = work.flop * each / (tflops * 1e9)
    memory_ms = (work.weight_bytes + work.moved_bytes * each) / MEMORY_PER_MS
    forward_ms = round(max(LAUNCH_MS, arithmetic_ms, memory_ms), 6)
    # Training state, and activations with their gradients: with SGD state what the measured tables
    # list for dense layers and lookups, to the byte.
    memory_bytes = work.state_bytes + 2 * work.kept_bytes * samples / gpus
    return Cost(forward_ms, 2 * forward_ms, memory_bytes, "roofline")


@cache
def table(name: str) -> dict[str, dict[int, Cost]]:
    """Return a measured table: operator to samples of one server to cost."""
    record = json.loads((TABLES / f"{name}.json").read_text(encoding="utf-8"))
    return {
        operator: {
            int(samples): Cost(forward, backward, memory, "measured")
            for samples, (forward, backward, memory) in rows.items()
        }
        for operator, rows in record["operators"].items()
    }


MAX_SERVERS = 4096
FLOAT_BYTES = 4


class Blueprint:
    """Collects the operators of a model; every size is in elements of FP32 unless it says bytes.

    Parameters
    ----------
    servers
        Servers of the job. The samples of an iteration grow with them, so that a server's share,
        and with it what was measured, stays what it was published for.
    samples_per_server
        Samples of one server of an iteration that is split over all servers.
    measured
        Name of a measured table, or empty for roofline only.

    Raises
    ------
    InputError
        If ``servers`` is not a whole number from 1 to ``MAX_SERVERS``.
    """

    def __init__(
        self,
        name: str,
        title: str,
        source: str,
        servers: int,
        samples_per_server: int,
        measured: str = "",
    ) -> None:
        check_whole(servers, 1, MAX_SERVERS, file=f"model {name}", field="servers")
        self.name, self.title, self.source = name, title, source
        self.servers, self.samples = servers, servers * samples_per_server
        self._table = table(measured) if measured else {}
        self._operators: list[Operator] = []
        self._edges: list[Edge] = []
        self._output_bytes: dict[str, float] = {}

    def add(
        self,
        name: str,
        kind: str,
        work: Work,
        output_bytes: float,
        inputs: tuple[str, ...] = (),
        weights: tuple[Weight, ...] = (),
        measured_as: str = "",
        whole: bool = False,
    ) -> str:
        """Add one operator and return its name.

        Parameters
        ----------
        output_bytes
            Of its output, a sample: what each consumer reads.
        inputs
            Operators it reads.
        measured_as
            Its name in the measured table.
        whole
            It is not split and runs on one GPU of its server, as lookups do in the published
            measurements.
        """
        gpus = 1 if whole else GPUS
        measured = self._table.get(measured_as, {})
        samples = {p: self.samples // p for p in ((1,) if whole else divisors(self.servers))}
        costs = {p: measured.get(n) or roofline(work, n, gpus) for p, n in samples.items()}
        self._operators.append(Operator(name, kind, costs, weights, gpus))
        self._edges += [Edge(producer, name, self._output_bytes[producer]) for producer in inputs]
        self._output_bytes[name] = output_bytes
        return name

    def dense(
        self,
        name: str,
        inputs: int,
        outputs: int,
        after: tuple[str, ...] = (),
        *,
        bias: bool = True,
        rows: int = 1,
    ) -> str:
        """Add a dense layer; ``rows`` rows a sample (tokens of a sequence)."""
        weights = (
            Weight("weight", inputs * outputs),
            *((Weight("bias", outputs),) if bias else ()),
        )
        size = sum(weight.size_bytes for weight in weights)
        work = Work(
            flop=2.0 * rows * inputs * outputs,
            moved_bytes=FLOAT_BYTES * rows * (inputs + outputs),
            weight_bytes=size,
            state_bytes=2 * size,
            kept_bytes=FLOAT_BYTES * rows * (inputs + outputs),
        )
        return self.add(
            name,
            "dense",
            work,
            FLOAT_BYTES * rows * outputs,
            after,
            weights,
            f"Dense_{inputs}_{outputs}",
        )

    def embedding(self, name: str, rows: int, dimension: int, bag: int, element_bytes: int) -> str:
        """Add a table on one server: ``bag`` rows of it are added up for a sample; 8-byte indices.

        ``element_bytes`` is what an element of its output counts on the network.
        """
        size = FLOAT_BYTES * rows * dimension
        output = FLOAT_BYTES * dimension
        work = Work(
            flop=float(bag * dimension),
            moved_bytes=bag * (8 + output) + output,
            state_bytes=2 * size,
            kept_bytes=8 * bag + output,
        )
        return self.add(
            name,
            "embedding",
            work,
            element_bytes * dimension,
            weights=(Weight("table", rows * dimension),),
            measured_as=f"Embed_{rows}x{dimension}",
            whole=True,
        )

    def moving(
        self,
        name: str,
        kind: str,
        read: int,
        written: int,
        after: tuple[str, ...],
        measured_as: str = "",
    ) -> str:
        """Add an operator that mostly moves elements (concatenation, pooling, softmax)."""
        bytes_moved = FLOAT_BYTES * (read + written)
        work = Work(flop=float(read), moved_bytes=bytes_moved, kept_bytes=bytes_moved)
        return self.add(name, kind, work, FLOAT_BYTES * written, after, measured_as=measured_as)

    def graph(self) -> OperatorGraph:
        """Return the model."""
        return OperatorGraph(
            self.name,
            self.samples,
            tuple(self._operators),
            tuple(self._edges),
            MEMORY_GB,
            GPUS,
            self.title,
            self.source,
        )


def divisors(number: int) -> list[int]:
    """Return all divisors, ascending."""
    return [d for d in range(1, number + 1) if number % d == 0]
