"""What can be chosen on the Rails page."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, ClassVar

from pydantic import Field

from topox_core.fabrics.registry import FABRICS
from topox_core.rails.presets import PRESETS
from topox_core.rails.technologies import TECHNOLOGIES
from topox_ui.state.page_state import PageState, one_of
from topox_ui.state.store import put, state_of

SCENARIO, MEASURED, UPLOAD = "scenario", "measured", "upload"
ANY = "any"
DEGREES = (
    "gpus",
    "tensor",
    "pipeline",
    "data",
    "context",
    "expert",
    "microbatches",
    "virtual_stages",
)
SCHEDULES = {"1f1b": "1F1B", "afab": "all forward", "interleaved": "interleaved"}
CONTROLS = {"on_demand": "on demand", "provisioned": "provisioned"}
SECTIONS = {
    "windows": "Windows",
    "control": "Control plane",
    "rivals": "Other ways to wire",
    "experts": "Expert parallelism",
    "bytes": "Bytes",
    "advice": "Which parallelism",
}
OF_SOURCE = (*DEGREES, "schedule", "lane", "from_ms", "to_ms", "nic_gbps", "iteration_ms")
Amount = Annotated[float, Field(ge=0, le=1e9)]
Whole = Annotated[int, Field(ge=0, le=10_000_000)]


class RailsState(PageState):
    """What runs, with which degrees, on which switch; None begins as the preset or the file has it."""

    prefix = "rails."
    resets: ClassVar = {
        "source": OF_SOURCE,
        **dict.fromkeys(DEGREES, ("lane", "from_ms", "to_ms")),
        "schedule": ("from_ms", "to_ms"),
    }

    source: Annotated[str, one_of((*PRESETS, SCENARIO, MEASURED, UPLOAD))] = "llama3-8b-perlmutter"
    gpus: Whole | None = None
    tensor: Whole | None = None
    pipeline: Whole | None = None
    data: Whole | None = None
    context: Whole | None = None
    expert: Whole | None = None
    microbatches: Whole | None = None
    virtual_stages: Whole | None = None
    schedule: Annotated[str, one_of(SCHEDULES)] | None = None
    nic_gbps: Amount | None = None
    iteration_ms: Amount | None = None

    delay_ms: Amount = 25.0
    link_up_ms: Amount = 0.0
    control: Annotated[str, one_of(CONTROLS)] = "provisioned"
    switch: Annotated[str, one_of((ANY, *(one.key for one in TECHNOLOGIES)))] = ANY
    split: bool = False
    limit: Amount = 5.0
    latency_us: Amount = 0.0
    fabric: Annotated[str, one_of(FABRICS)] = "scheduled"

    lane: Whole = 0
    from_ms: Amount | None = None
    to_ms: Amount | None = None
    see: Annotated[str, one_of(SECTIONS)] = "windows"
    authors: bool = True
    billions: Amount | None = None
    advice_gpus: Whole | None = None

    @property
    def degrees(self) -> dict[str, Any]:
        """The changed degrees and schedule of a preset."""
        return {k: v for k, v in self.choices().items() if k in (*DEGREES, "schedule")}

    def local(self) -> Collection[str]:
        """Return the source and what belongs to it where it is a file: it stays on the machine that it was loaded on."""
        return ("source", *OF_SOURCE) if self.source == UPLOAD else ()


def choices() -> RailsState:
    """Return this session's choices."""
    return state_of(RailsState)


def reset() -> None:
    """Forget every choice but the source."""
    put(RailsState(source=choices().source))
