"""Made-up recordings whose truth is known: programs of ranks, their true times at any speed, the profiler's files.

Truth is a longest path: a communication begins on a rank once that rank's stream and its computing
are there, and ends on all ranks at once, when the last has come and the bytes have moved. The host
is always ahead of the GPU.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    stream: int = 0


@dataclass(frozen=True)
class Batch:
    """Sends and receives launched as one kernel, after their scopes have ended."""

    parts: tuple[Transfer, ...]
    stream: int = 30


@dataclass(frozen=True)
class Wait:
    """The computing waits for a call."""

    key: str


@dataclass(frozen=True)
class Block:
    """The host waits for the GPU."""


Op = Kernel | Call | Transfer | Batch | Wait | Block
Program = Mapping[int, Sequence[Op]]


def moved(call: Call | Transfer) -> float:
    """Bytes that one member sends."""
    if isinstance(call, Transfer):
        return call.size_bytes
    n = len(call.ranks)
    if call.kind == "barrier":
        return 0.0
    if call.kind == "all_reduce":
        return 2 * (n - 1) / n * call.size_bytes
    return (
        call.size_bytes if call.kind in ("broadcast", "reduce") else (n - 1) / n * call.size_bytes
    )


@dataclass
class Times:
    """What a simulation found: when each operation ran, by (step, rank, position), in us."""

    span: dict[tuple[int, int, int], tuple[float, float]]
    end_us: float


def simulate(
    program: Program, gbps: float, steps: int = 1, speeds: Mapping[str, float] | None = None
) -> Times:
    """Return the true times of some steps in a row at a network speed.

    ``speeds`` overrides the speed of the groups (by name) that it lists.
    """
    at = dict.fromkeys(program, (0, 0))
    computing = dict.fromkeys(program, 0.0)
    ends: dict[tuple[int, str], float] = {}
    stream_last: dict[tuple[int, int], tuple[int, str]] = {}
    posted: dict[tuple[int, str], dict[int, tuple[float, tuple[int, str] | None]]] = defaultdict(
        dict
    )
    of_batch: dict[tuple[int, str], tuple[int, int, int]] = {}
    needs: dict[tuple[int, str], tuple[int, float]] = {}
    where: dict[tuple[int, str], list[tuple[int, int, int]]] = defaultdict(list)
    batches: dict[tuple[int, str], list[tuple[int, str]]] = {}
    span: dict[tuple[int, int, int], tuple[float, float]] = {}

    def end_of(key: tuple[int, str]) -> float | None:
        if key in batches:
            parts = [ends.get(part) for part in batches[key]]
            return None if None in parts else max(p for p in parts if p is not None)
        return ends.get(key)

    progress = True
    while progress:
        progress = False
        for rank in program:
            step, position = at[rank]
            while step < steps:
                if position == len(program[rank]):
                    step, position = step + 1, 0
                    continue
                op, place = program[rank][position], (step, rank, position)
                if isinstance(op, Kernel):
                    span[place] = (computing[rank], computing[rank] + op.us)
                    computing[rank] += op.us
                elif isinstance(op, Wait):
                    name = (
                        (step, f"{rank}|{op.key}")
                        if (step, f"{rank}|{op.key}") in batches
                        else (step, op.key)
                    )
                    end = end_of(name)
                    if end is None:
                        break
                    computing[rank] = max(computing[rank], end)
                elif isinstance(op, Block):
                    pass
                elif isinstance(op, Batch):
                    before = stream_last.get((rank, op.stream))
                    batch = (step, f"{rank}|{op.parts[0].key}")
                    batches[batch] = [(step, part.key) for part in op.parts]
                    for part in op.parts:
                        key = (step, part.key)
                        posted[key][rank] = (computing[rank], before)
                        needs[key] = (2, moved(part) * 8 / (gbps * 1000))
                        of_batch[key] = place
                        where[key].append(place)
                    stream_last[rank, op.stream] = batch
                else:
                    stream = op.stream if isinstance(op, Call) else stream_of(op)
                    key = (step, op.key)
                    posted[key][rank] = (computing[rank], stream_last.get((rank, stream)))
                    stream_last[rank, stream] = key
                    speed = gbps
                    if isinstance(op, Call) and speeds and op.group in speeds:
                        speed = speeds[op.group]
                    members = len(op.ranks) if isinstance(op, Call) else 2
                    needs[key] = (members, moved(op) * 8 / (speed * 1000))
                    where[key].append(place)
                position += 1
                progress = True
            at[rank] = (step, position)
        for key, ready in posted.items():
            if key in ends or len(ready) < needs[key][0]:
                continue
            begins = []
            for time, before in ready.values():
                other = 0.0 if before is None else end_of(before)
                if other is None:
                    break
                begins.append(max(time, other))
            if len(begins) < len(ready):
                continue
            ends[key] = max(begins) + needs[key][1]
            for place, begin in zip(where[key], begins, strict=True):
                low, high = span.get(place, (begin, 0.0))
                span[place] = (min(low, begin), max(high, ends[key]))
            progress = True
    assert all(step == steps for step, _ in at.values()), "the program cannot run"
    return Times(span, max(end for _, end in span.values()))


def stream_of(op: Transfer) -> int:
    return op.stream or 100 + 10 * op.source + op.destination


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
    extra: dict[str, Any] = field(default_factory=dict)


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
            known = {
                (op.group, op.description, op.ranks)
                for ops in self._program.values()
                for op in ops
                if isinstance(op, Call) and self._rank in op.ranks
            }
            info["pg_config"] = [
                {"pg_name": name, "pg_desc": words, "ranks": list(ranks)}
                for name, words, ranks in sorted(known)
            ]
        record = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": k} for k in range(8)],
            "distributedInfo": info,
            "traceEvents": [*self._host, *self._gpu],
            "traceName": "made",
        }
        return json.dumps(record | style.extra).encode()

    def _step(self, step: int) -> None:
        style, known = self._style, {}
        shared = self._runtime("cudaGraphLaunch", 7) if style.graphs else None
        for position, op in enumerate(self._program[self._rank]):
            span = self._times.span.get((step, self._rank, position), (0.0, 0.0))
            if isinstance(op, Kernel):
                self._kernel(op, span, shared)
            elif isinstance(op, Wait):
                self._wait(op, known.get(op.key))
            elif isinstance(op, Block):
                self._runtime("cudaDeviceSynchronize", 3.0)
            elif isinstance(op, Batch):
                for part in op.parts:
                    meta = self._transfer_meta(part)
                    self._scope("record_param_comms", self._now, 4.0, meta)
                    self._runtime("cudaStreamWaitEvent", 1.0)
                    self._now += 4.0
                correlation = self._runtime("cudaLaunchKernelExC", 2.0)
                self._activity("ncclDevKernel_SendRecv(ncclDevComm*)", op.stream, span, correlation)
                for part in op.parts:
                    known[part.key] = (op.stream, 0, self._now, ())
            else:
                known[op.key] = self._post(op, span, shared)

    def _kernel(self, op: Kernel, span: tuple[float, float], shared: int | None) -> None:
        begin = self._now
        parts = np.linspace(span[0], span[1], self._style.split + 1)
        thread = 2 if op.phase == "backward" else 1
        for low, high in itertools.pairwise(parts):
            correlation = (
                self._runtime("cudaLaunchKernel", 1.0, thread) if shared is None else shared
            )
            self._activity("gemm", op.stream, (float(low), float(high)), correlation)
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
    ) -> tuple[int, int, float, tuple[int, ...]]:
        style, begin = self._style, self._now
        stream = op.stream if isinstance(op, Call) else stream_of(op)
        meta = self._meta(op) if isinstance(op, Call) else self._transfer_meta(op)
        group = tuple(sorted(op.ranks)) if isinstance(op, Call) else (op.source, op.destination)
        number = self._numbers[group] = self._numbers[group] + 1
        if style.seq or style.waits == "seq":
            meta["Seq"] = number
        if style.identity:
            meta["Comms Id"] = f"{group}.{number}"
        self._now += 1.0
        self._runtime("cudaEventRecord", 1.0)
        self._runtime("cudaStreamWaitEvent", 1.0)  # orders the communication behind the computing
        correlation = self._runtime("cudaLaunchKernelExC", 2.0) if shared is None else shared
        self._now += 1.0
        recorded = self._runtime("cudaEventRecord", 1.0)
        name = f"ncclDevKernel_{type(op).__name__ if isinstance(op, Transfer) else op.kind}(ncclDevComm*)"
        if isinstance(op, Transfer) or op.kind == "all_to_all":
            name = "ncclDevKernel_SendRecv(ncclDevComm*)"
        elif style.metadata == "none":
            name = f"ncclDevKernel_{op.kind.title().replace('_', '')}_Sum_f32_RING_LL"
        in_kernel = meta if style.metadata == "kernel" else {}
        self._activity(name, stream, span, correlation, in_kernel)
        in_scope: dict[str, Any] = {}
        if style.metadata in ("kernel", "scope"):
            in_scope = meta
        elif style.metadata == "shapes":
            in_scope = {
                "Input Dims": [[meta["In msg nelems"]], []],
                "Input type": ["unsigned char", ""],
            }
        self._scope("record_param_comms", begin, self._now - begin, in_scope)
        if style.metadata == "shapes" and isinstance(op, Call):
            self._event("user_annotation", f"nccl:{op.kind}", begin + 0.5, self._now - begin - 1.0)
        return stream, number, float(recorded), group

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
        self._scope("record_param_comms", begin, self._now - begin, meta)

    def _meta(self, op: Call) -> dict[str, Any]:
        whole, share = op.size_bytes, op.size_bytes // len(op.ranks)
        into = share if op.kind == "all_gather" else whole
        out = share if op.kind == "reduce_scatter" else whole
        if op.kind == "barrier":
            into = out = 0
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

    def _transfer_meta(self, op: Transfer) -> dict[str, Any]:
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

    def _scope(self, name: str, begin: float, lasts: float, args: dict[str, Any]) -> None:
        self._event("cpu_op", name, begin, lasts, args=args)

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
        args: dict[str, Any] | None = None,
    ) -> None:
        own = {"stream": stream, "correlation": correlation, **(args or {})}
        begin, end = (self._late_us + time for time in span)
        self._gpu.append(self._record("kernel", name, begin, end - begin, 0, own))

    def _event(
        self,
        category: str,
        name: str,
        begin: float,
        lasts: float,
        thread: int = 1,
        args: dict[str, Any] | None = None,
    ) -> None:
        self._host.append(self._record(category, name, begin, lasts, thread, args or {}))

    def _record(
        self,
        category: str,
        name: str,
        begin: float,
        lasts: float,
        thread: int,
        args: dict[str, Any],
    ) -> dict[str, Any]:
        low = round(begin + self._zero, 3)
        return {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": 0 if thread == 0 else 4_000,
            "tid": args.get("stream", 0) if thread == 0 else thread,
            "ts": low,
            "dur": round(lasts, 3),
            "args": args,
        }


def pipeline_and_data(microbatches: int = 4, seed: int = 0) -> dict[int, list[Op]]:
    """Two stages of two replicas: one forward, one backward, gradients in three buckets, clipped by a common norm."""
    draw = np.random.default_rng(seed)
    program: dict[int, list[Op]] = {}
    for replica in (0, 1):
        first, second = replica, replica + 2
        ahead, behind = [], []
        for m in range(microbatches):
            size = 20_000_000
            ahead.append(Transfer(f"f{m}.{replica}", first, second, size))
            behind.append(Transfer(f"b{m}.{replica}", second, first, size))
        one: list[Op] = []
        two: list[Op] = []
        jitter = [float(x) for x in draw.uniform(0.9, 1.1, 8)]

        def work(us: float, phase: str, k: int, jitter: list[float] = jitter) -> list[Op]:
            return [Kernel(us * jitter[k % 8] / 4, phase) for _ in range(4)]

        for m in range(microbatches):
            two += [ahead[m], Wait(ahead[m].key), *work(900, "forward", m)]
            last = m == microbatches - 1
            if last:
                two += _buckets(second, work(1_700, "backward", m + 1), replica)
                two.insert(len(two), behind[m])
            else:
                two += [*work(1_700, "backward", m + 1), behind[m]]
        for m in range(2):
            one += [*work(800, "forward", m + 2), ahead[m]]
        for m in range(microbatches):
            one += [behind[m], Wait(behind[m].key)]
            if m == microbatches - 1:
                one += _buckets(first, work(1_600, "backward", m + 3), replica)
            else:
                one += work(1_600, "backward", m + 3)
            if m + 2 < microbatches:
                one += [*work(800, "forward", m + 4), ahead[m + 2]]
        program[first], program[second] = one, two
    for rank, ops in program.items():
        ops += [Wait(f"g{k}.{rank // 2}") for k in range(3)]
        norm = Call("norm", "all_reduce", (0, 1, 2, 3), 4, 21, "n", "world")
        ops += [Kernel(20.0, "update"), norm, Wait("norm"), Kernel(350.0, "update")]
    return dict(sorted(program.items()))


def _buckets(rank: int, work: list[Op], replica: int) -> list[Op]:
    stage = rank // 2
    members = (2 * stage, 2 * stage + 1)
    ops: list[Op] = []
    for k, op in enumerate(work):
        ops.append(op)
        if k:
            ops.append(
                Call(
                    f"g{k - 1}.{stage}",
                    "all_reduce",
                    members,
                    30_000_000,
                    20,
                    f"d{stage}",
                    "mesh_dp",
                )
            )
    return ops


def fsdp(layers: int = 6, ranks: int = 4, seed: int = 1) -> dict[int, list[Op]]:
    """Weights gathered one layer ahead, gradients scattered behind, each rank of its own pace."""
    draw = np.random.default_rng(seed)
    group = tuple(range(ranks))
    program: dict[int, list[Op]] = {}
    for rank in group:
        pace = float(draw.uniform(0.95, 1.05))
        ops: list[Op] = []

        def gather(name: str, size: int = 40_000_000) -> Call:
            return Call(name, "all_gather", group, size, 20, "0", "fsdp")

        ops.append(gather("f0"))
        for k in range(layers):
            if k + 1 < layers:
                ops.append(gather(f"f{k + 1}"))
            ops += [Wait(f"f{k}"), *(Kernel(250 * pace) for _ in range(3))]
        ops.append(gather(f"b{layers - 1}"))
        for k in reversed(range(layers)):
            if k:
                ops.append(gather(f"b{k - 1}"))
            ops += [Wait(f"b{k}"), *(Kernel(500 * pace, "backward") for _ in range(3))]
            ops.append(Call(f"r{k}", "reduce_scatter", group, 40_000_000, 24, "0", "fsdp"))
            if k + 2 < layers:
                ops.append(Wait(f"r{k + 2}"))
                ops.append(Kernel(20 * pace, "backward"))
        ops += [Wait("r1"), Wait("r0"), Kernel(15.0, "update")]
        norm = Call("norm", "all_reduce", group, 4, 25, "n", "world")
        ops += [norm, Wait("norm"), Kernel(300.0, "update")]
        program[rank] = ops
    return program


def experts(layers: int = 4, ranks: int = 4, seed: int = 2) -> dict[int, list[Op]]:
    """Tokens sent to experts and back, a shared expert beside the first exchange."""
    draw = np.random.default_rng(seed)
    group = tuple(range(ranks))
    program: dict[int, list[Op]] = {rank: [] for rank in group}
    for phase in ("forward", "backward"):
        for k in range(layers):
            load = draw.uniform(0.8, 1.2, ranks)
            for rank in group:

                def exchange(name: str) -> Call:
                    return Call(name, "all_to_all", group, 16_000_000, 20, "0", "expert_parallel")

                there, back = f"{phase}{k}.there", f"{phase}{k}.back"
                program[rank] += [
                    *(Kernel(150.0, phase) for _ in range(2)),
                    exchange(there),
                    Kernel(220.0, phase),
                    Wait(there),
                    *(Kernel(400.0 * float(load[rank]), phase) for _ in range(2)),
                    exchange(back),
                    Wait(back),
                    Kernel(100.0, phase),
                ]
    for rank in group:
        grads = Call("grads", "all_reduce", group, 50_000_000, 26, "n", "data_parallel")
        program[rank] += [grads, Wait("grads"), Kernel(250.0, "update")]
    return program


JOBS = {"pipeline": pipeline_and_data, "fsdp": fsdp, "experts": experts}
