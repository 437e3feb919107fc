"""What an operator costs: measured where a table has it, an analytic roofline elsewhere."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from topox_core.errors import InputError
from topox_core.strategy.operators import Cost

# No operator is faster than this on a GPU; the measured tables bottom out at 0.0098 ms.
LAUNCH_MS = 0.01
TABLES = Path(__file__).parent / "tables"


@dataclass(frozen=True)
class Machine:
    """One server.

    Attributes
    ----------
    gpus
        GPUs that share a partition's samples.
    tflops, efficiency
        Peak of one GPU in TFLOP/s at the precision used, and the share of it that large products
        reach.
    tensor_tflops, tensor_efficiency
        The same for work on tensor cores.
    memory_gb_per_s, memory_efficiency
        Peak memory bandwidth of one GPU, and the share of it that streaming reaches.
    launch_ms
        No operator is faster than this.
    memory_gb
        Memory of one GPU in 10^9 bytes.
    """

    name: str
    gpus: int
    tflops: float
    efficiency: float
    tensor_tflops: float
    tensor_efficiency: float
    memory_gb_per_s: float
    memory_efficiency: float
    launch_ms: float
    memory_gb: float


# Measured dense layers run at 14 to 18.3 of the 19.5 TFLOP/s that an A100 has in plain FP32;
# convolutions, which cuDNN does in TF32 unless told otherwise, at about half of 156. Measured
# lookups move 0.8 to 1.0 of 2.039 TB/s.
A100 = Machine(
    "4 x A100 80 GB, FP32",
    gpus=4,
    tflops=19.5,
    efficiency=0.85,
    tensor_tflops=156.0,
    tensor_efficiency=0.5,
    memory_gb_per_s=2039.0,
    memory_efficiency=0.5,
    launch_ms=LAUNCH_MS,
    memory_gb=80.0,
)


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


def roofline(work: Work, samples: int, machine: Machine, gpus: int) -> Cost:
    """Return the cost of ``samples`` samples on one server: roofline, backward twice forward.

    Williams et al., Roofline, CACM 2009. The backward pass has two products for each of the forward
    pass; the measured tables have ratios around 1.9.
    """
    each = samples / gpus
    tflops = (
        machine.tensor_tflops * machine.tensor_efficiency
        if work.tensor_cores
        else machine.tflops * machine.efficiency
    )
    arithmetic_ms = work.flop * each / (tflops * 1e9)
    memory_ms = (work.weight_bytes + work.moved_bytes * each) / (
        machine.memory_gb_per_s * machine.memory_efficiency * 1e6
    )
    forward_ms = round(max(machine.launch_ms, arithmetic_ms, memory_ms), 6)
    return Cost(forward_ms, 2 * forward_ms, memory_bytes(work, samples, gpus), "roofline")


def memory_bytes(work: Work, samples: int, gpus: int) -> float:
    """Return the memory of one GPU: training state, and activations with their gradients.

    With SGD state it equals what the measured tables list for dense layers and lookups, to the
    byte.
    """
    return work.state_bytes + 2 * work.kept_bytes * samples / gpus


@cache
def table(name: str) -> dict[str, dict[int, Cost]]:
    """Return a measured table: operator to samples of one server to cost.

    Raises
    ------
    InputError
        If there is no table of that name.
    """
    path = TABLES / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in TABLES.glob("*.json")))
        raise InputError(
            f"must be one of {known} (got {name[:80]!r})", file="measured tables", field="name"
        )
    record = json.loads(path.read_text(encoding="utf-8"))
    return {
        operator: {
            int(samples): Cost(forward, backward, memory, "measured")
            for samples, (forward, backward, memory) in rows.items()
        }
        for operator, rows in record["operators"].items()
    }
