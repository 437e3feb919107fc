"""What one point gives: a task graph on a fabric, a job on a rail, a round of jobs, a bill; the measures of each."""

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np

from topox_core.economics.clusters import same_cost_nic_gbps
from topox_core.economics.comparison import Question, Running, per_dollar, year_of
from topox_core.economics.networks import Bill, Counting
from topox_core.economics.price_sets import DEFAULT_SET, SET_BY_SPEED, Catalogue, price_set
from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import fabric_bill, run_with_best_lowering
from topox_core.fabrics.crossover.sweep import with_degree
from topox_core.fabrics.options import FabricOptions
from topox_core.fabrics.planning.fixed_beside import FIXED, beside_fixed
from topox_core.fabrics.planning.lowering_search import bound_of, run_over_every
from topox_core.fabrics.planning.scheduled import freely_scheduled
from topox_core.fabrics.registry import PAYS_DELAY
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.io.task_graph_file import check_fits
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Execution
from topox_core.model.task_graph import TaskGraph
from topox_core.rails.delay import simulation
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import changed
from topox_core.rails.window_lengths import median_ms
from topox_core.rails.windows import windows_of_execution
from topox_core.runs.latest import Latest
from topox_core.runs.run import Stop
from topox_core.schedule.results.result import Result, gap
from topox_core.schedule.results.result_file import to_record
from topox_core.schedule.settings import Settings, lowering_and_free
from topox_core.schema.fields import fields_of
from topox_core.studies.keys import (
    BILL,
    DEFAULT_FABRIC,
    FABRIC,
    FABRIC_FIELDS,
    GPUS,
    RAIL,
    ROUND,
    SEED,
    SETTINGS,
    Value,
)
from topox_core.studies.subject import (
    AGAINST,
    FAT_TREE_SHAPE,
    MINE,
    Resolved,
    Values,
)
from topox_core.tdm.algorithms.catalogue import BASELINE, solve
from topox_core.tdm.algorithms.round_bounds import bounded
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs import Reading, Round, TdmSettings, shorter_by
from topox_core.workloads.catalogue import generate

# What came of a point: fields of its record in the library, and as ``held`` the cluster as it was, by field.
Outcome = dict[str, Any]
ENGINES: Mapping[str, str] = {"first": "list", "search": "auto", "prove": "cpsat"}
# What no simulation depends on: a point that differs in nothing else is not run again.
OF_MONEY = ("prices", "running.")


def point_job(resolved: Resolved, values: Values) -> JobRequest:
    """Return what the fabric of a point runs.

    Raises
    ------
    InputError
        If values do not go together.
    """
    graph, base = graph_at(resolved, values)
    cluster = _cluster_at(base, values)
    check_fits(graph, cluster)
    return JobRequest(graph, cluster, _settings(values), _options(cluster, values))


def fabric_at(values: Values) -> str:
    """Return the fabric of a point."""
    return str(values.get("fabric", DEFAULT_FABRIC))


def run_of_point(resolved: Resolved, values: Values, stop: Stop) -> FabricRun:
    """Run a point as every comparison does; raises InputError and Stopped as :func:`run_with_best_lowering`.

    Where the bound shows that no plan that switches beats fixed circuits, the plan beside them is one of few
    (moe at 25 ms: 0.5 s, not 2.4 s; the iteration is the same).
    """
    fabric, job = fabric_at(values), point_job(resolved, values)
    if fabric == "scheduled" and job.settings.engine == "list":
        job = beside_fixed(job, stop)
        fixed_ms = min(
            (job.runs[name].iteration_ms for name in FIXED if name in job.runs), default=inf
        )
        least = bound_of(job, "changing") if fixed_ms < inf else None
        if least is not None and least.ms > fixed_ms:
            run = run_over_every(fabric, job, freely_scheduled(job, stop, quickly=True))
            if run.result is not None and run.result.switching == "fixed":
                return run
    return run_with_best_lowering(fabric, job, stop)


def fabric_outcome(resolved: Resolved, values: Values, stop: Stop) -> Outcome:
    """Return the measures of a point, and the result file where the same point would not bring the same again.

    Raises
    ------
    InputError, Stopped
        If it cannot be run, or not in time.
    """
    job = point_job(resolved, values)
    run = _remembered_run(resolved, values, job, stop)
    outcome: Outcome = {
        "measures": measures_of_run(run, job, priced_at(values), values),
        "graph": job.task_graph.digest,
        "cluster": job.cluster.digest,
        "held": asdict(job.cluster),
        "message": run.message,
    }
    if run.result is not None:
        outcome |= {"status": run.result.status, "stopped_by": run.result.stopped_by}
        if job.settings.effort != "first":  # what a time limit decided cannot be had again
            outcome["result"] = deflated(run.result)
    return outcome


def deflated(result: Result) -> bytes:
    """Return a result file as deflated JSON."""
    text = json.dumps(to_record(result), allow_nan=False, separators=(",", ":"))
    return zlib.compress(text.encode())


