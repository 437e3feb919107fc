"""What a job runs on: GPUs, the servers they are in, and the network between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from topox_core.schema.fields import plain_setting, setting
from topox_core.training.checks import check_part, degree, short_text


def _speed(title: str, unit: str, description: str) -> Any:
    return setting(title, unit, description, ge=1e-6, le=1e12)


def _share(description: str) -> Any:
    return plain_setting("", description, ge=0.001, le=1)


def _delay(unit: str, description: str) -> Any:
    return setting("", unit, description, ge=0, le=1e6)


@dataclass(frozen=True)
class Machine:
    """A GPU with its memory, its links, and the shares of their peaks that training reaches.

    Attributes
    ----------
    name, title
        A word and a heading.
    gpus_per_server
        GPUs that the fast links inside a server join.
    tflops, memory_gb, memory_gb_per_s
        Dense BF16 peak of a GPU, its memory in 10^9 bytes, and the memory's bandwidth.
    inside_gb_per_s, nic_gbps
        What a GPU sends inside its server (one way), and on its own network card.
    matmul_share, memory_share, inside_share, network_share
        Shares of the peaks that matrix products, memory, links inside, and network reach.
    inside_call_us, inside_step_us, network_call_us, network_step_us
        What a collective takes besides its bytes: once, and for each step of its ring.
    host_ms
        What the host takes to launch a pass.
    status
        Whether the shares were ``calibrated`` on this machine, ``transferred`` to it from another, or
        are ``your own``.

    Raises
    ------
    InputError
        If a field is out of range.
    """

    name: Annotated[str, short_text()]
    title: Annotated[str, short_text()]
    gpus_per_server: Annotated[
        int, degree("GPUs per server", "GPUs that the fast links of a server join")
    ]
    tflops: Annotated[float, _speed("Peak", "TFLOP/s", "dense BF16 peak of a GPU")]
    memory_gb: Annotated[float, _speed("Memory", "GB", "memory of a GPU")]
    memory_gb_per_s: Annotated[
        float, _speed("Memory bandwidth", "GB/s", "bandwidth of that memory")
    ]
    inside_gb_per_s: Annotated[
        float, _speed("Links inside", "GB/s", "what a GPU sends inside its server, one way")
    ]
    nic_gbps: Annotated[
        float,
        _speed("NIC", "Gbit/s", "network card of a GPU; all of a server feed its ports"),
    ]
    matmul_share: Annotated[float, _share("of the peak that matrix products reach")]
    memory_share: Annotated[float, _share("of the bandwidth that memory reaches")] = 0.70
    inside_share: Annotated[float, _share("of their speed that links inside reach")] = 0.76
    network_share: Annotated[float, _share("of its speed that a network card reaches")] = 0.9
    inside_call_us: Annotated[float, _delay("us", "of a collective inside a server, once")] = 41.0
    inside_step_us: Annotated[float, _delay("us", "the same, each step of its ring")] = 2.7
    network_call_us: Annotated[float, _delay("us", "of a collective across servers, once")] = 41.0
    network_step_us: Annotated[float, _delay("us", "the same, each step of its ring")] = 5.0
    host_ms: Annotated[float, _delay("ms", "what the host takes to launch a pass")] = 0.0
    status: Annotated[str, setting(choices=("calibrated", "transferred", "your own"))] = "your own"

    def __post_init__(self) -> None:
        check_part(self, "machine")

    @property
    def operations_per_ms(self) -> float:
        """Operations that a GPU does in a ms of matrix products; a multiply-add counts two."""
        return self.tflops * 1e9 * self.matmul_share

    @property
    def memory_per_ms(self) -> float:
        """Bytes that its memory moves in a ms."""
        return self.memory_gb_per_s * 1e6 * self.memory_share

    @property
    def inside_per_ms(self) -> float:
        """Bytes that it sends in a ms inside its server."""
        return self.inside_gb_per_s * 1e6 * self.inside_share

    @property
    def nic_per_ms(self) -> float:
        """Bytes that it sends in a ms on its network card."""
        return self.nic_gbps * 1e6 / 8 * self.network_share

    def matmul_ms(self, rows: float, inner: float, columns: float, count: float = 1.0) -> float:
        """Return the time of ``count`` products of ``rows x inner`` and ``inner x columns`` 2-byte numbers.

        Operations and moved bytes are added, not compared: small products fall short of the peak
        smoothly, large ones come near ``matmul_share``.
        """
        operations = 2.0 * rows * inner * columns * count
        moved = 2.0 * count * (rows * inner + inner * columns + rows * columns)
        return operations / self.operations_per_ms + moved / self.memory_per_ms

    def moved_ms(self, size_bytes: float) -> float:
        """Return the time in which its memory moves so many bytes, read and written ones counted."""
        return size_bytes / self.memory_per_ms
