"""Keys that one run of the core gives: the same records as those of the commands, on the files of an instance.

No run here ends by the clock: a plan is a list schedule, or one that is proved best.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from topox_core.economics.networks import Counting, bills, savings
from topox_core.economics.price_sets import DEFAULT_SET, PRICE_SETS, Catalogue
from topox_core.errors import InputError, check_known, needed, refuse_if, shown, unknown
from topox_core.fabrics.comparison.compare import compare
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.fabrics.registry import FABRICS
from topox_core.io.content import record_of
from topox_core.labs.lab import LESSON_SETTINGS, Call
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.rails.delay import (
    BASE_MS,
    DELAY_MS,
    LIMIT_PERCENT,
    slowest_switch,
    study,
    windows_source,
)
from topox_core.rails.windows import windows_by_stage
from topox_core.schema.fields import fields_of, setting
from topox_core.schema.records import check_value
from topox_core.tdm.algorithms.catalogue import ALGORITHMS, solve
from topox_core.tdm.model.jobs import Jobs, PodNetwork, TdmSettings
from topox_core.topology.finder import VARIANTS, find_layout, traffic_of
from topox_core.training.plan import Schedule

ENGINES = ("list", "auto", "cpsat", "highs")
# Of algorithms for jobs, those that end by themselves and not by the clock.
UNTIMED = ("hill-climbing", "non-tdm", "best-grouping", "greedy")
EXACT_LIMIT_S = 60.0


@dataclass(frozen=True)
class InstanceFiles:
    """What a call runs on, of windows their lengths in ms; None where an instance has none."""

    graph: TaskGraph | None = None
    cluster: Cluster | None = None
    jobs: Jobs | None = None
    windows: tuple[float, ...] | None = None
    parts: Catalogue | None = None


# What each option may be, the cluster's as the cluster says.
_CLUSTER = {
    name: fields_of(Cluster)[name].hint
    for name in ("port_gbps", "slot_ms", "reconfiguration_ms", "ports_per_server", "switches")
}
_NETWORK = {name: fields_of(PodNetwork)[name].hint for name in ("reconfiguration_ms", "port_gbps")}
_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "schedule": {**_CLUSTER, "engine": Annotated[str, setting(choices=ENGINES)]},
    "compare": _CLUSTER,
    "topology": {
        "degree": _CLUSTER["ports_per_server"],
        "variant": Annotated[str, setting(choices=VARIANTS)],
    },
    "tdm": {**_NETWORK, "algorithm": Annotated[str, setting(choices=UNTIMED)]},
    "rails_count": {
        "stages": Annotated[int, setting(ge=1, le=64)],
        "microbatches": Annotated[int, setting(ge=1, le=1_000)],
        "schedule": fields_of(Schedule)["order"].hint,
    },
    "rails_delay": {"base_ms": BASE_MS, "delay_ms": DELAY_MS, "limit_percent": LIMIT_PERCENT},
    "cost": {
        "gpus": Annotated[int, setting(ge=8, le=1_000_000)],
        "counting": fields_of(Counting)["method"].hint,
        "prices": Annotated[str, setting(choices=tuple(PRICE_SETS))],
    },
}
# Options that may also be a multiple of what the file has.
_TIMES = _CLUSTER.keys() | _NETWORK
_Times = Annotated[float, setting(gt=0, le=1e6)]


def check_options(call: str, options: Mapping[str, Any], before: str) -> None:
    """Refuse what is no option of a call, or out of its range.

    Raises
    ------
    InputError
        For the first one; the field is its name, behind the name of what holds the options.
    """
    known = _OPTIONS[call]
    for name, value in options.items():
        check_known(name, known, "option", field=f"{before}.{str(name)[:60]}")
        hint = known[name]
        if isinstance(value, dict) and name in _TIMES and [*value] == ["times"]:
            hint, value, name = _Times, value["times"], f"{name}.times"
        check_value(hint, value, field=f"{before}.{name}")


def call_value(call: Call, files: InstanceFiles) -> float | str:
    """Return what a call gives: a number, a word, or the option of its band.

    Raises
    ------
    InputError
        If a file is missing, the record has no such field, or the plan was not proved best.
    """
    value = _field(call, files, call.options or {})
    if call.against is not None:
        other = _field(call, files, call.against)
        if isinstance(value, str) or isinstance(other, str):
            raise InputError("must be a number to be related", field=f"key.field {call.field}")
        value = _related(value, other, call.relation)
    if not call.bands:
        return value
    if isinstance(value, str):
        raise InputError("must be a number to fall into bands", field=f"key.field {call.field}")
    return next(
        band.option for band in call.bands if band.below is None or float(value) < band.below
    )


def _related(value: float, other: float, relation: str) -> float:
    if relation == "difference":
        return value - other
    refuse_if((other == 0, "is 0, and nothing can be related to it"), field="key.against")
    return value / other if relation == "ratio" else 1.0 - value / other


def _field(call: Call, files: InstanceFiles, options: Mapping[str, Any]) -> float | str:
    at: Any = _RUNS[call.call](files, {**options, "fabric": call.fabric})
    for part in call.field.split("."):
        if isinstance(at, list) and part.lstrip("-").isdigit() and -len(at) <= int(part) < len(at):
            at = at[int(part)]
        elif isinstance(at, dict) and part in at:
            at = at[part]
        else:
            known = [*at] if isinstance(at, dict) else []
            raise InputError(unknown(part, known, "field"), field=f"key.field {call.field}")
    if isinstance(at, bool) or not isinstance(at, int | float | str):
        raise InputError(f"is {shown(at)}, no number or word", field=f"key.field {call.field}")
    return at


def _needed(thing: Any, kind: str) -> Any:
    return needed(thing, f"needs a {kind} among the files of its instance", field="key")


def _asked_for(options: Mapping[str, Any], option: str) -> Any:
    refuse_if((option not in options, "is missing"), field=f"key.with.{option}")
    return options[option]


def _changes(record: Any, names: Iterable[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a record that are given, a multiple as the value that it makes."""
    changes: dict[str, Any] = {}
    for name in names:
        if name in options:
            given, own = options[name], getattr(record, name)
            value = own * given["times"] if isinstance(given, dict) else given
            changes[name] = type(own)(round(value) if isinstance(own, int) else value)
    return changes