# In a worker: the runs of the last points, by all that they depend on.
_runs = Latest[FabricRun](8)


def _remembered_run(resolved: Resolved, values: Values, job: JobRequest, stop: Stop) -> FabricRun:
    fabric = fabric_at(values)
    apart = {"fabric"} if fabric in PAYS_DELAY else {"fabric", "cluster.reconfiguration_ms"}
    rest = sorted(
        (name, value)
        for name, value in values.items()
        if name not in apart and not name.startswith(OF_MONEY)
    )
    key = (resolved.digest, fabric, job.options.equivalent_gbps, *rest)
    run = _runs.get(key)
    if run is None:
        run = _runs[key] = run_of_point(resolved, values, stop)
    return run


def under(word: str, values: Values) -> dict[str, Value]:
    """Return the values whose keys begin with a word, by what follows it."""
    return {k.removeprefix(f"{word}."): v for k, v in values.items() if k.startswith(f"{word}.")}


def graph_at(resolved: Resolved, values: Values) -> tuple[TaskGraph, Cluster]:
    """Return the task graph of a point and the cluster that goes with it; raises InputError."""
    workload, subject = resolved.subject.workload, resolved.subject
    changes = under(subject.kind, values)
    if workload is None:
        assert resolved.graph is not None
        assert resolved.cluster is not None
        return resolved.graph, resolved.cluster
    if SEED in values and any(one.name == SEED for one in workload.parameters):
        changes.setdefault(SEED, values[SEED])
    parameters = {**subject.parameters, **changes}
    return _generated(workload.name, tuple(sorted(parameters.items(), key=lambda one: one[0])))


@lru_cache(maxsize=4)
def _generated(name: str, parameters: tuple[tuple[str, object], ...]) -> tuple[TaskGraph, Cluster]:
    return generate(name, dict(parameters))


def _cluster_at(base: Cluster, values: Values) -> Cluster:
    changes = under("cluster", values)
    degree = changes.pop("degree", None)
    cluster = base.changed(**changes)
    return cluster if degree is None else with_degree(cluster, int(degree))


def _settings(values: Values) -> Settings:
    model = str(values.get("settings.model", "physical"))
    given = under("lowering", values)
    fields: dict[str, object] = {
        name: given.pop(name) for name in ("rings", "all_reduce_on_network") if name in given
    }
    algorithms = {kind: name for kind, name in given.items() if name != "auto"}
    if algorithms:
        fields["algorithm"] = algorithms
    others = "auto" if algorithms and model != "paper" else None
    lowering, free = lowering_and_free(fields, model, others)
    chosen = {
        name: values[f"settings.{name}"]
        for name in SETTINGS
        if f"settings.{name}" in values and name != "model"
    }
    engine = ENGINES[str(values.get("settings.effort", "first"))]
    seed = int(values.get(SEED, 0))
    return Settings.of(
        model,  # type: ignore[arg-type]
        lowering=lowering,
        free=free,
        engine=engine,
        seed=seed,
        **chosen,
    )


def _options(cluster: Cluster, values: Values) -> FabricOptions:
    """Return the options of a point's fabric, read as the command ``compare`` reads its own."""
    chosen = {
        name: values[f"fabric.{name}"] for name in FABRIC_FIELDS if f"fabric.{name}" in values
    }
    options = FabricOptions(**chosen)  # type: ignore[arg-type]
    described = not chosen.keys().isdisjoint(FAT_TREE_SHAPE)
    if described or values.get("fabric.fat_tree", "cost") == "full":
        return options
    if fabric_at(values) != "fat_tree":
        return options
    return replace(options, equivalent_gbps=same_cost_nic_gbps(cluster, priced_at(values)))


def priced_at(values: Values, usual: str = SET_BY_SPEED) -> Catalogue:
    """Return the price set of a point, or the usual one, with the figures that the point sets."""
    figures: dict[str, dict[str, Value]] = {}
    for key, value in values.items():
        if key.startswith("prices."):
            _, part, field = key.split(".")
            figures.setdefault(part, {})[field] = value
    catalogue = price_set(str(values.get("prices", usual)))
    return catalogue.changed(figures) if figures else catalogue


def measures_of_run(
    run: FabricRun, job: JobRequest, prices: Catalogue, values: Values
) -> dict[str, float | None]:
    """Return the measures of a run and of its network; raises InputError where the network cannot be priced."""
    bill = fabric_bill(run.fabric, job.cluster, prices, job.options)
    return {
        "iteration_ms": run.iteration_ms,
        "bound_ms": run.bound_ms,
        "gap": gap(run.iteration_ms, run.bound_ms),
        "dark_share": run.dark_share,
        "changes": float(run.circuits_changed),
        "bandwidth_tax": run.traffic.bandwidth_tax,
        **_windows(run.execution),
        **_money(run, bill, values),
    }


def _windows(execution: Execution) -> dict[str, float | None]:
    try:
        windows = windows_of_execution(execution)
    except InputError:  # no transfer at all
        return {"windows": 0.0, "window_ms": None}
    return {"windows": float(len(windows)), "window_ms": median_ms(windows)}


