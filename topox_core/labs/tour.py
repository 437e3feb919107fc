"""The tour: six screens for somebody who knows no optics, each with a run of the core behind one slider.

Titles, sentences and lines lie in ``texts/en.json``; every number in them is computed here, when it
is asked for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np

from topox_core.fabrics.comparison.compare import compare
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.labs.generators.catalogue import generator
from topox_core.labs.lab import CLASS_SEED, LESSON_SETTINGS, texts_in
from topox_core.model.execution import Execution
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.delay import DelayStudy, iteration_source, study
from topox_core.rails.iteration import Rail, Window
from topox_core.rails.presets import preset
from topox_core.rails.windows import Phase, strip
from topox_core.schedule.results.result import Result
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.model.jobs import Round, TdmSettings
from topox_core.tdm.model.jobs_file import load_job_sample
from topox_core.text.numbers import percent, plural, seconds, time
from topox_core.workloads.samples import load_sample

FABRICS = ("static", "reactive", "provisioned")
RAIL_JOB = "llama3-8b-perlmutter"
TOGETHER, IN_TURNS = 0.0, 1.0


@dataclass(frozen=True)
class Screen:
    """One screen.

    Attributes
    ----------
    id, title, sentences, figure, figure_note
        What stands on it; sentences are HTML of our own with what is new in bold.
    slider, values, start, unit
        The slider's label, what it can be put on, where it begins, and the unit of its values.
    """

    id: str
    title: str
    sentences: tuple[str, ...]
    figure: str
    figure_note: str
    slider: str
    values: tuple[float, ...]
    start: float
    unit: str = "ms"


_SLIDERS: dict[str, tuple[tuple[float, ...], float, str]] = {
    "circuits": (tuple(map(float, range(52))), 12.0, "ms"),
    "slots": ((0.5, 1.0, 2.0, 4.0), 1.0, "ms"),
    "delay": (tuple(map(float, range(21))), 5.0, "ms"),
    "ports": ((1.0, 2.0, 3.0), 1.0, ""),
    "windows": ((1.0, 5.0, 10.0, 15.0, 25.0, 50.0, 100.0), 25.0, "ms"),
    "sharing": ((TOGETHER, IN_TURNS), TOGETHER, ""),
}
SCREENS = tuple(_SLIDERS)


def screen(name: str) -> Screen:
    """Return one of :data:`SCREENS`."""
    words, (values, start, unit) = _texts()[name], _SLIDERS[name]
    return Screen(
        name,
        words["title"],
        tuple(words["sentences"]),
        words["figure"],
        words["figure_note"],
        words["slider"],
        values,
        start,
        unit,
    )


def live_line(name: str, value: float) -> str:
    """Return the line that changes with a screen's slider, as HTML."""
    facts = _LIVE[name](value)
    return str(_texts()[name]["live"][facts.get("kind", "")]).format(**facts)


def notice(name: str) -> str:
    """Return what to notice on a screen."""
    return str(_texts()[name]["notice"]).format(**_NOTICED.get(name, dict)())


@lru_cache(maxsize=1)
def circuits_run() -> Result:
    """Return the planned iteration of screen ``circuits``: instance *turns* without a delay."""
    one = generator("turns").make(CLASS_SEED)
    return schedule(one.graph(), one.cluster(), LESSON_SETTINGS)


def partner(execution: Execution, server: int, at_ms: float) -> int | None:
    """Return whom a server sends to at a moment, or None."""
    circuits = execution.circuits
    sends = (circuits.source == server) & (circuits.start_ms <= at_ms) & (circuits.end_ms > at_ms)
    found = np.flatnonzero(sends)
    return int(circuits.destination[found[0]]) if len(found) else None


@lru_cache(maxsize=8)
def slots_run(slot_ms: float) -> Result:
    """Return the sample *blackboard* planned on slots of a length."""
    graph, cluster = load_sample("blackboard")
    return schedule(graph, cluster.changed(slot_ms=slot_ms), LESSON_SETTINGS)


@lru_cache(maxsize=32)
def times_at(delay_ms: float) -> dict[str, float]:
    """Return the iteration of instance *turns* on each of :data:`FABRICS`, in ms."""
    one = generator("turns").make(CLASS_SEED)
    runs = compare(one.graph(), one.cluster(delay_ms=delay_ms), LESSON_SETTINGS, FABRICS)
    return {name: run.iteration_ms for name, run in runs.items()}


