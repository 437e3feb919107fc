"""What can be chosen on the Rails page."""

import math
from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, create_model

from topox_core.errors import InputError, wrong_setting
from topox_core.fabrics.registry import FABRICS
from topox_core.rails.presets import PRESETS, changed, check_on_rail, settings_of
from topox_core.rails.technologies import TECHNOLOGIES, fits
from topox_core.text.numbers import plural
from topox_core.training.job import Job
from topox_ui.state.loading import loaded_job, own_job
from topox_ui.state.session import PageState, one_of, put

JOB, SCENARIO, MEASURED, UPLOAD = "job", "scenario", "measured", "upload"
AUTHORS_PRESET = "llama3-8b-perlmutter"
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
OF_DEGREES: Any = dict.fromkeys(DEGREES, (Whole | None, None))


class RailsState(create_model("Degrees", __base__=PageState, **OF_DEGREES)):  # type: ignore[misc, call-overload]
    """What runs, with which degrees, on which switch; None begins as the page, the preset or the file has it."""

    prefix = "rails."
    resets: ClassVar = {
        "source": OF_SOURCE,
        **dict.fromkeys(DEGREES, ("lane", "from_ms", "to_ms")),
        "schedule": ("from_ms", "to_ms"),
    }

    source: Annotated[str, one_of((*PRESETS, JOB, SCENARIO, MEASURED, UPLOAD))] | None = None
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
    def runs(self) -> str:
        """What runs: the source; while none was chosen the reader's job where it fits a rail, else the paper's."""
        if self.source is not None:
            return self.source
        own = own_job()
        return AUTHORS_PRESET if own is None or why_not(own) else JOB

    def changed(self, **changes: Any) -> Self:
        """Return the state with some choices made anew; what belongs to a source stays with it when another job is loaded."""
        own = not changes.keys().isdisjoint(OF_SOURCE)
        now = self.model_copy(update={"source": self.runs}) if own else self
        return super(RailsState, now).changed(**changes)

    @property
    def degrees(self) -> dict[str, Any]:
        """The changed degrees and schedule of a preset."""
        return {k: v for k, v in self.choices().items() if k in (*DEGREES, "schedule")}

    @property
    def product(self) -> int:
        """GPUs that the degrees make."""
        base = preset_of(self.runs)
        if base is None:
            return 0
        own = settings_of(base) | self.degrees
        return math.prod(int(own[name]) for name in ("tensor", "context", "pipeline", "data"))

    def job(self) -> Job:
        """Return the preset with the reader's degrees.

        Raises
        ------
        InputError
            If they do not go together.
        """
        base = preset_of(self.runs)
        assert base is not None, "only a preset or a training job has degrees"
        changes: dict[str, Any] = dict(self.degrees)
        if changes and "gpus" not in changes:
            changes["gpus"] = self.product
        if "tensor" in changes:
            changes["gpus_per_server"] = changes["tensor"]
        if changes.get("schedule") == "interleaved":
            changes.setdefault("virtual_stages", 2)
        elif "schedule" in changes:
            changes["virtual_stages"] = 1
        if self.nic_gbps:
            changes["nic_gbps"] = self.nic_gbps
        # A given iteration time belongs to the degrees it was measured with.
        if set(changes) & {*DEGREES, "schedule"} and base.schedule.iteration_ms is not None:
            changes["iteration_ms"] = None
        return changed(base, changes) if changes else base

    def check(self) -> None:
        """Raise InputError where a job's degrees do not go together, or its rail does not fit the chosen switch.

        A rail may be wider than the switch, or its rings may not fit a part of it.
        """
        # Whether the loaded job can be put on rails is for the page to say.
        if self.runs in PRESETS:
            self.check_switch(self.job())

    def check_switch(self, job: Job) -> None:
        """Raise InputError where a job's rail does not fit the chosen switch."""
        one = next((t for t in TECHNOLOGIES if t.key == self.switch), None)
        if one is None:
            return
        together, most = job.plan.context * job.plan.expert, one.radix // 2
        if fits(one, job.servers, split=self.split) > 1 and together > most:
            raise wrong_setting(
                "switch",
                f"groups of {together} servers do not fit the {most} that one switch of {one.name} joins, so the rail "
                "cannot be split",
            )

    def local(self) -> Collection[str]:
        """Return the source and what belongs to it where it is a file: it stays on the machine that it was loaded on."""
        return ("source", *OF_SOURCE) if self.source == UPLOAD else ()


def preset_of(source: str) -> Job | None:
    """Return the preset of a source, or the loaded training job; None of other sources.

    Raises
    ------
    InputError
        If the loaded job cannot be put on rails.
    """
    if source != JOB:
        return PRESETS.get(source)
    job = loaded_job()
    if job is not None:
        check_on_rail(job)
    return job


def why_not(job: Job | None) -> str:
    """Return why a loaded job cannot be put on rails; empty where it can."""
    if job is None:
        return "it is a task graph, which does not say what parallelism its GPUs have"
    try:
        check_on_rail(job)
    except InputError:
        tensor, gpus = job.plan.tensor, job.machine.gpus_per_server
        return f"tensor parallelism must fill a server on rails, and here it has {tensor} of {plural(gpus, 'GPU')}"
    return ""


def reset() -> None:
    """Forget every choice but the source."""
    put(RailsState(source=RailsState.now().source))