def _money(run: FabricRun, bill: Bill | None, values: Values) -> dict[str, float | None]:
    names = ("dollars", "watts", "iterations_per_dollar", "joules_per_iteration")
    if bill is None:
        return dict.fromkeys(names)
    running = Running(
        **{
            name: float(values[f"running.{name}"])
            for name in ("usd_per_kwh", "pue", "years")
            if f"running.{name}" in values
        }
    )
    per = per_dollar(run.iteration_ms, year_of(bill, running))
    return {
        "dollars": bill.cost_usd,
        "watts": bill.power_w,
        "iterations_per_dollar": per if np.isfinite(per) else None,
        "joules_per_iteration": bill.power_w * run.iteration_ms / 1e3,
    }


# -- other subjects than task graphs ----------------------------------------------------------------

_RAIL = ("reconfiguration_ms", "control", "link_up_ms", "latency_us")


def rail_outcome(resolved: Resolved, values: Values, _stop: Stop) -> Outcome:
    """Return the measures of a job on one rail, replicas folded as in every delay study; raises InputError."""
    assert resolved.job is not None
    given = under("rails", values)
    changes = {name: value for name, value in given.items() if name not in _RAIL}
    job = changed(resolved.job, changes)
    latency_us = float(given.get("latency_us", 0.0))
    on_rail = simulation(job, Rail(nic_gbps=job.machine.network_gbps, latency_us=latency_us))
    provisioned = given.get("control", "provisioned") == "provisioned"
    dark_ms = float(given.get("reconfiguration_ms", 0.0)) + float(given.get("link_up_ms", 0.0))
    run, base_ms = on_rail.at(dark_ms, provisioned), on_rail.undisturbed_ms
    # A circuit change that does not fit makes its window longer: what fits is asked of those without.
    windows = on_rail.at(0.0, provisioned).windows
    return {
        "measures": {
            "iteration_ms": run.iteration_ms,
            "undisturbed_ms": base_ms,
            "overhead": run.iteration_ms / base_ms - 1.0 if base_ms else 0.0,
            "changes": float(run.reconfigurations),
            "windows": float(len(windows)),
            "window_ms": median_ms(windows),
        }
    }


def round_outcome(_resolved: Resolved, values: Values, stop: Stop) -> Outcome:
    """Return the measures of jobs that share a fabric, beside the round without turns; raises InputError."""
    given, seed = under("tdm", values), int(values.get(SEED, 0))
    algorithm = str(given.pop("algorithm", TdmSettings.algorithm))
    reading = Reading(**{name: bool(given.pop(name, False)) for name in fields_of(Reading)})
    set_up = SetUp(**given, seed=seed)  # type: ignore[arg-type]
    base = _baseline(set_up, reading)
    answer = base
    if algorithm != BASELINE:
        answer = solve(base.jobs, TdmSettings(algorithm, reading, seed), stop)
    if answer.stopped_by != "cancelled":
        answer = bounded(answer)
    phases = [phase for cycle in base.cycles for phase in cycle.phases]
    return {
        "measures": {
            "round_s": answer.round_s,
            "mean_round_s": answer.mean_round_s,
            "bound_s": answer.bound_s,
            "gap": shorter_by(answer.bound_s, answer.round_s),
            "reduction": shorter_by(answer.round_s, base.round_s),
            "mean_reduction": shorter_by(answer.mean_round_s, base.mean_round_s),
            "communicating_s": sum(one.communication_s for one in phases),
            "computing_s": sum(one.computing_s for one in phases),
        },
        "status": answer.status,
        "stopped_by": answer.stopped_by,
        "message": answer.message,
    }


@lru_cache(maxsize=2)
def _baseline(set_up: SetUp, reading: Reading) -> Round:
    return solve(deploy(set_up), TdmSettings(BASELINE, reading, set_up.seed))


def bill_outcome(resolved: Resolved, values: Values, _stop: Stop) -> Outcome:
    """Return what a network costs and draws, and what it saves against another one; raises InputError."""
    subject, given = resolved.subject.values, under("network", values)
    mine, against = subject.get("network", MINE), subject.get("against", AGAINST)
    counted = {name: given[name] for name in fields_of(Counting) if name in given}
    counting = Counting(**counted)  # type: ignore[arg-type]
    prices = priced_at(values, DEFAULT_SET)
    question = Question(int(given.get("gpus", GPUS)), prices, counting)
    bill = question.bill(mine)
    return {
        "measures": {
            "dollars": bill.cost_usd,
            "watts": bill.power_w,
            "cost_saving": question.saving(mine, against, "cost"),
            "power_saving": question.saving(mine, against, "power"),
        },
        "status": "counted",
    }


OUTCOMES: Mapping[str, Callable[[Resolved, Values, Stop], Outcome]] = {
    FABRIC: fabric_outcome,
    RAIL: rail_outcome,
    ROUND: round_outcome,
    BILL: bill_outcome,
}
