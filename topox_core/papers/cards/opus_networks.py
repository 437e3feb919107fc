"""Opus's tables 1 to 3, constraints C1 to C3 and figure 7: parallelisms, ports, switches, and what the networks cost."""

import math
from functools import lru_cache
from itertools import count

from topox_core.economics.networks import NETWORKS, Counting, bills, saving
from topox_core.economics.price_sets import PRICE_SETS
from topox_core.errors import InputError
from topox_core.papers.card import CardRun, Rows
from topox_core.papers.rows import MATCH, Row
from topox_core.rails.advice import LARGE, TABLE_1, byte_classes
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import Simulation, simulate
from topox_core.rails.iteration import Rail, RailIteration
from topox_core.rails.presets import PRESETS
from topox_core.rails.technologies import SCALE_UP, TECHNOLOGIES, gpus, technology
from topox_core.rails.timing import static_ports
from topox_core.strategy.plans import jobs
from topox_core.text.numbers import short
from topox_core.training.costs.collectives import layer_exchanges
from topox_core.training.costs.memory import fits, stage_memory
from topox_core.training.iteration import iteration
from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
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
        named=_parallelisms(choice),
        best=_parallelisms(best),
        rule_s=rule_ms / 1000,
        best_s=best_ms / 1000,
    )


def _parallelisms(used: frozenset[str]) -> str:
    return " & ".join(word for word in WORDS if word in used)


def _communication(run: CardRun) -> Rows:
    """Yield how often each parallelism communicates, per layer, operator or micro-batch as table 2 counts."""
    paper = PRESETS["llama3-8b-perlmutter"]
    copies = paper.changed(zero=0, overlap_gradients=True)
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


