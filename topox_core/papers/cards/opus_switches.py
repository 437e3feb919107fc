"""Opus's table 3: how many GPUs each optical switch can join, and how fast it switches."""

from topox_core.papers.card import CardRun, Rows
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS
from topox_core.rails.technologies import SCALE_UP, TECHNOLOGIES, gpus
from topox_core.text.numbers import short


def rows(run: CardRun) -> Rows:
    for machine, domain in SCALE_UP.items():
        for one in TECHNOLOGIES:
            joined = gpus(one, domain)
            yield run.row(machine, one.name, joined, technology=one, domain=domain)
    largest = max(TECHNOLOGIES, key=lambda one: one.radix)
    joined, minutes = gpus(largest, SCALE_UP["GB200"]), largest.reconfiguration_ms / 60_000
    yield run.row("most", "Largest network", joined, name=largest.name, minutes=minutes)
    preset = PRESETS["llama3-8b-perlmutter"]
    simulation = Simulation(build(preset), Rail(nic_gbps=preset.machine.nic_gbps))
    for one in TECHNOLOGIES:
        took_ms = simulation.both_ms(one.reconfiguration_ms)[int(run.settings["control"])]
        longer = 100 * (took_ms / simulation.undisturbed_ms - 1)
        yield run.row("longer", one.name, longer, delay=short(one.reconfiguration_ms))


def said(run: CardRun) -> dict[str, int]:
    same = [row.theirs == row.ours for row in run.rows if row.series in SCALE_UP]
    return {"same": sum(same), "cells": len(same), "inside": gpus(TECHNOLOGIES[4], 72)}
