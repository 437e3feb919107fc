"""What the library keeps of one run: what was computed, by which code, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FAILED = "failed"  # the status of a run that has no result
CARD = "card"  # the kind of an answer of a published card, which lists of runs leave out


@dataclass(frozen=True)
class RunRecord:
    """One run, as it is added to a library.

    Attributes
    ----------
    key
        SHA-256 (hex) of what was computed: inputs and settings, not the version of the code.
    version
        Which code computed it: :func:`topox_core.runs.identity.code_version`.
    kind
        ``fabric`` (one task graph on one fabric), ``schedule`` (one solve), ``rail``, ``round``
        (time division), ``bill`` (cost alone) or ``card`` (an answer of a published card).
    subject
        What was run, as people call it.
    graph
        Digest of the subject: task graph, jobs or preset.
    cluster
        Digest of the cluster; empty if there is none.
    settings
        Flat, keyed as in a study file: ``cluster.port_gbps``, ``fabric``, ``seed``.
    status
        The status word of a result (``optimal``, ``feasible``, ...), ``failed`` where there is none.
    measures
        Named as in a study file: ``iteration_ms``, ``gap``, ``dollars``; None where it has no value.
    message
        Why it failed, or what else must be known.
    name
        Given by the user.
    link
        Query string of the page state that shows it; empty where no page can.
    host
        The machine that computed it.
    started
        Seconds since the epoch.
    wall_s
        How long it took.
    result
        The result file as deflated JSON; None where only numbers were kept.
    """

    key: str
    version: str
    kind: str
    subject: str
    graph: str
    cluster: str
    settings: Mapping[str, Any]
    status: str
    stopped_by: str
    measures: Mapping[str, float | None]
    message: str = ""
    seed: int | None = None
    name: str = ""
    link: str = ""
    host: str = ""
    started: float = 0.0
    wall_s: float = 0.0
    result: bytes | None = None
