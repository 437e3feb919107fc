"""One point of a rail, of jobs that take turns, or of a bill of materials."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache

import numpy as np

from topox_core.economics.comparison import Question
from topox_core.economics.networks import Counting
from topox_core.economics.price_sets import DEFAULT_SET
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import Preset
from topox_core.rails.window_lengths import lengths_ms
from topox_core.runs.stopping import Stop
from topox_core.studies.fabric_point import priced_at
from topox_core.studies.keys import SEED, Value
from topox_core.studies.outcome import Outcome
from topox_core.studies.subject import AGAINST, MINE, Resolved
from topox_core.studies.values import GPUS, Values
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.round import Round, TdmSettings
from topox_core.tdm.solve import solve
from topox_core.tdm.study import BASELINE, shorter_by

_RAIL = ("reconfiguration_ms", "control", "link_up_ms", "latency_us")


def rail_outcome(resolved: Resolved, values: Values, _stop: Stop) -> Outcome:
    """Return the measures of a job on one rail, replicas folded as in every delay study; raises InputError."""
    assert resolved.preset is not None
    given = _of("rails", values)
    changes = {name: value for name, value in given.items() if name not in _RAIL}
    simulation = _simulation(
        resolved.preset.changed(**changes), float(given.get("latency_us", 0.0))
    )
    provisioned = given.get("control", "provisioned") == "provisioned"
    dark_ms = float(given.get("reconfiguration_ms", 0.0)) + float(given.get("link_up_ms", 0.0))
    run = simulation.at(dark_ms, provisioned)
    base_ms = simulation.undisturbed_ms
    lengths = lengths_ms(run.windows) if run.windows else None
    return Outcome(
        {
            "iteration_ms": run.iteration_ms,
            "undisturbed_ms": base_ms,
            "overhead": run.iteration_ms / base_ms - 1.0 if base_ms else 0.0,
            "changes": float(run.reconfigurations),
            "windows": float(len(run.windows)),
            "window_ms": None if lengths is None else float(np.median(lengths)),
        },
        graph=resolved.digest,
    )


@lru_cache(maxsize=2)
def _simulation(job: Preset, latency_us: float) -> Simulation:
    rail = Rail(nic_gbps=job.nic_gbps, latency_us=latency_us)
    return Simulation(build(job, fold=True), rail)


def round_outcome(resolved: Resolved, values: Values, stop: Stop) -> Outcome:
    """Return the measures of jobs that share a fabric, beside the round without turns; raises InputError."""
    given, seed = _of("tdm", values), int(values.get(SEED, 0))
    algorithm = str(given.pop("algorithm", TdmSettings.algorithm))
    set_up = SetUp(**given, seed=seed)  # type: ignore[arg-type]
    base = _baseline(set_up)
    answer = base
    if algorithm != BASELINE:
        answer = solve(base.jobs, TdmSettings(algorithm=algorithm, seed=seed), stop)
    phases = [phase for cycle in base.cycles for phase in cycle.phases]
    return Outcome(
        {
            "round_s": answer.round_s,
            "mean_round_s": answer.mean_round_s,
            "bound_s": answer.bound_s,
            "gap": shorter_by(answer.bound_s, answer.round_s),
            "reduction": shorter_by(answer.round_s, base.round_s),
            "mean_reduction": shorter_by(answer.mean_round_s, base.mean_round_s),
            "communicating_s": sum(one.communication_s for one in phases),
            "computing_s": sum(one.computing_s for one in phases),
        },
        answer.status,
        answer.stopped_by,
        graph=resolved.digest,
        message=answer.message,
    )


@lru_cache(maxsize=2)
def _baseline(set_up: SetUp) -> Round:
    settings = TdmSettings(algorithm=BASELINE, seed=set_up.seed)
    return solve(deploy(replace(set_up)), settings)


def bill_outcome(resolved: Resolved, values: Values, _stop: Stop) -> Outcome:
    """Return what a network costs and draws, and what it saves against another one; raises InputError."""
    subject, given = resolved.subject.values, _of("network", values)
    mine, against = subject.get("network", MINE), subject.get("against", AGAINST)
    known = {one.name for one in fields(Counting)}
    counting = Counting(**{name: value for name, value in given.items() if name in known})  # type: ignore[arg-type]
    prices = priced_at(str(values.get("prices", DEFAULT_SET)), values)
    question = Question(int(given.get("gpus", GPUS)), prices, counting)
    bill = question.bill(mine)
    return Outcome(
        {
            "dollars": bill.cost_usd,
            "watts": bill.power_w,
            "cost_saving": question.saving(mine, against, "cost"),
            "power_saving": question.saving(mine, against, "power"),
        },
        "counted",
        graph=resolved.digest,
    )


def _of(prefix: str, values: Values) -> dict[str, Value]:
    start = f"{prefix}."
    return {k.removeprefix(start): v for k, v in values.items() if k.startswith(start)}
