"""Made-up recordings whose truth is known: programs of ranks, their true times at any speed, the profiler's files.

Truth is a longest path: a communication begins on a rank once that rank's stream and its computing
are there, and ends on all ranks at once, when the last has come and the bytes have moved. The host
is always ahead of the GPU.
"""

import itertools
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from typing import Any

import numpy as np

NCCL_NAMES = {
    "all_reduce": "allreduce",
    "all_gather": "_allgather_base",
    "reduce_scatter": "_reduce_scatter_base",
    "all_to_all": "all_to_allv",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "barrier": "barrier",
}


SCOPE = "record_param_comms"
GPU = 0  # in place of a thread of the host


@dataclass(frozen=True)
class Kernel:
    """Work of the GPU; ``phase`` is forward, backward or update."""

    us: float
    phase: str = "forward"
    stream: int = 7


@dataclass(frozen=True)
class Call:
    """A collective that its rank posts; ``key`` is the same on all ranks of a step."""

    key: str
    kind: str
    ranks: tuple[int, ...]
    size_bytes: int
    stream: int = 20
    group: str = "0"
    description: str = "default_pg"
    splits: tuple[int, ...] = ()


@dataclass(frozen=True)
class Transfer:
    """A send or a receive, by who has it in its program; on a rank one stream for each pair."""

    key: str
    source: int
    destination: int
    size_bytes: int

    @property
    def stream(self) -> int:
        return 100 + 10 * self.source + self.destination


@dataclass(frozen=True)
class Batch:
    """Sends and receives launched as one kernel, after their scopes have ended."""

    parts: tuple[Transfer, ...]
    stream: int = 30


@dataclass(frozen=True)
class Wait:
    """The computing waits for a call."""

    key: str


Op = Kernel | Call | Transfer | Batch | Wait
Program = Mapping[int, Sequence[Op]]


def moved(call: Call | Transfer) -> float:
    """Bytes that one member sends."""
    if isinstance(call, Transfer):
        return call.size_bytes
    n = len(call.ranks)
    whole = {"barrier": 0.0, "all_reduce": 2 * (n - 1) / n, "broadcast": 1.0, "reduce": 1.0}
    return whole.get(call.kind, (n - 1) / n) * call.size_bytes


@dataclass
class Times:
    """What a simulation found: when each operation ran, by (step, rank, position), in us."""

    span: dict[tuple[int, int, int], tuple[float, float]]
    end_us: float


def simulate(program: Program, gbps: float, steps: int = 1) -> Times:
    """Return the true times of some steps in a row at a network speed."""
    needs: dict[Any, list[Any]] = defaultdict(list)
    lasts: dict[Any, float] = {}
    for rank, ops in program.items():
        computing: list[Any] = []  # what the next kernel waits for
        streams: dict[int, list[Any]] = defaultdict(list)
        posted: dict[str, Any] = {}
        for step, (position, op) in itertools.product(range(steps), enumerate(ops)):
            place = step, rank, position
            if isinstance(op, Kernel):
                needs[place], lasts[place] = computing, op.us
                computing = [place]
            elif isinstance(op, Wait):
                computing = [*computing, posted[op.key]]
            else:
                begin, end = (place, "begin"), (place, "end")
                needs[begin] = [*computing, *streams[op.stream]]
                parts = op.parts if isinstance(op, Batch) else (op,)
                for part in parts:
                    needs[step, part.key].append(begin)
                    needs[end].append((step, part.key))
                    lasts[step, part.key] = moved(part) * 8 / (gbps * 1000)
                streams[op.stream] = [end]
                posted[parts[0].key] = end
    span: dict[Any, tuple[float, float]] = {}
    for one in TopologicalSorter(needs).static_order():
        begin_us = max((span[other][1] for other in needs[one]), default=0.0)
        span[one] = begin_us, begin_us + lasts.get(one, 0.0)
    ended = [one[0] for one in span if one[1] == "end"]
    span |= {place: (span[place, "begin"][0], span[place, "end"][1]) for place in ended}
    return Times(span, max(end for _, end in span.values()))


@dataclass(frozen=True)
class Style:
    """How a recording is written.

    Attributes
    ----------
    metadata
        ``kernel``: on the kernel and its scope; ``scope``: only there; ``shapes``: only the shapes of
        the scopes; ``none``.
    waits
        ``stream``: streams are told to wait; ``seq``: the wait has the call's number; ``sync``: the
        profiler recorded which stream waits for which.
    split
        Kernels into which each is cut.
    graphs
        All kernels of a step share one launch (a CUDA graph).
    """

    metadata: str = "kernel"
    waits: str = "stream"
    split: int = 1
    graphs: bool = False
    seq: bool = False
    identity: bool = False
    offsets_us: tuple[float, ...] = ()
    steps: int = 3
    first_step: int = 5
    world: int | None = None
    groups: bool = False


