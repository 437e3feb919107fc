"""The task graph of a transformer's iteration under a parallel plan.

A tensor-parallel group is one device: plans keep it inside a server. Devices are numbered context
first, then data, then pipeline, and fill the servers in that order. What stays in a server needs no
network.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from topox_core.errors import InputError
from topox_core.io.task_graph_rules import validated
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.strategy.plan_memory import GRADIENT_BYTES, stage_parameters, tokens
from topox_core.strategy.plan_time import pass_ms, update_ms
from topox_core.strategy.plans import GpuCluster, ParallelPlan, check_plan
from topox_core.strategy.transformers import HALF, Shape
from topox_core.training.order import order

MAX_TASKS = 200_000


def plan_graph(shape: Shape, plan: ParallelPlan, cluster: GpuCluster) -> TaskGraph:
    """Return the task graph: 1F1B per replica, exchanges of each pass, sends between stages, gradients, update.

    What the layers of a stage exchange in one pass is one collective after it: the all-gather of
    keys and values (context, twice as much in the backward pass), the all-to-all of tokens there
    and back (experts). Everything that follows the pass waits for it. Tensor parallelism is part of
    the compute time. Gradients are all-reduced in FP32.

    Raises
    ------
    InputError
        If the plan does not suit model and GPUs, or there would be more than ``MAX_TASKS`` tasks.
    """
    check_plan(plan, shape, cluster)
    tasks = list(islice(_Builder(shape, plan, cluster).tasks(), MAX_TASKS + 1))
    if len(tasks) > MAX_TASKS:
        raise InputError(
            f"would have more than {MAX_TASKS:,} tasks: use fewer microbatches or GPUs",
            file=f"model {shape.name}",
        )
    return validated(f"{shape.title}: {plan.words}", tasks, f"model {shape.name}")


class _Builder:
    """Yields the tasks; a worker is a (stage, data, context), a tensor-parallel group."""

    def __init__(self, shape: Shape, plan: ParallelPlan, cluster: GpuCluster) -> None:
        self.shape, self.plan, self.cluster = shape, plan, cluster
        self.tokens = tokens(shape, plan)

    def tasks(self) -> Iterator[Task]:
        plan = self.plan
        for stage in range(plan.pipeline):
            work = order(stage, plan.pipeline, plan.microbatches, "1f1b")
            times = pass_ms(self.shape, plan, self.cluster, stage)
            for data in range(plan.data):
                for context in range(plan.context):
                    yield from self._passes(stage, data, context, work, times)
            yield from self._exchanges(stage, work)
            yield from self._end(stage)

    def _place(self, stage: int, data: int, context: int) -> tuple[int, int]:
        worker = (stage * self.plan.data + data) * self.plan.context + context
        return divmod(worker, self.cluster.gpus_per_server // self.plan.tensor)

    def _servers(self, workers: list[tuple[int, int, int]]) -> tuple[int, ...]:
        return tuple(sorted({self._place(*worker)[0] for worker in workers}))

    def _groups(
        self, stage: int, data: int, context: int
    ) -> list[tuple[str, list[tuple[int, int, int]]]]:
        """Return the groups, by name, that a worker exchanges with over the network in each pass."""
        plan = self.plan
        found = []
        if plan.context > 1:
            found.append((f"cp.s{stage}.d{data}", [(stage, data, c) for c in range(plan.context)]))
        if plan.expert > 1:
            block = data // plan.expert
            members = [
                (stage, d, context) for d in range(block * plan.expert, (block + 1) * plan.expert)
            ]
            found.append((f"ep.s{stage}.e{block}.c{context}", members))
        return [(name, workers) for name, workers in found if len(self._servers(workers)) > 1]

    def _done(self, way: str, worker: tuple[int, int, int], m: int) -> tuple[str, ...]:
        """Return what ends a pass: its exchanges, or the pass itself."""
        groups = self._groups(*worker)
        return tuple(f"{way}.{name}.m{m}" for name, _ in groups) or (_name(way, worker, m),)

    def _passes(
        self,
        stage: int,
        data: int,
        context: int,
        work: list[tuple[str, int]],
        times: tuple[float, float],
    ) -> Iterator[Task]:
        worker = stage, data, context
        server, device = self._place(*worker)
        size = HALF * self.tokens * self.shape.base.hidden
        before: tuple[str, ...] = ()
        for way, m in work:
            came, goes = (stage - 1, stage + 1) if way == "f" else (stage + 1, stage - 1)
            waits = [*before, *(self._done("f", worker, m) if way == "b" else ())]
            if 0 <= came < self.plan.pipeline:
                sender = came, data, context
                waits += (
                    self._done(way, sender, m)
                    if self._place(*sender)[0] == server
                    else (f"x{_name(way, sender, m)}",)
                )
            yield Task(
                _name(way, worker, m),
                "forward" if way == "f" else "backward",
                tuple(dict.fromkeys(waits)),
                server=server,
                device=device,
                duration_ms=round(times[way == "b"], 6),
                microbatch=m,
                stage=stage,
            )
            before = self._done(way, worker, m)
            there = (
                self._place(goes, data, context)[0] if 0 <= goes < self.plan.pipeline else server
            )
            if there != server:
                yield Task(
                    f"x{_name(way, worker, m)}",
                    "communication",
                    before,
                    source=server,
                    destination=there,
                    size_bytes=size,
                    parallelism="pp",
                    group=f"pp.d{data}.c{context}",
                    microbatch=m,
                    stage=stage,
                )

    def _exchanges(self, stage: int, work: list[tuple[str, int]]) -> Iterator[Task]:
        plan, base = self.plan, self.shape.base
        layers = base.stage_layers(stage, plan.pipeline)
        groups = dict(
            group
            for data in range(plan.data)
            for context in range(plan.context)
            for group in self._groups(stage, data, context)
        )
        for name, workers in groups.items():
            members = self._servers(workers)
            if name.startswith("cp"):
                kind, parallelism, size = (
                    "all_gather",
                    "cp",
                    layers * 2 * HALF * self.tokens * base.key_value * plan.context,
                )
                factor = {"f": 1, "b": 2 + plan.recompute}
            else:
                share = len(workers) / len(members)
                kind, parallelism = "all_to_all", "ep"
                size = layers * 2 * HALF * self.tokens * base.hidden * self.shape.top_k * share
                factor = {"f": 1, "b": 1 + plan.recompute}
            for way, m in work:
                yield Task(
                    f"{way}.{name}.m{m}",
                    kind,
                    tuple(_name(way, worker, m) for worker in workers),
                    members=members,
                    size_bytes=float(size * factor[way]),
                    parallelism=parallelism,
                    group=name,
                    microbatch=m,
                    stage=stage,
                )

    def _end(self, stage: int) -> Iterator[Task]:
        """Yield the all-reduces of a stage's gradients and every device's update."""
        plan = self.plan
        shared, experts = stage_parameters(self.shape, plan, stage)
        last = plan.microbatches - 1
        everyone = [
            (stage, data, context) for data in range(plan.data) for context in range(plan.context)
        ]
        sums = [(f"sum.s{stage}", everyone, shared)]
        if experts:
            sums += [
                (
                    f"sum.experts.s{stage}.{r}",
                    [w for w in everyone if w[1] % plan.expert == r],
                    experts,
                )
                for r in range(plan.expert)
            ]
        waits: dict[tuple[int, int, int], list[str]] = {
            worker: list(self._done("b", worker, last)) for worker in everyone
        }
        for name, workers, count in sums:
            members = self._servers(workers)
            if len(members) > 1:
                ends = dict.fromkeys(
                    end for worker in workers for end in self._done("b", worker, last)
                )
                yield Task(
                    name,
                    "all_reduce",
                    tuple(ends),
                    members=members,
                    size_bytes=float(GRADIENT_BYTES * count * plan.tensor),
                    parallelism="dp",
                    group=name.replace("sum", "dp", 1),
                    stage=stage,
                )
                for worker in workers:
                    waits[worker].append(name)
        took_ms = round(update_ms(self.shape, plan, self.cluster, stage), 6)
        for worker in everyone:
            server, device = self._place(*worker)
            yield Task(
                f"u.s{worker[0]}.d{worker[1]}.c{worker[2]}",
                "update",
                tuple(waits[worker]),
                server=server,
                device=device,
                duration_ms=took_ms,
                stage=stage,
            )


def _name(way: str, worker: tuple[int, int, int], m: int) -> str:
    stage, data, context = worker
    return f"{way}.s{stage}.d{data}.c{context}.m{m}"
