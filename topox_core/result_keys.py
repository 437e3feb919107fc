"""What results hold, key by key, whose writers build them of several records: for JSON Schema (:mod:`topox_core.file_schemas`).

A dict is an object whose keys are all needed, a list of one type a list.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from topox_core.check import schedule_file
from topox_core.check.rows import StandingRow, TaskRow
from topox_core.io import manifest
from topox_core.io.manifest import Manifest
from topox_core.papers.rows import VERDICTS
from topox_core.schema.fields import fields_of
from topox_core.tdm.model import jobs as shared
from topox_core.traces.checks import Check

_OBJECT = dict[str, Any]
_NAMES = list[str]
_WHOLE = list[int]
_MAYBE = float | None
_COUNT = Annotated[int, msgspec.Meta(ge=0)]
TIME = Annotated[float, msgspec.Meta(ge=0)]


def _each(words: str, hint: Any) -> dict[str, Any]:
    """Return one type for keys, separated by bars, or by spaces where no bar is."""
    return dict.fromkeys(words.split("|" if "|" in words else None), hint)


MANIFEST = {one.key: one.hint for one in fields_of(Manifest).values()}
ANY_MANIFEST = {
    "format": Literal[manifest.FORMAT],
    "version": Literal[manifest.VERSION],
    **MANIFEST,
}
# What a command adds to a result: whether the checker agrees, and how it came about.
CHECKED = {"checked": bool, "violations": _NAMES, "manifest": ANY_MANIFEST}
SCHEDULE: Mapping[str, Any] = {
    **dict.fromkeys(sorted(schedule_file.KEYS - {"format", "version"}), Any),
    **dict.fromkeys(("makespan_ms", "bound_ms", "gap", *schedule_file.CLAIMS), _MAYBE),
    "status": Literal[schedule_file.STATUSES],
    "clock": Literal[schedule_file.CLOCKS],
    "effort": Literal[schedule_file.EFFORTS],
    "manifest": ANY_MANIFEST,
    "settings": _OBJECT,
    "tasks": list[TaskRow],
    "transfers": list[_OBJECT],
    "circuits": list[StandingRow],
}
_STAGE = {
    **_each("start_s end_s dark_s communication_s computing_s", TIME),
    "stage": int,
    "what": str,
}
ROUND: Mapping[str, Any] = {
    **_each("name jobs_digest algorithm bound_by bound_for message", str),
    **_each("round_s mean_round_s non_tdm_s bound_s gap", _MAYBE),
    "status": shared.Status,
    "stopped_by": shared.StoppedBy,
    "wall_s": TIME,
    "seed": _COUNT,
    "static": bool,
    "settings": _OBJECT,
    "groups": [_NAMES],
    "cycles": [{"pod_groups": _WHOLE, "round_s": TIME, "stages": [_STAGE]}],
    "bottlenecks": [
        {
            **_each("cause words", str),
            **_each("stage jobs links", _COUNT),
            **_each("seconds gbit", TIME),
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
            "round_s": TIME,
            "iterations_per_s": _MAYBE,
        }
    ],
}
_ENDS = Annotated[
    list[Annotated[int, msgspec.Meta(ge=1)]], msgspec.Meta(min_length=2, max_length=2)
]
PLAN: Mapping[str, Any] = {
    **_each("method bound_by", str),
    **_each("delay_ms makespan_ms bound_ms", TIME),
    "first_free": bool,
    "switches": [[{**_each("start_ms duration_ms", TIME), "circuits": list[_ENDS]}]],
}
_CONNECTION = {
    **_each("slot source source_port destination destination_port", _COUNT),
    **_each("setup_ms usable_ms until_ms", TIME),
    "transfers": _NAMES,
}
CONNECTS: Mapping[str, Any] = {
    **_each("slot_ms reconfiguration_ms makespan_ms", TIME),
    "switches": [{"switch": _COUNT, "connections": [_CONNECTION]}],
}
_GROUP = {
    **_each("group description ranks", str),
    **_each("members calls", _COUNT),
    "size_bytes": TIME,
    "parallelism": str | None,
}
REPORT: Mapping[str, Any] = {
    **_each("files warnings", _NAMES),
    **_each("world segments calls tasks", _COUNT),
    "ranks": _WHOLE,
    "calls_by_kind": dict[str, _COUNT],
    "size_bytes": TIME,
    "groups": [_GROUP],
    "digest": str,
    "replay_ms": dict[str, TIME],
    "checks": [Check],
}
# Keys of a recorded run alone; of Chakra's files and of text, where nothing was recorded; of some.
FACTS: Mapping[str, Any] = {
    **_each("clocks waits settings header", _OBJECT),
    **_each("host_step_ms gpu_busy", _MAYBE),
    **_each("recorded_ms recorded_call_ms compute_ms", TIME),
    **_each("nodes host_wrappers", _COUNT),
    "step": int | None,
    "steps": _WHOLE,
    "unmatched": list[Any],
    "coarsening": dict[str, float],
    "inside_servers": {"calls": _COUNT, "size_bytes": TIME},
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
BUYING: Mapping[str, Any] = {
    "finding": str,
    "details": dict[str, str],
    "complete": bool,
    "networks": [_NETWORK],
    **_each("left_out caveats", _NAMES),
}
# Keys of an answer that compares, that has break-even points, and that has a tornado.
COMPARED: Mapping[str, Any] = {
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
    **_each("port_gbps delay_ms", TIME),
    "ports": _COUNT,
    "complete": bool,
    "lead": _MAYBE,
    "times_ms": dict[str, TIME],
}
CLAIMS: Mapping[str, Any] = {"finding": str, "claims": [_CLAIM], "cells": [_CELL]}
RAIL_RUN: Mapping[str, Any] = {
    **_each("iteration_ms undisturbed_ms stall_ms", TIME),
    **_each("reconfigurations messages_sent", _COUNT),
    "circuits": [{"group": str, **_each("setup_ms start_ms end_ms", float), "changed": bool}],
    "messages": [{"at_ms": float, **_each("from to word group note", str)}],
}
LAB_KEYS: Mapping[str, Any] = {
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
