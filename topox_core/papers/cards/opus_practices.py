"""Opus's tables 1 and 2: which parallelisms a model is trained with, and how often each communicates."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import starmap

from topox_core.papers.card import CardRun
from topox_core.papers.rows import MATCH, Row, directed, printed
from topox_core.rails.advice import LARGE, TABLE_1, byte_classes
from topox_core.rails.presets import PRESETS
from topox_core.strategy.plans import jobs
from topox_core.training.collectives import layer_exchanges
from topox_core.training.iteration import iteration
from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
from topox_core.training.memory import fits, stage_memory
from topox_core.training.plan import Plan, dealt
from topox_core.training.shape import SHAPES

WORDS = {"TP": "tensor", "DP": "data", "PP": "pipeline", "CP": "context"}


# Models and clusters of servers of eight H100 that the rows of table 1 speak of: shape, servers, batch.
# One cluster for every row of table 1, and both ends of its second one.
POINTS = (
    ("llama3-8b", 1, 64),
    ("llama3-70b", 8, 256),
    ("llama3-70b", 64, 1_024),
    ("llama3-70b", 128, 1_024),
    ("llama3-405b", 256, 2_048),
)


@lru_cache(maxsize=len(POINTS))
def fastest_ms(shape: str, servers: int, batch: int) -> dict[frozenset[str], float]:
    """Return the shortest iteration by the parallelisms that a plan has, of those that fit the memory."""
    best: dict[frozenset[str], float] = {}
    for job in jobs(SHAPES[shape], MACHINES["h100"], servers, batch):
        used = frozenset(word for word, field in WORDS.items() if getattr(job.plan, field) > 1)
        if fits(job):
            best[used] = min(best.get(used, float("inf")), iteration(job).total_ms)
    return best


def _rule(model: str, servers: int, batch: int) -> Row:
    shape, gpus = SHAPES[model], 8 * servers
    size = "small" if shape.parameters < LARGE else "large"
    row = next(
        one
        for one in TABLE_1
        if one.model == size and one.more_than < gpus <= (one.up_to or float("inf"))
    )
    named = [
        frozenset(words.replace(",", " &").replace("& ", "").split()) for words in row.strategies
    ]
    times = fastest_ms(model, servers, batch)
    inside = {used: times[used] for used in named if used in times}
    best = min(times, key=lambda used: times[used])
    if not inside:
        raise AssertionError(f"no plan of the rule fits {model} on {servers} servers")
    choice = min(inside, key=lambda used: inside[used])
    ratio = inside[choice] / times[best]
    return directed(
        "rule",
        f"{shape.title}, {gpus:,} GPUs",
        " or ".join(row.strategies),
        ratio <= 1 + MATCH,
        ratio,
        f"{_words(choice)} takes {inside[choice] / 1000:.3g} s, the best of all plans ({_words(best)}) "
        f"{times[best] / 1000:.3g} s. A rule holds that costs at most a tenth; no number is printed.",
        data={"rule_ms": inside[choice], "best_ms": times[best]},
    )


def _words(used: frozenset[str]) -> str:
    return " & ".join(word for word in WORDS if word in used)


def _calls() -> Iterator[Row]:
    """Yield how often each parallelism communicates, per layer, operator or micro-batch as table 2 counts."""
    paper = PRESETS["llama3-8b-perlmutter"]
    copies = paper.changed(plan__zero=0, schedule__overlap_gradients=True)
    context = PRESETS["llama3.1-405b-16384-cp"]
    per_layer = (
        ("DP", copies, "dp", "all_reduce", "bwd AR per layer"),
        ("FSDP, AG", paper, "fsdp", "all_gather", "fwd AG per layer"),
        ("FSDP, RS", paper, "fsdp", "reduce_scatter", "bwd RS per layer"),
        ("CP, AG", context, "cp", "all_gather", "fwd AG per layer"),
        ("CP, RS", context, "cp", "reduce_scatter", "bwd RS per layer"),
    )
    yield from starmap(_per_layer, per_layer)
    messages = sum(
        one.calls * one.times for one in byte_classes(paper, 0) if one.parallelism == "pp"
    )
    yield printed(
        "calls",
        "PP",
        f"fwd bwd Send/Recv per microbatch; {paper.name}",
        1,
        messages / (2 * paper.plan.microbatches),
        "Messages of the first stage, forward and backward, over its micro-batches.",
        unit="calls",
    )
    yield _experts()
    for item, sequence, kinds in (("TP", False, 1), ("TP & SP", True, 2)):
        plan = Plan(tensor=8, sequence_parallel=sequence)
        one = Job(SHAPES["llama3-70b"], plan, MACHINES["h100"])
        used = [each for each in layer_exchanges(one) if each.parallelism == "tp"]
        yield printed(
            "calls",
            item,
            f"fwd bwd {'AG&RS' if sequence else 'AR'} per operator",
            2 * kinds,
            sum(each.forward for each in used),
            "Calls of a layer's forward pass: two operators (attention, feed-forward), "
            f"{'a gather and a scatter' if sequence else 'one all-reduce'} each.",
            unit="calls",
        )


def _per_layer(item: str, preset: Job, parallelism: str, operation: str, said: str) -> Row:
    layers = len(dealt(preset.shape.layers, preset.chunks)[0])
    calls = max(
        one.calls
        for one in byte_classes(preset, 0)
        if (one.parallelism, one.operation) == (parallelism, operation)
    )
    return printed(
        "calls",
        item,
        f"{said}; {preset.name}",
        1,
        calls / layers,
        f"{calls} calls of a pass of {layers} layers"
        + ("; the table of the vocabulary is one of its own." if calls > layers else "."),
        unit="calls",
    )


def _experts() -> Row:
    preset = PRESETS["mixtral-8x7b"]
    layers = len(dealt(preset.shape.layers, preset.chunks)[0])
    calls = max(one.calls for one in byte_classes(preset, 0) if one.parallelism == "ep")
    return directed(
        "calls",
        "EP",
        f"fwd bwd AllToAll per layer; {preset.name}",
        calls % layers == 0,
        calls / layers,
        f"{calls} calls of a pass of {layers} layers: tokens go to their experts and come back. How many a layer has "
        "is not printed.",
        unit="calls",
    )


def _shares() -> Iterator[Row]:
    """Yield the share of the weights that a GPU holds, against what table 2 divides by."""
    shape = SHAPES["llama3-70b"]
    whole = 2.0 * shape.parameters
    for item, plan, by in (
        ("FSDP, params/dp", Plan(data=8, zero=3), 8),
        ("TP, params/tp", Plan(tensor=8), 8),
        ("PP, params/pp", Plan(pipeline=8, microbatches=8), 8),
    ):
        held = stage_memory(Job(shape, plan, MACHINES["h100"]), plan.pipeline // 2).weights_bytes
        yield printed(
            "share",
            item,
            f"{shape.title}, degree 8",
            1 / by,
            held / whole,
            "Weights of a GPU of the middle stage over those of the model; the tables of the vocabulary are on the "
            "first and last stage.",
        )


def rows(run: CardRun) -> Iterator[Row]:  # noqa: ARG001 (no switch, nothing printed that is a number)
    yield from starmap(_rule, POINTS)
    yield from _calls()
    yield from _shares()


def said(run: CardRun) -> dict[str, int]:
    kept = [row.verdict != "differs" for row in run.of("rule")]
    return {"kept": sum(kept), "rules": len(kept)}
