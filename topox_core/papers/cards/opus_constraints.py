"""Opus's constraints C1 to C3 (section 3): ports that a 3D-parallel job needs, and what a fixed split leaves."""

import math
from collections.abc import Iterator

from topox_core.errors import InputError
from topox_core.papers.card import CardRun
from topox_core.papers.rows import Row, directed, printed, stated, unprinted
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


def rows(run: CardRun) -> Iterator[Row]:
    ports = int(run.settings["nic_ports"])
    yield from _degrees(run, ports)
    for name in (JOB, WITH_CP):
        replicas = PRESETS[name].plan.replicas
        steps, tree = replicas - 1, math.ceil(math.log2(replicas))
        yield directed(
            "c1",
            f"{replicas} replicas",
            PRESETS[name].heading,
            stated(steps / tree) == "trend",
            steps / tree,
            f"“Bandwidth-efficient but incur high latency”: {steps:,} of a ring, {tree} of recursive doubling.",
            unit="×",
        )
    preset = PRESETS[OWN]
    iteration = build(preset)
    try:
        dealt = static_ports(iteration, Rail(nic_ports=ports))
    except InputError:
        dealt = {}
    for parallelism in ("fsdp", "pp"):
        yield printed(
            "c3",
            {"fsdp": "data parallel", "pp": "pipeline"}[parallelism],
            f"{ports} ports",
            run.card.printed["c3"],
            dealt.get(parallelism, 0) / ports,
            f"{dealt.get(parallelism, 0)} of {ports} ports: “two ports must be allocated to each parallelism dimension, "
            "effectively halving the available bandwidth”.",
        )
    whole, split = (
        simulate(
            iteration, Rail(nic_gbps=preset.machine.nic_gbps, nic_ports=ports, static_split=fixed)
        ).iteration_ms
        for fixed in (False, True)
    )
    yield unprinted(
        "cost",
        "fixed split",
        preset.heading,
        100 * (split / whole - 1),
        f"{split:,.1f} ms with ports split permanently, {whole:,.1f} ms with circuits that change at once.",
        unit="%",
    )


def _degrees(run: CardRun, ports: int) -> Iterator[Row]:
    known = {}
    for name in (JOB, WITH_CP, OWN):
        preset = PRESETS[name]
        known[name] = neighbours(preset, build(preset, fold=True))
    rail, every = known[JOB]
    yield printed(
        "degree",
        "3D parallel",
        PRESETS[JOB].heading,
        run.card.printed["degree"],
        every,
        f"{rail} on the rail (a ring, and the stages before and after), two on the ring inside the server.",
        unit="neighbours",
    )
    yield unprinted(
        "degree",
        "the paper's own job",
        PRESETS[OWN].heading,
        known[OWN][1],
        "Rings of two have one neighbour.",
        unit="neighbours",
    )
    with_cp = known[WITH_CP][0]
    refused = False
    try:
        static_ports(build(PRESETS[WITH_CP], fold=True), Rail(nic_ports=ports))
    except InputError:
        refused = True
    yield directed(
        "c2",
        "context parallelism",
        f"{PRESETS[WITH_CP].heading}, {ports} ports",
        refused,
        with_cp,
        f"“Adding CP would be infeasible without additional NICs”: {with_cp} neighbours at once on the rail, {rail} without.",
        unit="neighbours",
    )


def said(run: CardRun) -> dict[str, str]:
    refused = run.row("c2", "context parallelism").verdict == "trend"
    return {"refused": "does not fit" if refused else "fits"}
