"""Opus's constraints C1 to C3 (section 3): ports that a 3D-parallel job needs, and what a fixed split leaves."""

import math

from topox_core.errors import InputError
from topox_core.papers.card import CardRun, Rows
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import SEND, Rail, RailIteration
from topox_core.rails.presets import PRESETS
from topox_core.rails.timing import static_ports
from topox_core.training.job import Job

JOB, WITH_CP, OWN = "llama3.1-405b-8192", "llama3.1-405b-16384-cp", "llama3-8b-perlmutter"


def neighbours(preset: Job, iteration: RailIteration) -> tuple[int, int]:
    """Return of a rank of a middle stage the neighbours on the rail, and with the tensor ring in its server."""
    middle = int(iteration.stage.max() + 1) // 2
    rank = int((iteration.stage == middle).argmax())
    sends = set(iteration.group[iteration.kind == SEND].tolist())
    rings: dict[tuple[int, ...], int] = {}
    pairs = 0
    for number, group in enumerate(iteration.groups):
        if rank not in group.ranks or group.size < 2:
            continue
        if number in sends:
            pairs += 1
        else:
            rings[*group.ranks, group.size] = min(2, group.size - 1)
    on_rail = pairs + sum(rings.values())
    return on_rail, on_rail + min(2, preset.plan.tensor - 1)


def rows(run: CardRun) -> Rows:
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
            iteration, Rail(nic_gbps=preset.machine.nic_gbps, nic_ports=ports, static_split=fixed)
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
    built = {name: build(PRESETS[name], fold=True) for name in (JOB, WITH_CP, OWN)}
    known = {name: neighbours(PRESETS[name], one) for name, one in built.items()}
    job, with_cp, own = (PRESETS[name].heading for name in built)
    rail, every = known[JOB]
    yield run.row("degree", "3D parallel", every, rail=rail, job=job)
    yield run.row("degree", "the paper's own job", known[OWN][1], job=own)
    refused = not _dealt(built[WITH_CP], ports)
    beside = known[WITH_CP][0]
    yield run.row("c2", "context parallelism", beside, follows=refused, rail=rail, job=with_cp)


def said(run: CardRun) -> dict[str, str]:
    refused = run.of("c2")[0].verdict == "trend"
    return {"refused": "does not fit" if refused else "fits"}
