"""Opus's figures 5 and 8: what switching costs on demand, and provisioned ahead of the calls."""

from collections.abc import Iterator

import numpy as np

from topox_core.papers.card import CardRun
from topox_core.papers.rows import Row, directed, printed, unprinted
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.iteration import ALL_GATHER, SEND, Rail, RailRun
from topox_core.rails.measured import SWEEPS
from topox_core.rails.presets import PRESETS

DELAYS_MS = (1.0, 10.0, 50.0, 100.0, 250.0, 500.0, 1_000.0)
AT_MS = 100.0


def rows(run: CardRun) -> Iterator[Row]:
    preset = PRESETS["llama3-8b-perlmutter"].changed(
        schedule__reduce=str(run.settings["reduce"]),
        schedule__regather=bool(run.settings["regather"]),
    )
    iteration, rail = build(preset), Rail(nic_gbps=preset.machine.nic_gbps)
    simulation = Simulation(iteration, rail)
    base = simulation.undisturbed_ms
    for delay in DELAYS_MS:
        both = simulation.both_ms(delay + float(run.settings["link_up_ms"]))
        for series, ms in zip(run.card.printed, both, strict=True):
            item, about = f"{delay:,g} ms", f"Llama 3 8B, 16 A100, {base / 1000:.3g} s undisturbed"
            longer, data = 100 * (ms / base - 1), {"iteration_ms": ms, "undisturbed_ms": base}
            if delay == AT_MS:
                yield printed(
                    series,
                    item,
                    about,
                    run.card.printed[series],
                    longer,
                    "Switching alone; the authors' controller adds time of its own, which costs nothing here.",
                    unit="%",
                    data=data,
                )
            else:
                yield unprinted(series, item, about, longer, unit="%", data=data)
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
        yield directed(
            "warm_up",
            item,
            f"{what} earlier, {AT_MS:g} ms a change",
            late > early,
            late - early,
            f"It begins at {late:,.1f} ms on demand and at {early:,.1f} ms provisioned: circuits are asked for as soon as "
            "the traffic before has ended.",
            unit="ms",
        )
    for sweep in SWEEPS[:2]:
        seconds = dict(sweep.rows)[AT_MS]
        key = "ahead" if sweep.provisioned else "demand"
        yield printed(
            "measured",
            "provisioned" if sweep.provisioned else "on demand",
            f"{sweep.gpus} GPUs, {AT_MS:g} ms",
            run.card.printed[key],
            100 * (seconds / sweep.baseline_s - 1),
            f"Not of ours: {sweep.caveat}.",
            unit="%",
        )


def _first_ms(run: RailRun, rank: int, kind: int) -> float:
    """Return when the first communication of a kind begins that a rank takes part in."""
    iteration = run.iteration
    own = [
        node
        for node in np.flatnonzero(iteration.kind == kind).tolist()
        if rank in iteration.groups[iteration.group[node]].ranks
    ]
    return float(min(run.start_ms[own]))
