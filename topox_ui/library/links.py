"""The page state that shows a run of a study: such a run was kept without one, and its settings say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from topox_core.library.record import RunRecord
from topox_core.schedule.settings import Settings
from topox_ui.state.page_state import word_of
from topox_ui.state.scenario import ALGORITHM_WORDS, CLUSTER, LOWERING, PARAMETER, Scenario

# Settings of a solve that the state has under the same name.
_SOLVE = (
    "circuits",
    "share_circuits",
    "exclusive_devices",
    "any_port",
    "clock",
    "iteration",
    "switching",
)
_OPEN = ("auto", "default")


def query_of(record: RunRecord) -> dict[str, str]:
    """Return the query of the link that shows a run: the one that it was kept with, else what its settings say."""
    if record.link:
        return dict(parse_qsl(record.link))
    if record.kind not in ("fabric", "schedule"):
        return {}
    subject = record.settings.get("subject")
    return {**_source(subject), **_what_ifs(record.settings)} if isinstance(subject, dict) else {}


def _source(subject: Mapping[str, Any]) -> dict[str, str]:
    kind, parameters = subject.get("kind"), subject.get("parameters") or {}
    if kind == "sample":
        return {"sample": str(subject.get("name"))}
    if kind in ("workload", "job"):
        name = subject.get("generator") or subject.get("name")
        return {"workload": str(name)} | {
            PARAMETER + key: word_of(value) for key, value in parameters.items()
        }
    return {}


def _what_ifs(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return what a state must say beside its source; settings that hold anyway are left out."""
    usual, found = Settings.of(), dict[str, Any]()
    for name in CLUSTER:
        if (value := settings.get(f"cluster.{name}")) is not None:
            found[name] = value
    if settings.get("settings.model") == "paper":
        found["model"] = "paper"
    for name in _SOLVE:
        value = settings.get(f"settings.{name}")
        if value is not None and value != getattr(usual, name):
            found[name] = value
    for name in (*LOWERING, *ALGORITHM_WORDS):
        value = settings.get(f"lowering.{name}")
        if value is not None and value not in _OPEN and value is not True:
            found[name] = value
    # Parameters of a generator that a study varies are part of its source.
    for prefix in ("workload.", "job."):
        found |= {
            PARAMETER + key.removeprefix(prefix): value
            for key, value in settings.items()
            if key.startswith(prefix)
        }
    return {key: word_of(value) for key, value in found.items() if Scenario.owns(key)}
