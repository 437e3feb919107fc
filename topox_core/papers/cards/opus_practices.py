"""Opus's tables 1 and 2: which parallelisms a model is trained with, and how often each communicates."""

from functools import lru_cache

from topox_core.papers.card import CardRun, Rows
from topox_core.papers.rows import MATCH, Row
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


def _rule(run: CardRun, model: str, servers: int, batch: int) -> Row:
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
    if not inside:
        raise AssertionError(f"no plan of the rule fits {model} on {servers} servers")
    choice, best = (min(some, key=some.__getitem__) for some in (inside, times))
    rule_ms, best_ms = times[choice], times[best]
    return run.row(
        "rule",
        f"{shape.title}, {gpus:,} GPUs",
        rule_ms / best_ms,
        follows=rule_ms / best_ms <= 1 + MATCH,
        data={"rule_ms": rule_ms, "best_ms": best_ms},
        strategies=" or ".join(row.strategies),
        named=_words(choice),
        best=_words(best),
        rule_s=rule_ms / 1000,
        best_s=best_ms / 1000,
    )


def _words(used: frozenset[str]) -> str:
    return " & ".join(word for word in WORDS if word in used)


def _calls(run: CardRun) -> Rows:
    """Yield how often each parallelism communicates, per layer, operator or micro-batch as table 2 counts."""
    paper = PRESETS["llama3-8b-perlmutter"]
    copies = paper.changed(plan__zero=0, schedule__overlap_gradients=True)
    context = PRESETS["llama3.1-405b-16384-cp"]
    for item, preset, parallelism, operation, words in (
        ("DP", copies, "dp", "all_reduce", "bwd AR per layer"),
        ("FSDP, AG", paper, "fsdp", "all_gather", "fwd AG per layer"),
        ("FSDP, RS", paper, "fsdp", "reduce_scatter", "bwd RS per layer"),
        ("CP, AG", context, "cp", "all_gather", "fwd AG per layer"),
        ("CP, RS", context, "cp", "reduce_scatter", "bwd RS per layer"),
    ):
        yield _per_layer(run, item, preset, parallelism, operation, words)
    messages = sum(
        one.calls * one.times for one in byte_classes(paper, 0) if one.parallelism == "pp"
    )
    each, words = messages / (2 * paper.plan.microbatches), "fwd bwd Send/Recv per microbatch"
    yield run.row("calls", "PP", each, said=words, job=paper.name)
    yield _per_layer(run, "EP", PRESETS["mixtral-8x7b"], "ep", "", "fwd bwd AllToAll per layer")
    for item, sequence in (("TP", False), ("TP & SP", True)):
        plan = Plan(tensor=8, sequence_parallel=sequence)
        one = Job(SHAPES["llama3-70b"], plan, MACHINES["h100"])
        used = [each for each in layer_exchanges(one) if each.parallelism == "tp"]
        yield run.row("calls", item, sum(each.forward for each in used))


def _per_layer(
    run: CardRun, item: str, preset: Job, parallelism: str, operation: str, said: str
) -> Row:
    """Return the calls of one operation, or of all of a parallelism, over the layers of a pass."""
    layers = len(dealt(preset.shape.layers, preset.chunks)[0])
    calls = max(
        one.calls
        for one in byte_classes(preset, 0)
        if one.parallelism == parallelism and operation in ("", one.operation)
    )
    return run.row(
        "calls",
        item,
        calls / layers,
        follows=None if operation else calls % layers == 0,
        said=said,
        job=preset.name,
        calls=calls,
        layers=layers,
        more="; the table of the vocabulary is one of its own." if calls > layers else ".",
    )


def _shares(run: CardRun) -> Rows:
    """Yield the share of the weights that a GPU holds, against what table 2 divides by."""
    shape = SHAPES["llama3-70b"]
    for item, plan in (
        ("FSDP, params/dp", Plan(data=8, zero=3)),
        ("TP, params/tp", Plan(tensor=8)),
        ("PP, params/pp", Plan(pipeline=8, microbatches=8)),
    ):
        held = stage_memory(Job(shape, plan, MACHINES["h100"]), plan.pipeline // 2).weights_bytes
        yield run.row("share", item, held / (2.0 * shape.parameters), shape=shape.title)


def rows(run: CardRun) -> Rows:
    for point in POINTS:
        yield _rule(run, *point)
    yield from _calls(run)
    yield from _shares(run)
