"""Opus's figures 5 and 8: what switching costs on demand, and provisioned ahead of the calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from topox_core.papers.card import Card, Choice, Row, Settings
from topox_core.papers.claim import Claim, Reading
from topox_core.papers.direct import direct, directed, printed, row_of, unprinted
from topox_core.papers.switches import REDUCE, REGATHER
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.iteration import ALL_GATHER, SEND, Rail, RailRun
from topox_core.rails.measured import SWEEPS
from topox_core.rails.presets import PRESETS

NAME = "opus-provisioning"
DELAYS_MS = (1.0, 10.0, 50.0, 100.0, 250.0, 500.0, 1_000.0)
AT_MS = 100.0
# Section 4.2: longer than without any switching delay, at 100 ms.
PRINTED = {"demand": 6.5, "ahead": 3.5}
SERIES = {
    "demand": "Figure 8: on demand",
    "ahead": "Figure 8: provisioned",
    "warm_up": "Figure 5: warm-up of ranks 0 and 4",
    "measured": "Measured by the authors, later version",
}
CHOICES = (
    REDUCE,
    REGATHER,
    Choice(
        "link_up_ms",
        "Light until the NIC is ready",
        "Added to every change; the paper counts the switch alone, a later version measured seconds.",
        ((0.0, "no time"), (100.0, "100 ms"), (3_000.0, "3 s")),
        0.0,
    ),
)


def _rows(settings: Settings) -> Iterator[Row]:
    preset = PRESETS["llama3-8b-perlmutter"].changed(
        schedule__reduce=str(settings["reduce"]), schedule__regather=bool(settings["regather"])
    )
    iteration, rail = build(preset), Rail(nic_gbps=preset.machine.nic_gbps)
    simulation = Simulation(iteration, rail)
    base = simulation.undisturbed_ms
    for delay in DELAYS_MS:
        both = simulation.both_ms(delay + float(settings["link_up_ms"]))
        for series, ms in zip(PRINTED, both, strict=True):
            item, about = f"{delay:,g} ms", f"Llama 3 8B, 16 A100, {base / 1000:.3g} s undisturbed"
            longer, data = 100 * (ms / base - 1), {"iteration_ms": ms, "undisturbed_ms": base}
            if delay == AT_MS:
                yield printed(
                    series,
                    item,
                    about,
                    PRINTED[series],
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
            PRINTED[key],
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


def _words(rows: Sequence[Row]) -> tuple[str, tuple[str, ...]]:
    demand, ahead = (row_of(rows, series, f"{AT_MS:g} ms").ours for series in PRINTED)
    return (
        f"A switch of {AT_MS:g} ms makes the iteration {demand:.1f} % longer on demand and {ahead:.1f} % provisioned "
        f"(printed: {PRINTED['demand']} % and {PRINTED['ahead']} %).",
        (
            "On demand six changes lie on the critical path, so the line rises by six delays. Provisioned, windows hide a "
            "delay only where they are as long.",
        ),
    )


CARD = Card(
    name=NAME,
    title="On demand and provisioned",
    source="Photonic Rails (arXiv 2507.08119), section 4, Figures 5 and 8",
    shows="Iteration time of Llama 3 8B against the switching delay: 6.5 % longer at 100 ms when circuits change on demand, "
    "3.5 % when they are provisioned.",
    choices=CHOICES,
    series=SERIES,
    row_count=2 * len(DELAYS_MS) + 2 + 2,
    play=direct(NAME, _rows, _words),
    kinds={"measured": ("quoted", "Times that the authors measured.")},
)
CLAIMS = (
    Claim(
        NAME,
        "At 100 ms circuits on demand make an iteration 6.5 % longer",
        PRINTED["demand"],
        Reading("demand", lambda rows: row_of(rows, "demand", "100 ms").ours, 5.88),
        unit="\u00a0%",
    ),
    Claim(
        NAME,
        "Provisioned they make it 3.5 % longer",
        PRINTED["ahead"],
        Reading("ahead", lambda rows: row_of(rows, "ahead", "100 ms").ours, 3.93),
        unit="\u00a0%",
    ),
)
