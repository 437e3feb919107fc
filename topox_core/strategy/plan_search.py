"""All parallel plans of a transformer that fit the memory, ranked by their analytic iteration time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from topox_core.errors import InputError
from topox_core.io.ranges import check_whole
from topox_core.strategy.blueprint import divisors
from topox_core.strategy.plan_memory import Memory, memory
from topox_core.strategy.plan_time import PlanTime, plan_time
from topox_core.strategy.plans import GpuCluster, ParallelPlan, check_plan
from topox_core.strategy.transformers import Shape

MICROBATCH_SIZES = (1, 2, 4, 8)


@dataclass(frozen=True)
class RankedPlan:
    """A plan that fits, with its time and memory."""

    plan: ParallelPlan
    time: PlanTime
    memory: Memory


@dataclass(frozen=True)
class Plans:
    """What an enumeration found.

    Attributes
    ----------
    ranked
        Plans that fit the memory, the fastest first (ties: less memory first).
    considered, too_large
        Plans that suit model and GPUs, and how many of them exceed the memory.
    complete
        Whether all were considered (not stopped early).
    """

    ranked: tuple[RankedPlan, ...]
    considered: int
    too_large: int
    complete: bool = True

    @property
    def best(self) -> RankedPlan:
        """The fastest."""
        return self.ranked[0]


def plans(shape: Shape, cluster: GpuCluster, batch: int) -> Iterator[ParallelPlan]:
    """Yield every plan for all GPUs of a cluster and ``batch`` sequences an iteration.

    Tensor parallelism stays inside a server and divides the heads of keys; a sequence is cut into
    twice as many pieces as there are context-parallel ranks (each takes an early and a late one,
    for balance).
    """
    for tensor in divisors(cluster.gpus_per_server):
        if shape.heads % tensor or shape.key_heads % tensor or shape.base.feed_forward % tensor:
            continue
        for context in divisors(cluster.gpus // tensor):
            if context > 1 and shape.sequence % (2 * context):
                continue
            for pipeline in divisors(cluster.gpus // (tensor * context)):
                data = cluster.gpus // (tensor * context * pipeline)
                if pipeline <= shape.base.layers and not batch % data:
                    yield from _with_microbatches(
                        shape, tensor, context, pipeline, data, batch // data
                    )


def _with_microbatches(
    shape: Shape, tensor: int, context: int, pipeline: int, data: int, sequences: int
) -> Iterator[ParallelPlan]:
    for expert in divisors(shape.experts):
        if data % expert:
            continue
        for size in MICROBATCH_SIZES:
            if sequences % size == 0:
                for recompute in (False, True):
                    yield ParallelPlan(
                        tensor, pipeline, data, context, expert, sequences // size, size, recompute
                    )


def best_plans(
    shape: Shape,
    cluster: GpuCluster,
    batch: int | None = None,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> Plans:
    """Return the plans that fit, ranked.

    Parameters
    ----------
    batch
        Sequences of an iteration; the shape's own if None.
    stop
        Asked now and then; what was found so far is ranked.

    Raises
    ------
    InputError
        If ``batch`` is not a whole number above 0, no plan suits the GPUs, or none fits the memory.
    """
    batch = shape.batch if batch is None else batch
    wrong = partial(InputError, file=f"model {shape.name}")
    check_whole(batch, file=f"model {shape.name}", field="batch")
    limit, considered, least, complete = cluster.memory_gb * 1e9, 0, float("inf"), True
    fitting: list[tuple[ParallelPlan, Memory]] = []
    for plan in plans(shape, cluster, batch):
        if considered % 256 == 0 and stop():
            complete = False
            break
        considered += 1
        needed = memory(shape, plan)
        least = min(least, needed.total_bytes)
        if needed.total_bytes <= limit:
            fitting.append((plan, needed))
    if complete and not considered:
        raise wrong(
            f"no plan suits {cluster.gpus:,} GPUs and {batch:,} sequences: their number must be a multiple of the "
            "data-parallel replicas",
            field="servers",
        )
    if complete and not fitting:
        needs = f"{least / 1e9:,.1f} GB on a GPU, which has {cluster.memory_gb:g} GB"
        raise wrong(
            f"none of {considered:,} plans fits: the smallest needs {needs}", field="memory_gb"
        )
    ranked = sorted(
        (RankedPlan(plan, plan_time(shape, plan, cluster), needed) for plan, needed in fitting),
        key=lambda one: (one.time.total_ms, one.memory.total_bytes),
    )
    return Plans(tuple(ranked), considered, considered - len(fitting), complete)


def timed(shape: Shape, plan: ParallelPlan, cluster: GpuCluster, file: str = "plan") -> RankedPlan:
    """Return one given plan with its time and memory.

    Raises
    ------
    InputError
        If it does not suit model and GPUs, or exceeds the memory.
    """
    check_plan(plan, shape, cluster, file)
    needed = memory(shape, plan)
    if needed.total_bytes > cluster.memory_gb * 1e9:
        needs = f"{needed.total_bytes / 1e9:,.1f} GB on a GPU, which has {cluster.memory_gb:g} GB"
        raise InputError(f"stage {needed.stage} needs {needs}", file=file, field="memory_gb")
    return RankedPlan(plan, plan_time(shape, plan, cluster), needed)