def _weight_shares(run: CardRun) -> Rows:
    """Yield the share of the weights that a GPU holds, against what table 2 divides by."""
    shape = SHAPES["llama3-70b"]
    for item, plan in (
        ("FSDP, params/dp", Plan(data=8, zero=3)),
        ("TP, params/tp", Plan(tensor=8)),
        ("PP, params/pp", Plan(pipeline=8, microbatches=8)),
    ):
        held = stage_memory(Job(shape, plan, MACHINES["h100"]), plan.pipeline // 2).weights_bytes
        yield run.row("share", item, held / (2.0 * shape.parameters), shape=shape.title)


def opus_practices(run: CardRun) -> Rows:
    """Opus's tables 1 and 2: which parallelisms a model is trained with, and how often each communicates."""
    for point in POINTS:
        yield _rule(run, *point)
    yield from _communication(run)
    yield from _weight_shares(run)


JOB, WITH_CP, OWN = "llama3.1-405b-8192", "llama3.1-405b-16384-cp", "llama3-8b-perlmutter"


def neighbours(iteration: RailIteration) -> int:
    """Return the neighbours of a GPU on the rail: the fewest ports that a fixed split finds enough, a port a neighbour."""
    return next(ports for ports in count(1) if _dealt(iteration, ports))


def opus_constraints(run: CardRun) -> Rows:
    """Opus's constraints C1 to C3 (section 3): ports that a 3D-parallel job needs, and what a fixed split leaves."""
    ports = int(run.settings["nic_ports"])
    yield from _degrees(run, ports)
    for name in (JOB, WITH_CP):
        replicas = PRESETS[name].plan.replicas
        steps, tree = replicas - 1, math.ceil(math.log2(replicas))
        item, job = f"{replicas} replicas", PRESETS[name].heading
        yield run.row("c1", item, steps / tree, steps=steps, tree=tree, job=job)
    preset = PRESETS[OWN]
    iteration = build(preset)
    dealt = _dealt(iteration, ports) or {"fsdp": 0, "pp": 0}
    for parallelism, item in (("fsdp", "data parallel"), ("pp", "pipeline")):
        yield run.row("c3", item, dealt[parallelism] / ports, dealt=dealt[parallelism])
    whole, split = (
        simulate(
            iteration,
            Rail(nic_gbps=preset.machine.network_gbps, nic_ports=ports, static_split=fixed),
        ).iteration_ms
        for fixed in (False, True)
    )
    longer, job = 100 * (split / whole - 1), preset.heading
    yield run.row("cost", "fixed split", longer, split=split, whole=whole, job=job)


def _dealt(iteration: RailIteration, ports: int) -> dict[str, int]:
    """Return the ports of each parallelism under a fixed split; nothing where they are too few."""
    try:
        return static_ports(iteration, Rail(nic_ports=ports))
    except InputError:
        return {}


def _degrees(run: CardRun, ports: int) -> Rows:
    on_rail = {name: neighbours(build(PRESETS[name], fold=True)) for name in (JOB, WITH_CP, OWN)}
    for name, item in ((JOB, "3D parallel"), (OWN, "the paper's own job")):
        preset, rail = PRESETS[name], on_rail[name]
        every = rail + min(2, preset.plan.tensor - 1)  # with the ring inside its server
        yield run.row("degree", item, every, rail=rail, job=preset.heading)
    beside, job = on_rail[WITH_CP], PRESETS[WITH_CP].heading
    refused = beside > ports
    yield run.row("c2", "context parallelism", beside, follows=refused, rail=on_rail[JOB], job=job)


def opus_switches(run: CardRun) -> Rows:
    """Opus's table 3: how many GPUs each optical switch can join, and how fast it switches."""
    for machine, domain in SCALE_UP.items():
        for one in TECHNOLOGIES:
            joined = gpus(one, domain)
            yield run.row(machine, one.name, joined, technology=one, domain=domain)
    largest = max(TECHNOLOGIES, key=lambda one: one.radix)
    joined, minutes = gpus(largest, SCALE_UP["GB200"]), largest.reconfiguration_ms / 60_000
    yield run.row("most", "Largest network", joined, name=largest.name, minutes=minutes)
    preset = PRESETS["llama3-8b-perlmutter"]
    simulation = Simulation(build(preset), Rail(nic_gbps=preset.machine.network_gbps))
    for one in TECHNOLOGIES:
        took_ms = simulation.both_ms(one.reconfiguration_ms)[int(run.settings["control"])]
        longer = 100 * (took_ms / simulation.undisturbed_ms - 1)
        yield run.row("longer", one.name, longer, delay=short(one.reconfiguration_ms))


SIZES = (1_024, 2_048, 4_096, 8_192)
RIVALS = {name: NETWORKS[name] for name in ("rail_optimized", "fat_tree", "rail_only")}
LARGEST = "largest saving"


def opus_cost(run: CardRun) -> Rows:
    """Opus's figure 7: cost and power of photonic rails against packet-switched networks."""
    catalogue = PRICE_SETS[str(run.settings["prices"])]
    counting = Counting(method=str(run.settings["counting"]))
    rival = str(run.settings["rival"])
    saved: dict[str, dict[int, float]] = {measure: {} for measure in run.card.printed}
    by_size: list[Row] = []
    for size in SIZES:
        priced = bills(size, catalogue, counting, (*RIVALS, "photonic_rails"))
        mine = priced["photonic_rails"]
        for measure in run.card.printed:
            for other, words in RIVALS.items():
                amounts = mine.amount(measure), priced[other].amount(measure)
                share = 100 * saving(*amounts)
                if other == rival:
                    saved[measure][size] = share
                data = dict(zip((f"rails_{measure}", f"other_{measure}"), amounts, strict=True))
                item = f"{size:,} GPUs"
                by_size.append(run.row(f"{measure}_by_size", item, share, data=data, rival=words))
    piezo = gpus(technology("piezo"), counting.gpus_per_server)
    for measure, by in saved.items():
        size = max(by, key=by.__getitem__)
        yield run.row(measure, LARGEST, by[size], size=size, piezo=piezo, rival=RIVALS[rival])
    yield from by_size
