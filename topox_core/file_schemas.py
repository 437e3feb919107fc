"""JSON Schema (draft 2020-12) of the files whose fields records declare: ``topox schema``, and editors that check as one types."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from topox_core.check import schedule_file
from topox_core.check.rows import StandingRow, TaskRow
from topox_core.claims import claims
from topox_core.demand import planning
from topox_core.economics import price_sets
from topox_core.io import assertions, cluster_file, exports, manifest, task_graph_file
from topox_core.io.manifest import Manifest
from topox_core.labs import answers, keys as lab_keys, lab, lab_file, leaderboard
from topox_core.labs.answers import Answers, Explained, Prediction, Worked
from topox_core.labs.generators.catalogue import GENERATORS
from topox_core.labs.lab import Call, Lab, Question, Screen, Source, SourceFiles, Tolerance
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task
from topox_core.papers.rows import VERDICTS
from topox_core.rails import iteration, window_lengths
from topox_core.rails.iteration import Window
from topox_core.rails.window_lengths import WindowList
from topox_core.schema.fields import Field, fields_of, plain
from topox_core.strategy import strategy
from topox_core.strategy.strategy import Placement, Strategy
from topox_core.studies import buying_words, offers, study
from topox_core.studies.offers import Estimate, SwitchProduct
from topox_core.studies.study import Budget
from topox_core.tdm.model import jobs as shared, jobs_file, round_file
from topox_core.tdm.model.jobs import Job as SharedJob, PodNetwork
from topox_core.traces import importing
from topox_core.traces.checks import Check
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
_OBJECT = dict[str, Any]
_NAMES = list[str]
_WHOLE = list[int]
_MAYBE = float | None
_COUNT = Annotated[int, msgspec.Meta(ge=0)]
_TIME = Annotated[float, msgspec.Meta(ge=0)]


def _each(words: str, hint: Any) -> dict[str, Any]:
    """Return one type for keys, separated by bars, or by spaces where no bar is."""
    return dict.fromkeys(words.split("|" if "|" in words else None), hint)


def _either(*names: str, **limits: int) -> Any:
    """Return what may be one of some alternatives of the document: objects that no key of their own tells apart for msgspec."""
    places = [{"$ref": f"#/$defs/{name}"} for name in names]
    return Annotated[Any, msgspec.Meta(extra_json_schema={"anyOf": places, **limits})]


_LAB, _SOURCE, _ANSWERS = _hints(Lab), _hints(Source), _hints(Answers)
_OPTIONS, _BANDS = _hints(Question)["options"], _hints(Call)["bands"]
_INSTANCE = Annotated[str, msgspec.Meta(pattern=f"^{lab_file.NAME.pattern}$")]
_MANIFEST = _hints(Manifest)
_ANY_MANIFEST = {
    "format": Literal[manifest.FORMAT],
    "version": Literal[manifest.VERSION],
    **_MANIFEST,
}
# What a command adds to a result: whether the checker agrees, and how it came about.
_CHECKED = {"checked": bool, "violations": _NAMES, "manifest": _ANY_MANIFEST}
_SCHEDULE: Mapping[str, Any] = {
    **dict.fromkeys(sorted(schedule_file.KEYS - {"format", "version"}), Any),
    **dict.fromkeys(("makespan_ms", "bound_ms", "gap", *schedule_file.CLAIMS), _MAYBE),
    "status": Literal[schedule_file.STATUSES],
    "clock": Literal[schedule_file.CLOCKS],
    "effort": Literal[schedule_file.EFFORTS],
    "manifest": _ANY_MANIFEST,
    "settings": _OBJECT,
    "tasks": list[TaskRow],
    "transfers": list[_OBJECT],
    "circuits": list[StandingRow],
}
_STAGE = {
    **_each("start_s end_s dark_s communication_s computing_s", _TIME),
    "stage": int,
    "what": str,
}
_ROUND: Mapping[str, Any] = {
    **_each("name jobs_digest algorithm bound_by bound_for message", str),
    **_each("round_s mean_round_s non_tdm_s bound_s gap", _MAYBE),
    "status": shared.Status,
    "stopped_by": shared.StoppedBy,
    "wall_s": _TIME,
    "seed": _COUNT,
    "static": bool,
    "settings": _OBJECT,
    "groups": [_NAMES],
    "cycles": [{"pod_groups": _WHOLE, "round_s": _TIME, "stages": [_STAGE]}],
    "bottlenecks": [
        {
            **_each("cause words", str),
            **_each("stage jobs links", _COUNT),
            **_each("seconds gbit", _TIME),
            **_each("pods full_pods", _WHOLE),
            "pod_group": int | None,
            "job": str | None,
        }
    ],
    "communication_s": list[list[_MAYBE]],
    "links": [_each("pod_group group from to links", _COUNT)],
    "jobs": [
        {
            **_each("id collective", str),
            **_each("pod_group group", _COUNT),
            "ring": _WHOLE,
            "round_s": _TIME,
            "iterations_per_s": _MAYBE,
        }
    ],
}
_ENDS = Annotated[
    list[Annotated[int, msgspec.Meta(ge=1)]], msgspec.Meta(min_length=2, max_length=2)
]
_PLAN: Mapping[str, Any] = {
    **_each("method bound_by", str),
    **_each("delay_ms makespan_ms bound_ms", _TIME),
    "first_free": bool,
    "switches": [[{**_each("start_ms duration_ms", _TIME), "circuits": list[_ENDS]}]],
}
_CONNECTION = {
    **_each("slot source source_port destination destination_port", _COUNT),
    **_each("setup_ms usable_ms until_ms", _TIME),
    "transfers": _NAMES,
}
_CONNECTS: Mapping[str, Any] = {
    **_each("slot_ms reconfiguration_ms makespan_ms", _TIME),
    "switches": [{"switch": _COUNT, "connections": [_CONNECTION]}],
}
_GROUP = {
    **_each("group description ranks", str),
    **_each("members calls", _COUNT),
    "size_bytes": _TIME,
    "parallelism": str | None,
}
_REPORT: Mapping[str, Any] = {
    **_each("files warnings", _NAMES),
    **_each("world segments calls tasks", _COUNT),
    "ranks": _WHOLE,
    "calls_by_kind": dict[str, _COUNT],
    "size_bytes": _TIME,
    "groups": [_GROUP],
    "digest": str,
    "replay_ms": dict[str, _TIME],
    "checks": [Check],
}
# Keys of a recorded run alone; of Chakra's files and of text, where nothing was recorded; of some.
_FACTS: Mapping[str, Any] = {
    **_each("clocks waits settings header", _OBJECT),
    **_each("host_step_ms gpu_busy", _MAYBE),
    **_each("recorded_ms recorded_call_ms compute_ms", _TIME),
    **_each("nodes host_wrappers", _COUNT),
    "step": int | None,
    "steps": _WHOLE,
    "unmatched": list[Any],
    "coarsening": dict[str, float],
    "inside_servers": {"calls": _COUNT, "size_bytes": _TIME},
}
_NETWORK = {
    **_each("network note", str),
    "ports per server": _COUNT,
    **_each("delay (ms)|iteration (ms)|at best (ms)|at worst (ms)", _MAYBE),
    **_each("network ($)|network (W)|dollars per iteration|saves (%)", _MAYBE),
    "price per port": str,
    "nothing beats it": Literal["yes", ""],
    "switches": _COUNT | None,
}
_BUYING: Mapping[str, Any] = {
    "finding": str,
    "details": dict[str, str],
    "complete": bool,
    "networks": [_NETWORK],
    **_each("left_out caveats", _NAMES),
}
# Keys of an answer that compares, that has break-even points, and that has a tornado.
_COMPARED: Mapping[str, Any] = {
    **_each("buy best_switch best_rival", str),
    **_each("saves saves_at_worst saves_at_best", float),
    **_each("slowest_ms loses_at_ms highest_port_usd", _MAYBE),
    "ports": _COUNT,
    "as_good": _NAMES,
    "could_turn": bool,
    "fewest_ports": int | None,
    "hangs_on": [{**_each("figure to", str), "saves (%)": float}],
}
_CLAIM = {
    **_each("claim source says counted measured published identity", str),
    **_each("share share_of_all middle largest", _MAYBE),
    "abstract_only": bool,
    "verdict": Literal[tuple(VERDICTS)],
    "trials": _COUNT,
    "share_by_decade": list[list[float]],
    "jobs": dict[str, list[_COUNT]],
}
_CELL = {
    **_each("job side fastest", str),
    **_each("port_gbps delay_ms", _TIME),
    "ports": _COUNT,
    "complete": bool,
    "lead": _MAYBE,
    "times_ms": dict[str, _TIME],
}
_CLAIMS: Mapping[str, Any] = {"finding": str, "claims": [_CLAIM], "cells": [_CELL]}
_RAIL_RUN: Mapping[str, Any] = {
    **_each("iteration_ms undisturbed_ms stall_ms", _TIME),
    **_each("reconfigurations messages_sent", _COUNT),
    "circuits": [{"group": str, **_each("setup_ms start_ms end_ms", float), "changed": bool}],
    "messages": [{"at_ms": float, **_each("from to word group note", str)}],
}
_LAB_KEYS: Mapping[str, Any] = {
    **_each("lab digest", str),
    "seeds": [
        {
            "student": str | None,
            "seed": _COUNT,
            "keys": _OBJECT,
            "mistakes": dict[str, list[_OBJECT]],
        }
    ],
}
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
        _SCHEDULE,
        ("status", "settings"),
    ),
    "link": Document(
        schedule_file.LINKED.name,
        schedule_file.LINKED.version,
        ".link.json",
        {**_SCHEDULE, "link": dict[str, str], "graph_digest": str},
        ("status", "settings", "link", "graph_digest"),
    ),
    "round": Document(
        round_file.FORMAT,
        round_file.VERSION,
        ".round.json",
        {**_ROUND, **_CHECKED, "reduction": float},
        tuple(_ROUND),
    ),
    "plan": Document(
        planning.FORMAT,
        None,
        ".plan.json",
        {**_PLAN, **_CHECKED, "bound_for": str, "baselines_ms": dict[str, _TIME]},
        tuple(_PLAN),
    ),
    "cross-connects": Document(
        exports.FORMAT,
        exports.VERSION,
        ".cross-connects.json",
        {**_CONNECTS, "manifest": _ANY_MANIFEST},
        tuple(_CONNECTS),
    ),
    "report": Document(
        importing.FORMAT,
        importing.VERSION,
        ".report.json",
        {**_REPORT, **_FACTS, "manifest": _ANY_MANIFEST, "output": str},
        tuple(_REPORT),
    ),
    "rail-run": Document(
        iteration.FORMAT,
        iteration.VERSION,
        ".rail-run.json",
        {**_RAIL_RUN, "manifest": _ANY_MANIFEST},
        tuple(_RAIL_RUN),
    ),
    "buying": Document(
        buying_words.FORMAT,
        buying_words.VERSION,
        ".buying.json",
        {**_BUYING, **_COMPARED, "manifest": _ANY_MANIFEST},
        tuple(_BUYING),
    ),
    "claims": Document(
        claims.FORMAT,
        claims.VERSION,
        ".claims.json",
        {**_CLAIMS, "manifest": _ANY_MANIFEST},
        tuple(_CLAIMS),
    ),
    "lab-keys": Document(
        lab_keys.FORMAT,
        lab_keys.VERSION,
        ".lab-keys.json",
        {**_LAB_KEYS, "manifest": _ANY_MANIFEST},
        tuple(_LAB_KEYS),
    ),
    "manifest": Document(
        manifest.FORMAT,
        manifest.VERSION,
        ".manifest.json",
        _MANIFEST,
        tuple(_MANIFEST),
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
            "score": _OBJECT,
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