def _cluster(files: InstanceFiles, options: Mapping[str, Any]) -> Cluster:
    cluster: Cluster = _needed(files.cluster, "cluster")
    return cluster.changed(**_changes(cluster, _CLUSTER, options))


def _schedule(files: InstanceFiles, options: Mapping[str, Any]) -> dict[str, Any]:
    cluster = _cluster(files, options)
    engine = options.get("engine", "list")
    settings = replace(LESSON_SETTINGS, engine=engine, time_limit_s=EXACT_LIMIT_S)
    result = schedule(_needed(files.graph, "graph"), cluster, settings)
    refuse_if(
        (
            engine != "list" and result.status != "optimal",
            f"has no key: the plan ended {result.status}, and only a proved one counts",
        ),
        field="key",
    )
    return record_of(result, "status makespan_ms bound_ms gap bound_by unrounded_bound_ms")


def _compare(files: InstanceFiles, options: Mapping[str, Any]) -> dict[str, Any]:
    fabric = options["fabric"]
    check_known(fabric, FABRICS, "fabric", field="key.fabric")
    cluster = _cluster(files, options)
    graph = _needed(files.graph, "graph")
    return compare(graph, cluster, LESSON_SETTINGS, (fabric,))[fabric].as_record()


def _topology(files: InstanceFiles, options: Mapping[str, Any]) -> dict[str, Any]:
    cluster: Cluster = _needed(files.cluster, "cluster")
    demand = traffic_of(_needed(files.graph, "graph"), cluster.servers)
    degree = options.get("degree", cluster.ports_per_server)
    return find_layout(demand, degree, options.get("variant", "published")).as_record()


def _tdm(files: InstanceFiles, options: Mapping[str, Any]) -> dict[str, Any]:
    jobs: Jobs = _needed(files.jobs, "jobs")
    if changes := _changes(jobs.network, _NETWORK, options):
        jobs = replace(jobs, network=replace(jobs.network, **changes))
    algorithm = options.get("algorithm", "hill-climbing")
    assert algorithm in ALGORITHMS
    answer = solve(jobs, TdmSettings(algorithm, time_limit_s=EXACT_LIMIT_S))
    refuse_if(
        (answer.stopped_by == "time_limit", "has no key: the round was stopped by the clock"),
        field="key",
    )
    return {"round_s": answer.round_s, "mean_round_s": answer.mean_round_s}


def _rails_count(_: InstanceFiles, options: Mapping[str, Any]) -> dict[str, Any]:
    stages, microbatches = _asked_for(options, "stages"), _asked_for(options, "microbatches")
    return {"by_stage": windows_by_stage(stages, microbatches, options.get("schedule", "1f1b"))}


def _rails_delay(files: InstanceFiles, options: Mapping[str, Any]) -> dict[str, Any]:
    lengths = _needed(files.windows, "list of windows")
    base_ms = _asked_for(options, "base_ms")
    source = windows_source(base_ms, lengths)
    row = study(source, (options.get("delay_ms", 25.0),)).rows[0]
    limit = options.get("limit_percent", 1.0)
    return {
        "base_ms": base_ms,
        **record_of(row, "on_demand_ms provisioned_ms"),
        "slowest_switch": {
            "on_demand_ms": slowest_switch(source, limit, provisioned=False),
            "provisioned_ms": slowest_switch(source, limit),
        },
    }


def _cost(files: InstanceFiles, options: Mapping[str, Any]) -> dict[str, Any]:
    gpus = _asked_for(options, "gpus")
    catalogue = files.parts or PRICE_SETS[options.get("prices", DEFAULT_SET)]
    priced = bills(gpus, catalogue, Counting(method=options.get("counting", "paper")))
    fabrics = {name: one.as_record() for name, one in priced.items()}
    return {"fabrics": fabrics, "savings": savings(priced)}


_RUNS: Mapping[str, Callable[[InstanceFiles, Mapping[str, Any]], dict[str, Any]]] = {
    "schedule": _schedule,
    "compare": _compare,
    "topology": _topology,
    "tdm": _tdm,
    "rails_count": _rails_count,
    "rails_delay": _rails_delay,
    "cost": _cost,
}
