"""Which parallelisms suit a model, what each moves over its rail, where circuits constrain it (Tables 1, 2)."""

import math
from dataclasses import dataclass
from typing import Any

from topox_core.io.limits import check_number, check_whole
from topox_core.model.arrays.groups import by_key
from topox_core.model.transfer_graph import transfer_ms
from topox_core.rails.builder import SCALARS, rail_program
from topox_core.text.numbers import percent
from topox_core.training.job import Job
from topox_core.training.pipeline.program import Spread, Step


@dataclass(frozen=True)
class ByteClass:
    """Traffic of one kind that a rank takes part in.

    Attributes
    ----------
    parallelism, operation
        E.g. ``fsdp`` and ``all_gather``; operations are of :data:`topox_core.rails.iteration.KINDS`.
    when
        Which passes it belongs to.
    calls, size_bytes
        Calls of one pass and the sum of their tensors: gathered output, reduced input, send buffer,
        message.
    counted_bytes
        As the paper's Fig. 4b counts them: a gather by the shard that a rank gives, all else by
        ``size_bytes``.
    wire_bytes
        What the rank sends for them on rings: (n - 1)/n of the tensors, twice that for an
        all-reduce; of an all-to-all others' pieces as well, which it forwards
        (:func:`topox_core.rails.timing.durations_ms`); of a message its bytes, whether sent or
        received.
    times
        How many such passes an iteration has.
    """

    parallelism: str
    operation: str
    when: str
    calls: int
    size_bytes: float
    counted_bytes: float
    wire_bytes: float
    times: int

    @property
    def iteration_bytes(self) -> float:
        """What the rank sends for them in an iteration."""
        return self.wire_bytes * self.times


def byte_classes(job: Job, stage: int = 0) -> tuple[ByteClass, ...]:
    """Return the classes of a rank of one stage, counted pass by pass in its program.

    The paper's preset has 3,829 MiB of reduce-scatter, 957 MiB of all-gather and messages of 64 MiB
    (Fig. 4b).
    """
    passes: dict[tuple[Any, ...], list[float]] = {}
    for step in rail_program(job).steps:
        if step.group is not None and stage in (step.stage, step.other):
            when, again = _when(job, step), ".again" in step.word
            own = step.name if step.kind == "send" else (again, *step.place.split(".")[1:3])
            what = (step.parallelism, step.spread is Spread.EXPERTS, step.kind, step.group.size)
            passes.setdefault((what, when, own), []).append(step.size_bytes)
    # Passes that move as much in as many calls are of one class.
    alike = by_key(
        ((*what, len(sizes), round(sum(sizes))), (when, sum(sizes)))
        for (what, when, _), sizes in passes.items()
    )
    rows = sorted(alike.items(), key=lambda row: (_RAIL.index(row[0][0]), row[0][1]))
    return tuple(
        _class(parallelism, kind, {when for when, _ in of}, calls, of[0][1], n, len(of))
        for (parallelism, _, kind, n, calls, _), of in rows
    )


# The order in which classes are shown.
_RAIL = ("fsdp", "cp", "ep", "pp", "dp")


def _when(job: Job, step: Step) -> str:
    """Return which passes a communication belongs to."""
    if step.other >= 0:
        return "between passes" if step.kind == "send" else "after the gradients"
    if step.word in SCALARS:
        return "optimizer"
    if step.word.startswith("gather"):
        return "after the update"
    early = job.schedule.reduce != "last" if job.plan.fsdp else step.microbatch >= 0
    if step.spread in (Spread.WEIGHTS, Spread.EXPERTS) and step.word[0] == "s" and not early:
        return "after the last backward pass"
    return "forward passes" if step.word[0] == "f" or ".again" in step.word else "backward passes"


def _class(
    parallelism: str, operation: str, when: set[str], calls: int, size: float, n: int, times: int
) -> ByteClass:
    twice = 2 if operation == "all_reduce" else 1
    part = 1.0 if operation == "send" else (n - 1) / n * twice
    if operation == "all_to_all":  # the shorter way round, others' pieces forwarded
        part = n * n // 4 / n
    return ByteClass(
        parallelism,
        operation,
        "forward and backward passes" if len(when) > 1 else min(when),
        calls,
        size,
        size / n if operation == "all_gather" else size,
        size * part,
        times,
    )


