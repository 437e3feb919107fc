"""What a job runs on: GPUs, the servers they are in, and the network between."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.training.checks import Fields


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

    name: str
    title: str
    gpus_per_server: int
    tflops: float
    memory_gb: float
    memory_gb_per_s: float
    inside_gb_per_s: float
    nic_gbps: float
    matmul_share: float
    memory_share: float = 0.70
    inside_share: float = 0.76
    network_share: float = 0.9
    inside_call_us: float = 41.0
    inside_step_us: float = 2.7
    network_call_us: float = 41.0
    network_step_us: float = 5.0
    host_ms: float = 0.0
    status: str = "your own"

    def __post_init__(self) -> None:
        fields = Fields(self, "machine")
        fields.text("name title")
        fields.whole("gpus_per_server")
        fields.number("tflops memory_gb memory_gb_per_s inside_gb_per_s nic_gbps")
        fields.number("matmul_share memory_share inside_share network_share", 0.001, 1.0)
        fields.number(
            "inside_call_us inside_step_us network_call_us network_step_us host_ms", 0.0, 1e6
        )
        fields.choice("status", ("calibrated", "transferred", "your own"))

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
