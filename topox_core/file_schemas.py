"""JSON Schema (draft 2020-12) of the files whose fields records declare: ``topox schema``, and editors that check as one types."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from topox_core.check import schedule_file
from topox_core.check.rows import StandingRow, TaskRow
from topox_core.economics import parts, price_sets
from topox_core.io import assertions, cluster_file, task_graph_file
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task
from topox_core.rails import window_lengths
from topox_core.rails.iteration import Window
from topox_core.rails.window_lengths import WindowList
from topox_core.schema.fields import Field, fields_of, plain
from topox_core.strategy import strategy
from topox_core.strategy.strategy import Placement, Strategy
from topox_core.studies import offers, study
from topox_core.studies.offers import Estimate, SwitchProduct
from topox_core.studies.study import Budget
from topox_core.tdm.model import jobs_file
from topox_core.tdm.model.jobs import Job as SharedJob, PodNetwork
from topox_core.training import job
from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
from topox_core.training.shape import SHAPES

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class Document:
    """One kind of file.

    Attributes
    ----------
    ending
        Of its name.
    keys
        What it holds besides format and version: the type of each key.
    needed
        The keys that may not be missing.
    """

    format: str
    version: int
    ending: str
    keys: Mapping[str, Any]
    needed: tuple[str, ...]


def _hints(record: type) -> dict[str, Any]:
    return {one.key: one.hint for one in fields_of(record).values()}


_JOB, _PARTS = _hints(Job), _hints(parts.Catalogue)
DOCUMENTS: Mapping[str, Document] = {
    "taskgraph": Document(
        task_graph_file.FORMAT,
        task_graph_file.VERSION,
        ".taskgraph.json",
        {"name": str, "tasks": tuple[Task, ...]},
        ("tasks",),
    ),
    "cluster": Document(
        cluster_file.FORMAT,
        cluster_file.VERSION,
        ".cluster.json",
        _hints(Cluster),
        tuple(one.key for one in fields_of(Cluster).values() if one.required),
    ),
    "job": Document(
        job.FORMAT,
        job.VERSION,
        ".job.json",
        _JOB
        | {"shape": Literal[tuple(SHAPES)] | _JOB["shape"]}
        | {"machine": Literal[tuple(MACHINES)] | _JOB["machine"]},
        ("shape", "plan", "machine"),
    ),
    "jobs": Document(
        jobs_file.FORMAT,
        jobs_file.VERSION,
        ".jobs.json",
        {"name": str, "network": PodNetwork, "jobs": tuple[SharedJob, ...]},
        ("network", "jobs"),
    ),
    "schedule": Document(
        schedule_file.FORMAT,
        schedule_file.VERSION,
        ".schedule.json",
        dict.fromkeys(sorted(schedule_file.KEYS - {"format", "version"}), Any)
        | dict.fromkeys(("makespan_ms", "bound_ms", "gap", *schedule_file.CLAIMS), float | None)
        | {
            "status": Literal[schedule_file.STATUSES],
            "clock": Literal[schedule_file.CLOCKS],
            "effort": Literal[schedule_file.EFFORTS],
            "settings": dict[str, Any],
            "tasks": list[TaskRow],
            "transfers": list[dict[str, Any]],
            "circuits": list[StandingRow],
        },
        ("status", "settings"),
    ),
    "study": Document(
        study.FORMAT,
        study.VERSION,
        ".study.json",
        {
            "name": str,
            "subject": dict[str, Any],
            "fixed": dict[str, Any],
            "axes": list[dict[str, Any]],
            "design": dict[str, Any],
            "measures": list[str],
            "budget": Budget,
            assertions.KEY: list[str],
        },
        ("subject",),
    ),
    "windows": Document(
        window_lengths.FORMAT,
        window_lengths.VERSION,
        ".windows.json",
        {key: _hints(WindowList)[key] for key in ("name", "iteration_ms", "windows")},
        ("windows",),
    ),
    "offers": Document(
        offers.FORMAT,
        offers.VERSION,
        ".offers.json",
        {"offers": tuple[SwitchProduct, ...]},
        ("offers",),
    ),
    "strategy": Document(
        strategy.FORMAT,
        strategy.VERSION,
        ".strategy.json",
        {
            "model": _hints(Strategy)["model"],
            "servers": _hints(Strategy)["servers"],
            "operators": tuple[Placement, ...],
        },
        ("model", "servers", "operators"),
    ),
    "parts": Document(
        price_sets.FORMAT,
        price_sets.VERSION,
        ".parts.json",
        {name: _PARTS[name] for name in ("name", "port_gbps", "switch_transceivers")}
        | {"based_on": Literal[tuple(price_sets.PRICE_SETS)]}
        | {"parts": tuple[parts.Part, ...]},
        ("parts",),
    ),
}
# Records of which a file may leave out what the same thing elsewhere has, such as a part that of the set that it is based on.
_NEEDED: Mapping[type, tuple[str, ...]] = {
    parts.Part: ("id",),
    SwitchProduct: ("key",),
    Estimate: (),
    Window: ("length_ms", "before", "after"),
}


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of one of :data:`DOCUMENTS`; rules between fields are the reader's own."""
    document = DOCUMENTS[name]
    fields = [("format", Literal[document.format]), ("version", Literal[document.version])]
    fields += [_typed(key, hint, key in document.needed) for key, hint in document.keys.items()]
    file = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
    return {"$schema": DIALECT, "title": f"*{document.ending}", **msgspec.json.schema(file)}


def _typed(key: str, hint: Any, needed: bool, field: Field | None = None) -> tuple[Any, ...]:
    """Return a key with its type and words; what may be left out is unset."""
    kind: Any = plain(hint, _struct)
    if field is not None and (field.title or field.help):
        words = msgspec.Meta(title=field.title or None, description=field.help or None)
        kind = Annotated[kind, words]
    return (key, kind) if needed else (key, kind | msgspec.UnsetType, msgspec.UNSET)


@cache
def _struct(record: type) -> type[msgspec.Struct]:
    """Return a Struct with the keys of a record, records within among them."""
    own = fields_of(record).values()
    needed = _NEEDED.get(record, tuple(one.key for one in own if one.required))
    fields = [_typed(one.key, one.hint, one.key in needed, one) for one in own]
    return msgspec.defstruct(record.__name__, fields, kw_only=True, forbid_unknown_fields=True)