def recordings(program: Program, gbps: float, style: Style | None = None) -> dict[str, bytes]:
    """Return the profiler's files of a program, by name; the truth is what :func:`simulate` says."""
    style = style or Style()
    times = simulate(program, gbps, style.steps)
    return {f"run_rank{rank}.json": _Writer(program, rank, times, style).file() for rank in program}


class _Writer:
    def __init__(self, program: Program, rank: int, times: Times, style: Style) -> None:
        self._program, self._rank, self._times, self._style = program, rank, times, style
        self._host: list[dict[str, Any]] = []
        self._gpu: list[dict[str, Any]] = []
        self._correlation = 0
        operations = sum(len(ops) for ops in program.values()) * style.steps
        # All is asked for before the GPU begins.
        self._late_us = 60.0 * operations + 1_000.0
        offset = style.offsets_us[rank % len(style.offsets_us)] if style.offsets_us else 0.0
        self._zero = 5e6 - self._late_us + offset
        self._now = 0.0
        self._numbers: dict[tuple[int, ...], int] = defaultdict(int)

    def file(self) -> bytes:
        style = self._style
        for step in range(style.steps):
            begin = self._now
            self._step(step)
            self._event(
                "user_annotation",
                f"ProfilerStep#{style.first_step + step}",
                begin,
                self._now - begin,
            )
            self._now += 1.0
        world = style.world or len(self._program)
        info: dict[str, Any] = {"backend": "nccl", "rank": self._rank, "world_size": world}
        if style.groups:
            calls = (op for op in self._program[self._rank] if isinstance(op, Call))
            info["pg_config"] = [
                {"pg_name": name, "pg_desc": words, "ranks": list(ranks)}
                for name, words, ranks in sorted({(c.group, c.description, c.ranks) for c in calls})
            ]
        record = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": k} for k in range(8)],
            "distributedInfo": info,
            "traceEvents": [*self._host, *self._gpu],
            "traceName": "made",
        }
        return json.dumps(record).encode()

    def _step(self, step: int) -> None:
        style, known = self._style, {}
        shared = self._runtime("cudaGraphLaunch", 7) if style.graphs else None
        for position, op in enumerate(self._program[self._rank]):
            span = self._times.span.get((step, self._rank, position), (0.0, 0.0))
            if isinstance(op, Kernel):
                self._kernel(op, span, shared)
            elif isinstance(op, Wait):
                self._wait(op, known.get(op.key))
            elif isinstance(op, Batch):
                for part in op.parts:
                    self._event("cpu_op", SCOPE, self._now, 4.0, args=self._meta(part))
                    self._runtime("cudaStreamWaitEvent", 1.0)
                    self._now += 4.0
                correlation = self._runtime("cudaLaunchKernelExC", 2.0)
                self._activity("ncclDevKernel_SendRecv(ncclDevComm*)", op.stream, span, correlation)
                known[op.parts[0].key] = (op.stream, 0, self._now)
            else:
                known[op.key] = self._post(op, span, shared)

    def _kernel(self, op: Kernel, span: tuple[float, float], shared: int | None) -> None:
        begin, thread = self._now, 2 if op.phase == "backward" else 1
        for part in itertools.pairwise(np.linspace(*span, self._style.split + 1).tolist()):
            correlation = shared or self._runtime("cudaLaunchKernel", 1.0, thread)
            self._activity("gemm", op.stream, part, correlation)
        if op.phase == "update":
            self._event(
                "user_annotation", "Optimizer.step#Adam.step", begin - 0.5, self._now - begin
            )
        elif op.phase == "backward":
            self._event(
                "cpu_op",
                "autograd::engine::evaluate_function: MmBackward0",
                begin - 0.5,
                self._now - begin,
                thread,
            )

    def _post(
        self, op: Call | Transfer, span: tuple[float, float], shared: int | None
    ) -> tuple[int, int, float]:
        style, begin = self._style, self._now
        meta = self._meta(op)
        group = tuple(sorted(op.ranks)) if isinstance(op, Call) else (op.source, op.destination)
        number = self._numbers[group] = self._numbers[group] + 1
        if style.seq or style.waits == "seq":
            meta["Seq"] = number
        if style.identity:
            meta["Comms Id"] = f"{group}.{number}"
        self._now += 1.0
        self._runtime("cudaEventRecord", 1.0)
        self._runtime("cudaStreamWaitEvent", 1.0)  # orders the communication behind the computing
        correlation = shared or self._runtime("cudaLaunchKernelExC", 2.0)
        self._now += 1.0
        recorded = self._runtime("cudaEventRecord", 1.0)
        name = "SendRecv(ncclDevComm*)"
        if isinstance(op, Call) and op.kind != "all_to_all":
            plain = f"{op.kind.title().replace('_', '')}_Sum_f32_RING_LL"
            name = plain if style.metadata == "none" else f"{op.kind}(ncclDevComm*)"
        in_kernel = meta if style.metadata == "kernel" else {}
        self._activity(f"ncclDevKernel_{name}", op.stream, span, correlation, in_kernel)
        shapes = {
            "Input Dims": [[meta["In msg nelems"]], []],
            "Input type": ["unsigned char", ""],
        }
        in_scope = {"shapes": shapes, "none": {}}.get(style.metadata, meta)
        self._event("cpu_op", SCOPE, begin, self._now - begin, args=in_scope)
        if style.metadata == "shapes" and isinstance(op, Call):
            self._event("user_annotation", f"nccl:{op.kind}", begin + 0.5, self._now - begin - 1.0)
        return op.stream, number, float(recorded)

    def _wait(self, op: Wait, known: Any) -> None:
        style, begin = self._style, self._now
        self._now += 1.0
        correlation = self._runtime("cudaStreamWaitEvent", 1.0)
        meta: dict[str, Any] = {
            "Collective name": "wait",
            "Process Group Ranks": "[]",
            "dtype": "Byte",
        }
        if style.waits == "seq":
            meta["Seq"] = known[1]
        if style.waits == "sync":
            self._event(
                "cuda_sync",
                "Stream Wait Event",
                begin + 1.0,
                1.0,
                args={
                    "stream": 7,
                    "wait_on_stream": known[0],
                    "wait_on_cuda_event_record_corr_id": int(known[2]),
                    "correlation": correlation,
                },
            )
        self._event("cpu_op", SCOPE, begin, self._now - begin, args=meta)

    def _meta(self, op: Call | Transfer) -> dict[str, Any]:
        if isinstance(op, Transfer):
            sends = op.source == self._rank
            return {
                "Collective name": "send" if sends else "recv",
                "dtype": "Byte",
                "In msg nelems": op.size_bytes,
                "Out msg nelems": op.size_bytes,
                "Group size": 2,
                "Process Group Name": "pp",
                "Process Group Description": "undefined",
                ("Dst Rank" if sends else "Src Rank"): op.destination if sends else op.source,
            }
        whole, share = op.size_bytes, op.size_bytes // len(op.ranks)
        into = {"all_gather": share, "barrier": 0}.get(op.kind, whole)
        out = {"reduce_scatter": share, "barrier": 0}.get(op.kind, whole)
        return {
            "Collective name": NCCL_NAMES[op.kind],
            "dtype": "Byte",
            "In msg nelems": into,
            "Out msg nelems": out,
            "Group size": len(op.ranks),
            "Process Group Name": op.group,
            "Process Group Description": op.description,
            "Process Group Ranks": f"[{', '.join(map(str, op.ranks))}]",
            "In split size": f"[{', '.join(map(str, op.splits))}]",
        }

    def _runtime(self, name: str, lasts: float, thread: int = 1) -> int:
        self._correlation += 1
        self._event(
            "cuda_runtime", name, self._now, lasts, thread, {"correlation": self._correlation}
        )
        self._now += lasts
        return self._correlation

    def _activity(
        self,
        name: str,
        stream: int,
        span: tuple[float, float],
        correlation: int,
        args: Mapping[str, Any] | None = None,
    ) -> None:
        own = {"stream": stream, "correlation": correlation, **(args or {})}
        begin, end = (self._late_us + time for time in span)
        self._event("kernel", name, begin, end - begin, GPU, own)

    def _event(
        self,
        category: str,
        name: str,
        begin: float,
        lasts: float,
        thread: int = 1,
        args: Mapping[str, Any] | None = None,
    ) -> None:
        given = dict(args or {})
        event = {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": 0 if thread == GPU else 4_000,
            "tid": given["stream"] if thread == GPU else thread,
            "ts": round(begin + self._zero, 3),
            "dur": round(lasts, 3),
            "args": given,
        }
        (self._gpu if thread == GPU else self._host).append(event)