LARGE = 10e9  # parameters; Table 1 calls models below small
# From this share of a collective's time on, the steps of a ring (constraint C1) are said to limit a job.
LATENCY_SHARE = 0.1


@dataclass(frozen=True)
class Practice:
    """A row of Table 1: models, GPUs above ``more_than`` up to ``up_to``, the rule of thumb."""

    model: str
    more_than: int
    up_to: int | None
    strategies: tuple[str, ...]

    @property
    def gpus(self) -> str:
        """The range of GPUs in words."""
        if self.up_to is None:
            return f"more than {self.more_than:,}"
        return (
            f"up to {self.up_to:,}"
            if not self.more_than
            else f"more than {self.more_than:,}, up to {self.up_to:,}"
        )


@dataclass(frozen=True)
class Parallelism:
    """A row of Table 2: what a parallelism divides by its degree, and what it communicates."""

    key: str
    title: str
    memory: str
    compute: str
    when: str
    collective: str
    frequency: str
    on_rail: bool


TABLE_1 = (
    Practice("small", 0, 8, ("TP", "DP")),
    Practice("large", 8, 512, ("TP & PP", "TP & DP", "DP")),
    Practice("large", 512, 1024, ("DP & PP", "DP & TP")),
    Practice("large", 1024, None, ("TP, DP & PP",)),
)
_STATE = "parameters, gradients, optimizer"
_BOTH, _FSDP = "forward and backward", "forward AllGather, backward ReduceScatter"
_GATHERED = "AllGather, ReduceScatter"
_BY_LAYER = "per layer or per model"
TABLE_2 = (
    Parallelism("dp", "DP", "batch", "batch", "backward", "AllReduce", _BY_LAYER, True),
    Parallelism("fsdp", "FSDP", "batch, parameters", "batch", _FSDP, _GATHERED, _BY_LAYER, True),
    Parallelism("tp", "TP", _STATE, "parameters", _BOTH, "AllReduce", "per operator", False),
    Parallelism(
        "tp_sp",
        "TP & SP",
        f"{_STATE}, activations",
        "parameters, activations",
        _BOTH,
        _GATHERED,
        "per operator",
        False,
    ),
    Parallelism(
        "cp", "CP", "keys and values, sequence", "sequence", _FSDP, _GATHERED, "per layer", True
    ),
    Parallelism(
        "pp",
        "PP",
        f"{_STATE}, activations",
        "parameters",
        _BOTH,
        "Send/Recv",
        "per microbatch",
        True,
    ),
    Parallelism("ep", "EP", "experts", "experts", _BOTH, "AllToAll", "per layer", True),
)


@dataclass(frozen=True)
class Advice:
    """What Table 1 says; ``practice`` is None where it has no row, and ``note`` says so."""

    model: str
    practice: Practice | None
    note: str


@dataclass(frozen=True)
class Constraint:
    """Whether one of the paper's constraints on circuits (section 3) limits a job.

    Attributes
    ----------
    code
        As in the paper: C1 to C3.
    found
        The outcome in a few words.
    asks, why
        What the constraint is, and what comes of it for this job, as clauses.
    """

    code: str
    limits: bool
    found: str
    asks: str
    why: str


def advise(parameters: float, gpus: int) -> Advice:
    """Return the rule of thumb for a model of so many parameters on so many GPUs (Table 1).

    Raises
    ------
    InputError
        If a number is not above 0.
    """
    check_number(parameters, above=True, file="settings", field="parameters")
    check_whole(gpus, file="settings", field="gpus")
    model = "small" if parameters < LARGE else "large"
    for row in TABLE_1:
        if row.model == model and row.more_than < gpus <= (row.up_to or math.inf):
            return Advice(
                model,
                row,
                f"a {model} model on {row.gpus} GPUs: {' or '.join(row.strategies)}",
            )
    other = "more than 8" if model == "small" else "8 or fewer"
    return Advice(model, None, f"the table has no row for a {model} model on {other} GPUs")


