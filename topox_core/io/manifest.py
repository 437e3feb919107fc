"""The manifest of a result: which program made it of which inputs, what was asked, how far it is proved, whose figures it has."""

from collections.abc import Mapping
from typing import Any

import msgspec

from topox_core.runs.identity import code_version

FORMAT, VERSION = "topox-manifest", 1
# What a bound of a schedule holds for, where a result does not say itself.
ANY_SCHEDULE = (
    "any schedule of this task graph on this cluster, whatever it chooses of what was left open"
)
CHECKER = "topox_core.check, which shares no code with what schedules"
# Keys of a result that say how far it is proved, and for what.
_VALIDITY = ("status", "stopped_by", "checked", "gap", "bound_by", "bound_for")


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a manifest says besides its format and version.

    Attributes
    ----------
    command
        What was asked: the words of a command, or the page.
    inputs
        Digests, by file or by kind.
    options
        What was chosen.
    figures
        By figure of a machine or a price: ``measured``, ``published``, ``assumed``, ...
    """

    program: str
    command: str
    inputs: dict[str, str]
    options: dict[str, Any]
    seed: int | None
    effort: str | None
    validity: dict[str, Any]
    figures: dict[str, str]


def manifest(
    record: Mapping[str, Any],
    command: str,
    inputs: Mapping[str, str],
    asked: Mapping[str, Any],
    figures_from: Mapping[str, str] | None = None,
    code: str = "",
) -> dict[str, Any]:
    """Return the manifest of a result as plain values; ``code``: the version that made it, by default the one that runs."""
    settings = record.get("settings")
    settings = settings if isinstance(settings, Mapping) else {}
    validity = {key: record[key] for key in _VALIDITY if key in record}
    if "bound_ms" in record:
        validity.setdefault("bound_for", ANY_SCHEDULE)
    if "checked" in record:
        validity["checked_by"] = CHECKER
    made = Manifest(
        program=f"topox-workbench {code or code_version()}",
        command=command,
        inputs=dict(inputs),
        options=dict(asked),
        seed=record.get("seed", settings.get("seed", asked.get("seed"))),
        effort=record.get("effort"),
        validity=validity,
        figures=dict(figures_from or {}),
    )
    return {"format": FORMAT, "version": VERSION, **msgspec.structs.asdict(made)}
