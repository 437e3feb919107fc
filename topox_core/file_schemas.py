"""JSON Schema (draft 2020-12) of the files whose fields records declare: ``topox schema``, and editors that check as one types."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from topox_core import result_keys as results
from topox_core.check import schedule_file
from topox_core.claims import claims
from topox_core.demand import planning
from topox_core.economics import price_sets
from topox_core.io import assertions, cluster_file, exports, manifest, task_graph_file
from topox_core.labs import keys as lab_keys, lab, lab_file
from topox_core.labs.classroom import answers, leaderboard
from topox_core.labs.classroom.answers import Answers, Explained, Prediction, Worked
from topox_core.labs.generators.catalogue import GENERATORS
from topox_core.labs.lab import Call, Lab, Question, Screen, Source, SourceFiles, Tolerance
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task
from topox_core.rails import iteration, window_lengths
from topox_core.rails.iteration import Window
from topox_core.rails.window_lengths import WindowList
from topox_core.schema.fields import Field, fields_of, plain
from topox_core.strategy import strategy
from topox_core.strategy.strategy import Placement, Strategy
from topox_core.studies import study
from topox_core.studies.buying import offers, words as buying_words
from topox_core.studies.buying.offers import Estimate, SwitchProduct
from topox_core.studies.study import Budget
from topox_core.tdm.model import jobs_file, round_file
from topox_core.tdm.model.jobs import Job as SharedJob, PodNetwork
from topox_core.traces import importing
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
    version
        None: the file does not say it.
    ending
        Of its name.
    keys
        What it holds besides format and version: the type of each key; a dict is an object whose keys are all needed, a list of one
        type a list.
    needed
        The keys that may not be missing.
    alternatives
        What keys may be one of (:func:`_either`), by the name that the schema gives it.
    """

    format: str
    version: int | None
    ending: str
    keys: Mapping[str, Any]
    needed: tuple[str, ...]
    alternatives: Mapping[str, Any] = field(default_factory=dict)


def _hints(record: type) -> dict[str, Any]:
    return {one.key: one.hint for one in fields_of(record).values()}


_JOB, _PARTS = _hints(Job), _hints(price_sets.Catalogue)


def _either(*names: str, **limits: int) -> Any:
    """Return what may be one of some alternatives of the document: objects that no key of their own tells apart for msgspec."""
    places = [{"$ref": f"#/$defs/{name}"} for name in names]
    return Annotated[Any, msgspec.Meta(extra_json_schema={"anyOf": places, **limits})]


