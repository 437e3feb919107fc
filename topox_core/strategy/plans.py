"""All parallel plans of a transformer on so many servers that fit the memory, ranked by their iteration in closed form."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from topox_core.errors import refuse_if
from topox_core.io.limits import check_whole
from topox_core.strategy.operators import divisors
from topox_core.training.costs.memory import Memory, memory
from topox_core.training.iteration import Iteration, iteration, parts, timed as timed_with
from topox_core.training.job import MAX_GPUS, MAX_PASSES, Job
from topox_core.training.machine import Machine
from topox_core.training.plan import MAX_MICROBATCHES, Plan, Schedule
from topox_core.training.shape import Shape

MICROBATCH_SIZES = (1, 2, 4, 8)
# What is recomputed: with fused attention ``selective`` keeps as much as ``none`` and takes longer.
RECOMPUTED = ("none", "full")
# So many of the fastest are kept, each with all that is known of it.
LISTED = 300
# How many plans are timed before anybody is asked whether to stop.
_TURN = 16


@dataclass(frozen=True)
class RankedPlan:
    """A job that fits, with its iteration and its memory."""

    job: Job
    iteration: Iteration
    memory: Memory

    @property
    def plan(self) -> Plan:
        """How it is spread over GPUs."""
        return self.job.plan

    @cached_property
    def total_ms(self) -> float:
        """The iteration, in closed form."""
        return self.iteration.total_ms

    @cached_property
    def parts(self) -> dict[str, float]:
        """What the iteration is spent on, in ms (:data:`topox_core.training.iteration.PARTS`)."""
        return parts(self.iteration)

    @property
    def recomputes(self) -> bool:
        """Whether the backward pass repeats the forward pass, so that only inputs of layers are kept."""
        return self.job.schedule.recompute == "full"

    @property
    def words(self) -> str:
        """The plan in one line."""
        return self.plan.words + (", recomputing" if self.recomputes else "")


@dataclass(frozen=True)
class Plans:
    """What an enumeration found.

    Attributes
    ----------
    ranked
        The ``LISTED`` fastest of the plans that fit, the fastest first (ties: less memory first).
    considered, too_large
        Plans that suit model and GPUs, and how many of them do not fit the memory.
    complete
        Whether all were considered (not stopped early).
    """

    ranked: tuple[RankedPlan, ...]
    considered: int
    too_large: int
    complete: bool = True

    @property
    def fitting(self) -> int:
        """Plans that fit the memory, listed or not."""
        return self.considered - self.too_large

    @property
    def best(self) -> RankedPlan:
        """The fastest."""
        return self.ranked[0]


def jobs(
    shape: Shape, machine: Machine, servers: int, batch: int, like: Job | None = None
) -> Iterator[Job]:
    """Yield a job for every plan that takes all GPUs of the servers and ``batch`` sequences an iteration.

    Tensor parallelism stays inside a server; a sequence is cut into twice as many pieces as there are
    context-parallel ranks (each takes an early and a late one, for balance). All share out the
    optimizer's state between replicas (ZeRO 1) and split the residual stream over tensor-parallel GPUs.
    Plans of more microbatches or passes than a job may have are left out.

    What is neither split nor sharding is as in ``like``, or else as a job begins with it: unevenness where
    experts are apart, interleaved stages where they suit the microbatches. Where the length of ``like`` is
    given, computing is scaled as there.
    """
    gpus, kept = servers * machine.gpus_per_server, like.plan if like else Plan()
    factor = iteration(like).factor if like and like.schedule.iteration_ms else None
    for tensor in divisors(machine.gpus_per_server):
        if shape.heads % tensor or not shape.keys_suit(tensor) or shape.feed_forward % tensor:
            continue
        for context in divisors(gpus // tensor):
            if context > 1 and shape.sequence % (2 * context):
                continue
            for pipeline in divisors(gpus // (tensor * context)):
                data = gpus // (tensor * context * pipeline)
                if pipeline > shape.layers or batch % data:
                    continue
                for expert in divisors(shape.experts):
                    if data % expert == 0:
                        degrees = replace(
                            kept,
                            tensor=tensor,
                            context=context,
                            data=data,
                            pipeline=pipeline,
                            expert=expert,
                            sequence_parallel=tensor > 1,
                            zero=1,
                            skew=kept.skew if expert > 1 else 0.0,
                        )
                        for job in _with_microbatches(shape, machine, degrees, batch // data, like):
                            yield job if factor is None else _scaled(job, factor)


def _scaled(job: Job, factor: float) -> Job:
    return job.changed(iteration_ms=timed_with(job, factor).total_ms)


def _with_microbatches(
    shape: Shape, machine: Machine, degrees: Plan, sequences: int, like: Job | None
) -> Iterator[Job]:
    order = replace(like.schedule, iteration_ms=0.0) if like else Schedule()
    plain = replace(order, order="1f1b", virtual=1) if order.virtual > 1 else order
    chunks = degrees.pipeline * order.virtual
    for size in MICROBATCH_SIZES:
        many, rest = divmod(sequences, size)
        if rest or many > MAX_MICROBATCHES or 2 * degrees.pipeline * many > MAX_PASSES:
            continue
        plan = replace(degrees, microbatches=many, microbatch_size=size)
        name = like.name if like else f"{shape.name}-{plan.gpus}"
        title = f"{shape.title}: {plan.words}"
        suits = degrees.pipeline > 1 and many % degrees.pipeline == 0 and chunks <= shape.layers
        suits = suits and 2 * chunks * many <= MAX_PASSES
        for recompute in RECOMPUTED:
            schedule = replace(order if suits else plain, recompute=recompute)
            yield Job(shape, plan, machine, schedule, name, title, "ranked by the closed form")


def best_plans(
    shape: Shape,
    machine: Machine,
    servers: int,
    batch: int,
    *,
    like: Job | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Plans:
    """Return the plans that fit, ranked.

    Parameters
    ----------
    batch
        Sequences of an iteration.
    like
        As of :func:`jobs`.
    stop
        Asked now and then; what was found so far is ranked.

    Raises
    ------
    InputError
        If ``servers`` or ``batch`` is out of range, no plan suits the GPUs, or none fits the memory.
    """
    file = f"model {shape.name}"
    check_whole(batch, 1, file=file, field="batch")
    most = MAX_GPUS // machine.gpus_per_server
    check_whole(servers, 1, most, file=file, field="servers")
    limit, considered, too_large, complete = machine.memory_gb * 1e9, 0, 0, True
    least, ranked = float("inf"), list[RankedPlan]()
    for job in jobs(shape, machine, servers, batch, like):
        if considered % _TURN == 0 and stop():
            complete = False
            break
        considered += 1
        needed = memory(job)
        least = min(least, needed.total_bytes)
        if needed.total_bytes > limit:
            too_large += 1
            continue
        ranked.append(RankedPlan(job, iteration(job), needed))
        if len(ranked) > 2 * LISTED:
            ranked = _fastest(ranked)
    refuse_if(
        (
            complete and not considered,
            f"no plan suits {servers * machine.gpus_per_server:,} GPUs and {batch:,} sequences: their number must "
            "be a multiple of the data-parallel replicas",
            "servers",
        ),
        (
            complete and not ranked,
            f"none of {considered:,} plans fits: the smallest needs {least / 1e9:,.1f} GB on a GPU, "
            f"which has {machine.memory_gb:g} GB",
            "memory_gb",
        ),
        file=file,
    )
    return Plans(tuple(_fastest(ranked)), considered, too_large, complete)


def _fastest(ranked: list[RankedPlan]) -> list[RankedPlan]:
    return sorted(ranked, key=lambda one: (one.total_ms, one.memory.total_bytes))[:LISTED]


def timed(job: Job, file: str = "job") -> RankedPlan:
    """Return one given job with its iteration and memory.

    Raises
    ------
    InputError
        If it does not fit the memory.
    """
    needed = memory(job)
    refuse_if(
        (
            needed.total_bytes > job.machine.memory_gb * 1e9,
            f"the plan does not fit: stage {needed.stage} needs {needed.total_bytes / 1e9:,.1f} GB "
            f"on a GPU, which has {job.machine.memory_gb:g} GB",
        ),
        file=file,
        item="machine",
        field="memory_gb",
    )
    return RankedPlan(job, iteration(job), needed)
