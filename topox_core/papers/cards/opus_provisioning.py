"""Opus's figures 5 and 8: what switching costs on demand, and provisioned ahead of the calls."""

import numpy as np

from topox_core.papers.card import CardRun, Rows
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.iteration import ALL_GATHER, SEND, Rail, RailRun
from topox_core.rails.measured import SWEEPS
from topox_core.rails.presets import PRESETS

DELAYS_MS = (1.0, 10.0, 50.0, 100.0, 250.0, 500.0, 1_000.0)
AT_MS = 100.0


def rows(run: CardRun) -> Rows:
    preset = PRESETS["llama3-8b-perlmutter"].changed(
        schedule__reduce=str(run.settings["reduce"]),
        schedule__regather=bool(run.settings["regather"]),
    )
    iteration, rail = build(preset), Rail(nic_gbps=preset.machine.nic_gbps)
    simulation = Simulation(iteration, rail)
    base = simulation.undisturbed_ms
    for delay in DELAYS_MS:
        both = simulation.both_ms(delay + float(run.settings["link_up_ms"]))
        for series, ms in zip(("demand", "ahead"), both, strict=True):
            data = {"iteration_ms": ms, "undisturbed_ms": base}
            longer = 100 * (ms / base - 1)
            yield run.row(series, f"{delay:,g} ms", longer, data=data, base_s=base / 1000)
    runs = [
        Simulation(
            iteration,
            Rail(nic_gbps=preset.machine.nic_gbps, reconfiguration_ms=AT_MS, provisioned=ahead),
        ).run()
        for ahead in (False, True)
    ]
    for rank, item, kind, what in (
        (0, "rank 0", SEND, "first activation sent"),
        (preset.plan.data, "rank 4", ALL_GATHER, "weights gathered once it is there"),
    ):
        late, early = (_first_ms(run, rank, kind) for run in runs)
        earlier = late - early
        yield run.row(
            "warm_up", item, earlier, follows=earlier > 0, late=late, early=early, what=what
        )
    for sweep in SWEEPS[:2]:
        longer = 100 * (dict(sweep.rows)[AT_MS] / sweep.baseline_s - 1)
        item = "provisioned" if sweep.provisioned else "on demand"
        yield run.row("measured", item, longer, gpus=sweep.gpus, caveat=sweep.caveat)


def _first_ms(run: RailRun, rank: int, kind: int) -> float:
    """Return when the first communication of a kind begins that a rank takes part in."""
    iteration = run.iteration
    own = [
        node
        for node in np.flatnonzero(iteration.kind == kind).tolist()
        if rank in iteration.groups[iteration.group[node]].ranks
    ]
    return float(min(run.start_ms[own]))