_LAB, _SOURCE, _ANSWERS = _hints(Lab), _hints(Source), _hints(Answers)
_OPTIONS, _BANDS = _hints(Question)["options"], _hints(Call)["bands"]
_INSTANCE = Annotated[str, msgspec.Meta(pattern=f"^{lab_file.NAME.pattern}$")]
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
        results.SCHEDULE,
        ("status", "settings"),
    ),
    "link": Document(
        schedule_file.LINKED.name,
        schedule_file.LINKED.version,
        ".link.json",
        {**results.SCHEDULE, "link": dict[str, str], "graph_digest": str},
        ("status", "settings", "link", "graph_digest"),
    ),
    "round": Document(
        round_file.FORMAT,
        round_file.VERSION,
        ".round.json",
        {**results.ROUND, **results.CHECKED, "reduction": float},
        tuple(results.ROUND),
    ),
    "plan": Document(
        planning.FORMAT,
        None,
        ".plan.json",
        {
            **results.PLAN,
            **results.CHECKED,
            "bound_for": str,
            "baselines_ms": dict[str, results.TIME],
        },
        tuple(results.PLAN),
    ),
    "cross-connects": Document(
        exports.FORMAT,
        exports.VERSION,
        ".cross-connects.json",
        {**results.CONNECTS, "manifest": results.ANY_MANIFEST},
        tuple(results.CONNECTS),
    ),
    "report": Document(
        importing.FORMAT,
        importing.VERSION,
        ".report.json",
        {**results.REPORT, **results.FACTS, "manifest": results.ANY_MANIFEST, "output": str},
        tuple(results.REPORT),
    ),
    "rail-run": Document(
        iteration.FORMAT,
        iteration.VERSION,
        ".rail-run.json",
        {**results.RAIL_RUN, "manifest": results.ANY_MANIFEST},
        tuple(results.RAIL_RUN),
    ),
    "buying": Document(
        buying_words.FORMAT,
        buying_words.VERSION,
        ".buying.json",
        {**results.BUYING, **results.COMPARED, "manifest": results.ANY_MANIFEST},
        tuple(results.BUYING),
    ),
    "claims": Document(
        claims.FORMAT,
        claims.VERSION,
        ".claims.json",
        {**results.CLAIMS, "manifest": results.ANY_MANIFEST},
        tuple(results.CLAIMS),
    ),
    "lab-keys": Document(
        lab_keys.FORMAT,
        lab_keys.VERSION,
        ".lab-keys.json",
        {**results.LAB_KEYS, "manifest": results.ANY_MANIFEST},
        tuple(results.LAB_KEYS),
    ),
    "manifest": Document(
        manifest.FORMAT,
        manifest.VERSION,
        ".manifest.json",
        results.MANIFEST,
        tuple(results.MANIFEST),
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
        | {"parts": tuple[price_sets.Part, ...]},
        ("parts",),
    ),
    "lab": Document(
        lab.FORMAT,
        lab.VERSION,
        lab_file.ENDING,
        {key: hint for key, hint in _LAB.items() if key not in ("record", "folder")}
        | {
            "instances": Annotated[
                dict[_INSTANCE, _either("drawn", "of_files")],  # type: ignore[misc]
                msgspec.Meta(min_length=1, max_length=lab.MAX_INSTANCES),
            ]
        },
        (*lab_file.HEAD, "instances", "screens"),
        {
            "drawn": {
                "generator": Literal[tuple(GENERATORS)],
                "generator_version": _SOURCE["generator_version"],
                "seed": _SOURCE["seed"],
            },
            "of_files": {"files": SourceFiles},
            **{one.__name__: one for one in (lab_file.Value, Call, Tolerance)},
        },
    ),
    "answers": Document(
        answers.FORMAT,
        answers.VERSION,
        ".answers.json",
        _ANSWERS
        | {
            "program": str,
            "generator_versions": dict[str, Annotated[int, msgspec.Meta(ge=1)]],
            "answers": Annotated[
                dict[str, _either("Prediction", "Worked", "Explained")],  # type: ignore[misc]
                msgspec.Meta(max_length=answers.MAX_ANSWERS),
            ],
            "score": dict[str, Any],
            "checksum": str,
            "signature": str,
        },
        (*(one.key for one in fields_of(Answers).values() if one.required), "answers"),
        {one.__name__: one for one in (Prediction, Worked, Explained)},
    ),
    "entry": Document(
        leaderboard.FORM.name,
        leaderboard.FORM.version,
        leaderboard.ENDING,
        {
            "board": Literal[tuple(leaderboard.BOARDS)],
            "alias": Annotated[
                str, msgspec.Meta(pattern=rf"^\s*\S(.{{0,{leaderboard.MAX_ALIAS - 2}}}\S)?\s*$")
            ],
            "starts_ms": Annotated[dict[str, float], msgspec.Meta(min_length=1)],
            "groups": Annotated[dict[str, Literal["A", "B"]], msgspec.Meta(min_length=1)],
            "makespan_ms": Any,
            "round_s": Any,
        },
        ("board", "alias"),
    ),
}
# Records of which a file may leave out what the same thing elsewhere has, such as a part that of the set that it is based on.
_NEEDED: Mapping[type, tuple[str, ...]] = {
    price_sets.Part: ("id",),
    SwitchProduct: ("key",),
    Estimate: (),
    Window: ("length_ms", "before", "after"),
    Screen: ("id", "stage", "questions"),
    Worked: ("attempts",),
}
# Keys that a file has otherwise than the record, or not as empty as the record may have them.
_OTHERWISE: Mapping[tuple[type, str], Any] = {
    (Question, "key"): _either("Value", "Call"),
    (Question, "options"): Annotated[_OPTIONS, msgspec.Meta(min_length=2)],
    (Question, "tolerance"): _either("Tolerance", minProperties=1),
    (Call, "bands"): Annotated[_BANDS, msgspec.Meta(min_length=1)],
}


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of one of :data:`DOCUMENTS`; rules between fields are the reader's own."""
    document = DOCUMENTS[name]
    head = {"format": document.format, "version": document.version}
    fields: list[Any] = [(key, Literal[one]) for key, one in head.items() if one is not None]
    fields += [_typed(key, hint, key in document.needed) for key, hint in document.keys.items()]
    file = msgspec.defstruct(f"{name} file", fields, kw_only=True, forbid_unknown_fields=True)
    others = [_kind(key, hint) for key, hint in document.alternatives.items()]
    (whole, *_), within = msgspec.json.schema_components(
        (file, *others), ref_template="#/$defs/{name}"
    )
    return {"$schema": DIALECT, "title": f"*{document.ending}", **whole, "$defs": within}


def _typed(key: str, hint: Any, needed: bool, field: Field | None = None) -> tuple[Any, ...]:
    """Return a key with its type and words; what may be left out is unset."""
    kind = _kind(key, hint)
    if field is not None and (field.title or field.help):
        words = msgspec.Meta(title=field.title or None, description=field.help or None)
        kind = Annotated[kind, words]
    return (key, kind) if needed else (key, kind | msgspec.UnsetType, msgspec.UNSET)


def _kind(key: str, hint: Any) -> Any:
    """Return what msgspec checks a key by: a Struct for a dict or a record, a list of its one for a list."""
    if isinstance(hint, list):
        return list[_kind(key, hint[0])]  # type: ignore[misc]
    if not isinstance(hint, dict):
        return plain(hint, _struct)
    # Columns of a table are no names of attributes.
    names = {re.sub(r"\W+", "_", one): one for one in hint}
    fields = [_typed(name, hint[one], True) for name, one in names.items()]
    return msgspec.defstruct(key, fields, kw_only=True, forbid_unknown_fields=True, rename=names)


@cache
def _struct(record: type) -> type[msgspec.Struct]:
    """Return a Struct with the keys of a record, records within among them."""
    own = fields_of(record).values()
    needed = _NEEDED.get(record, tuple(one.key for one in own if one.required))
    fields = [
        _typed(one.key, _OTHERWISE.get((record, one.key), one.hint), one.key in needed, one)
        for one in own
    ]
    return msgspec.defstruct(record.__name__, fields, kw_only=True, forbid_unknown_fields=True)
