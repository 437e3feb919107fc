"""Opus's table 3: how many GPUs each optical switch can join, and how fast it switches."""

from collections.abc import Iterator

from topox_core.papers.card import CardRun
from topox_core.papers.rows import Row, printed, unprinted
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS
from topox_core.rails.technologies import SCALE_UP, TECHNOLOGIES, gpus
from topox_core.text.numbers import short


def rows(run: CardRun) -> Iterator[Row]:
    for machine, scale_up in SCALE_UP.items():
        for one in TECHNOLOGIES:
            yield printed(
                machine,
                one.name,
                f"{one.vendor}, {one.radix:,} ports",
                run.card.printed[f"{machine}/{one.name}"],
                gpus(one, scale_up),
                f"{scale_up} GPUs of a scale-up domain times half of {one.radix:,} ports.",
                unit="GPUs",
            )
    largest = max(TECHNOLOGIES, key=lambda one: one.radix)
    yield printed(
        "most",
        "Largest network",
        f"{largest.name}, GB200",
        run.card.printed["most"],
        gpus(largest, SCALE_UP["GB200"]),
        f"Printed as 36K; that switch takes {largest.reconfiguration_ms / 60_000:g} minutes to change.",
        unit="GPUs",
    )
    preset = PRESETS["llama3-8b-perlmutter"]
    simulation = Simulation(build(preset), Rail(nic_gbps=preset.machine.nic_gbps))
    for one in TECHNOLOGIES:
        longer = (
            simulation.both_ms(one.reconfiguration_ms)[int(run.settings["control"])]
            / simulation.undisturbed_ms
            - 1
        )
        yield unprinted(
            "longer",
            one.name,
            f"{short(one.reconfiguration_ms)} ms a change",
            100 * longer,
            "Llama 3 8B on 16 A100 (section 3.1), simulated with this switch; the paper prints no number.",
            unit="%",
        )


def said(run: CardRun) -> dict[str, int]:
    same = [row.theirs == row.ours for row in run.rows if row.series in SCALE_UP]
    return {"same": sum(same), "cells": len(same), "inside": gpus(TECHNOLOGIES[4], 72)}