def pipeline_and_data(microbatches: int = 4) -> dict[int, list[Op]]:
    """Two stages of two replicas: one forward, one backward, gradients in three buckets, clipped by a common norm."""
    draw = np.random.default_rng(0)
    program: dict[int, list[Op]] = {rank: [] for rank in range(4)}
    norm = Call("norm", "all_reduce", (0, 1, 2, 3), 4, 21, "n", "world")
    for replica in (0, 1):
        ends = replica, replica + 2
        ahead = [Transfer(f"f{m}.{replica}", *ends, 20_000_000) for m in range(microbatches)]
        behind = [Transfer(f"b{m}.{replica}", *ends[::-1], 20_000_000) for m in range(microbatches)]
        one, two = (program[rank] for rank in ends)
        jitter = [float(x) for x in draw.uniform(0.9, 1.1, 8)]

        def work(us: float, k: int, jitter: list[float] = jitter) -> list[Op]:
            return [Kernel(us * jitter[k % 8] / 4)] * 4

        def backward(stage: int, us: float, m: int, k: int, work: Any = work) -> list[Op]:
            ops = [replace(op, phase="backward") for op in work(us, k)]
            return ops if m < microbatches - 1 else _buckets(stage, ops)

        for m in range(microbatches):
            two += [ahead[m], Wait(ahead[m].key), *work(900, m)]
            two += [*backward(1, 1_700, m, m + 1), behind[m]]
        for m in range(2):
            one += [*work(800, m + 2), ahead[m]]
        for m in range(microbatches):
            one += [behind[m], Wait(behind[m].key), *backward(0, 1_600, m, m + 3)]
            if m + 2 < microbatches:
                one += [*work(800, m + 4), ahead[m + 2]]
    for rank, ops in program.items():
        ops += [Wait(f"g{k}.{rank // 2}") for k in range(3)]
        ops += [Kernel(20.0, "update"), norm, Wait("norm"), Kernel(350.0, "update")]
    return program