@lru_cache(maxsize=4)
def ports_run(ports: int) -> Result:
    """Return the planned iteration of instance *fan-out* with some ports per server."""
    one = generator("fan_out").make(CLASS_SEED)
    return schedule(one.graph(), one.cluster(ports), LESSON_SETTINGS)


@dataclass(frozen=True)
class RailPicture:
    """What one rank of the tour's job sends on its rail, the windows between, and what delays cost."""

    phases: tuple[Phase, ...]
    windows: tuple[Window, ...]
    iteration_ms: float
    delays: DelayStudy


@lru_cache(maxsize=1)
def rail_picture() -> RailPicture:
    """Return the rail of screen ``windows``: its first rank, without a delay."""
    job = preset(RAIL_JOB)
    iteration, rail = build(job, fold=True), Rail(nic_gbps=job.machine.network_gbps)
    run = simulate(iteration, rail)
    first = min(window.rank for window in run.windows)
    windows = tuple(window for window in run.windows if window.rank == first)
    delays = study(iteration_source(iteration, rail), _SLIDERS["windows"][0])
    phases = strip(run.iteration, run.start_ms, run.end_ms, apart=True)
    mine = tuple(one for one in phases if one.rank == first)
    return RailPicture(mine, windows, run.iteration_ms, delays)


@lru_cache(maxsize=2)
def round_of(value: float) -> Round:
    """Return the round of the sample *overlap*: together, or in turns."""
    algorithm = "non-tdm" if value == TOGETHER else "hill-climbing"
    return solve(load_job_sample("overlap"), TdmSettings(algorithm))


def _texts() -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", texts_in("en").sections["tour"])


# -- what the lines say: what is filled in, and ``kind``: which line it is where a screen has several ------------------------

Facts = Mapping[str, str]


def _at_moment(at_ms: float) -> Facts:
    execution = circuits_run().execution
    assert execution is not None  # the rules always find a plan
    to = partner(execution, 0, at_ms)
    without = "over" if at_ms >= execution.makespan_ms else "computes"
    return {"kind": without if to is None else "sends", "time": time(at_ms), "partner": str(to)}


def _with_window_delay(delay_ms: float) -> Facts:
    delays = rail_picture().delays
    row = next(row for row in delays.rows if row.delay_ms == delay_ms)
    takes_ms = {"provisioned": row.provisioned_ms, "on_demand": row.on_demand_ms}
    return {
        "delay": time(delay_ms),
        "base": time(delays.base_ms),
        **{name: percent(delays.overhead(ms) / 100) for name, ms in takes_ms.items()},
        **{f"{name}_ms": time(ms - delays.base_ms) for name, ms in takes_ms.items()},
    }


_LIVE: dict[str, Callable[[float], Facts]] = {
    "circuits": _at_moment,
    "slots": lambda slot_ms: {
        "slot": time(slot_ms),
        "iteration": time(slots_run(slot_ms).makespan_ms or 0.0),
    },
    "delay": lambda delay_ms: {
        "delay": time(delay_ms),
        **{name: time(ms) for name, ms in times_at(delay_ms).items()},
    },
    "ports": lambda ports: {
        "ports": plural(int(ports), "port"),
        "iteration": time(ports_run(int(ports)).makespan_ms or 0.0),
        "binds": ports_run(int(ports)).bound_by,
    },
    "windows": _with_window_delay,
    "sharing": lambda value: {
        "kind": "together" if value == TOGETHER else "in_turns",
        "together": seconds(round_of(TOGETHER).round_s or 0.0),
        "in_turns": seconds(round_of(IN_TURNS).round_s or 0.0),
    },
}


def _crossovers() -> Facts:
    one = generator("turns").make(CLASS_SEED)
    return {
        "crossover_reactive": time(round(one.crossover_reactive_ms, 1)),
        "crossover_provisioned": time(round(one.crossover_provisioned_ms, 1)),
    }


_NOTICED: dict[str, Callable[[], Facts]] = {
    "delay": _crossovers,
    "sharing": lambda: {"bound": seconds(round_of(IN_TURNS).bound_s)},
}