def constraints(job: Job, nic_ports: int = 2, latency_us: float = 10.0) -> tuple[Constraint, ...]:
    """Return which constraints bind: C1 (rings only), C2 (few ports), C3 (a split NIC).

    Parameters
    ----------
    nic_ports
        Ports of a GPU's NIC on its rail.
    latency_us
        Of one step of a collective.
    """
    # The parallelisms that use the rail, each with the ranks of its largest group.
    replicas = "fsdp" if job.plan.fsdp else "dp"
    degrees = {
        replicas: job.plan.replicas,
        "pp": job.plan.pipeline,
        "cp": job.plan.context,
        "ep": job.plan.expert,
    }
    used = {key: degree for key, degree in degrees.items() if degree > 1}
    # What spans all replicas runs on their ring.
    same = [key for key in (replicas, "ep", "cp") if used.get(key) == job.plan.replicas]
    rings = [key.upper() for key in used if key not in same]
    if same:
        shared = " + ".join(key.upper() for key in same)
        rings.insert(0, f"{shared} (one ring)" if len(same) > 1 else shared)
    return (
        _rings_only(job, used, latency_us),
        _ports_at_once(rings, nic_ports),
        _split(len(rings), nic_ports),
    )


def _rings_only(job: Job, used: dict[str, int], latency_us: float) -> Constraint:
    asks, cost, little = (
        "a port reaches one neighbour at a time, so collectives run on rings: no trees, no direct all-to-all",
        "rings cost time, however fast the switch",
        "rings cost little time",
    )
    if "ep" in used:
        return Constraint(
            "C1",
            True,
            cost,
            asks,
            f"the all-to-all among {used['ep']} expert-parallel ranks is forwarded from neighbour to neighbour",
        )
    rings = {key: n for key, n in used.items() if key != "pp"}
    if not rings:
        return Constraint("C1", False, little, asks, "no collective uses the rail")
    # The shortest call waits longest for its steps, so the collective with the smallest tensors
    # decides; scalars apart.
    calls = [
        one
        for one in byte_classes(job)
        if one.parallelism in rings and one.operation != "send" and one.size_bytes > 1e3
    ]
    tightest = min(
        calls, key=lambda one: one.wire_bytes / one.calls / max(1, rings[one.parallelism] - 1)
    )
    n = rings[tightest.parallelism]
    wait_ms, tree_ms = (n - 1) * latency_us / 1e3, math.ceil(math.log2(n)) * latency_us / 1e3
    move_ms = transfer_ms(tightest.wire_bytes / tightest.calls, job.machine.network_gbps)
    share = (wait_ms - tree_ms) / (move_ms + wait_ms)
    limits = share > LATENCY_SHARE
    return Constraint(
        "C1",
        limits,
        cost if limits else little,
        asks,
        f"at {latency_us:g} µs per step, the smallest {tightest.parallelism.upper()} collective waits {wait_ms:.3g} ms on a ring of "
        f"{n} and {tree_ms:.3g} ms on a tree; moving its bytes takes {move_ms:.3g} ms",
    )


def _ports_at_once(rings: list[str], nic_ports: int) -> Constraint:
    # Two neighbours each, as the paper counts its degree of 6 for three parallelisms.
    ports, limits = 2 * len(rings), 2 * len(rings) > nic_ports
    return Constraint(
        "C2",
        limits,
        f"{'too few' if limits else 'enough'} ports for all circuits at once",
        "each ring or pipeline takes 2 ports of a GPU's NIC",
        f"{' and '.join(rings) or 'nothing'} on the rail: {ports} ports needed, {nic_ports} in the NIC, so circuits "
        + ("change during the iteration" if limits else "can stay"),
    )


def _split(rings: int, nic_ports: int) -> Constraint:
    asks = "fixed circuits give each parallelism ports of its own"
    if rings < 2:
        return Constraint("C3", False, "the NIC stays whole", asks, "no second ring shares it")
    share = nic_ports // rings / nic_ports
    why = f"would have {percent(share)} of the NIC each" if share else "cannot share it at all"
    return Constraint(
        "C3",
        True,
        "fixed circuits would split the NIC",
        asks,
        f"{rings} parallelisms {why}; circuits that change give each the whole NIC in turn",
    )