def _buckets(stage: int, work: list[Op]) -> list[Op]:
    """The gradients of a stage leave after each kernel but the first."""
    group = (2 * stage, 2 * stage + 1), 30_000_000, 20, f"d{stage}", "mesh_dp"
    calls = [Call(f"g{k}.{stage}", "all_reduce", *group) for k in range(len(work) - 1)]
    return [work[0], *itertools.chain(*zip(work[1:], calls, strict=True))]


def fsdp(layers: int = 6, ranks: int = 4) -> dict[int, list[Op]]:
    """Weights gathered one layer ahead, gradients scattered behind, each rank of its own pace."""
    draw = np.random.default_rng(1)
    group = tuple(range(ranks))
    norm = Call("norm", "all_reduce", group, 4, 25, "n", "world")
    gathers = {
        name: Call(name, "all_gather", group, 40_000_000, 20, "0", "fsdp")
        for name in (f"{way}{k}" for way in "fb" for k in range(layers))
    }
    program: dict[int, list[Op]] = {}
    for rank in group:
        pace = float(draw.uniform(0.95, 1.05))
        ops: list[Op] = [gathers["f0"]]
        for k in range(layers):
            ops += [gathers[f"f{k + 1}"]] if k + 1 < layers else []
            ops += [Wait(f"f{k}"), *[Kernel(250 * pace)] * 3]
        ops.append(gathers[f"b{layers - 1}"])
        for k in reversed(range(layers)):
            ops += [gathers[f"b{k - 1}"]] if k else []
            ops += [Wait(f"b{k}"), *[Kernel(500 * pace, "backward")] * 3]
            ops.append(Call(f"r{k}", "reduce_scatter", group, 40_000_000, 24, "0", "fsdp"))
            if k + 2 < layers:
                ops += [Wait(f"r{k + 2}"), Kernel(20 * pace, "backward")]
        ops += [Wait("r1"), Wait("r0"), Kernel(15.0, "update")]
        program[rank] = [*ops, norm, Wait("norm"), Kernel(300.0, "update")]
    return program


def experts(layers: int = 4, ranks: int = 4) -> dict[int, list[Op]]:
    """Tokens sent to experts and back, a shared expert beside the first exchange."""
    draw = np.random.default_rng(2)
    group = tuple(range(ranks))
    program: dict[int, list[Op]] = {rank: [] for rank in group}
    for phase, k in itertools.product(("forward", "backward"), range(layers)):
        there, back = (
            Call(f"{phase}{k}.{way}", "all_to_all", group, 16_000_000, 20, "0", "expert_parallel")
            for way in ("there", "back")
        )
        for ops, load in zip(program.values(), draw.uniform(0.8, 1.2, ranks), strict=True):
            ops += [
                *[Kernel(150.0, phase)] * 2,
                there,
                Kernel(220.0, phase),
                Wait(there.key),
                *[Kernel(400.0 * float(load), phase)] * 2,
                back,
                Wait(back.key),
                Kernel(100.0, phase),
            ]
    grads = Call("grads", "all_reduce", group, 50_000_000, 26, "n", "data_parallel")
    for ops in program.values():
        ops += [grads, Wait("grads"), Kernel(250.0, "update")]
    return program


JOBS = {"pipeline": pipeline_and_data, "fsdp": fsdp, "experts": experts}
