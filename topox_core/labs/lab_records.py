"""The entries of a lab file as pydantic checks them: types and ranges only; what they mean is checked in ``lab_file``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Short = Annotated[str, Field(max_length=80)]
Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e12, le=1e12)]
Least = Annotated[float, Field(allow_inf_nan=False, ge=0, le=1e12)]
FIGURES = (
    *("tasks", "hand_gantt", "gantt", "bound", "circuits", "topology_steps", "delay_curve"),
    *("two_lines", "windows", "cdf", "round", "all_rounds", "cost_bars", "tornado", "histogram"),
)
SLIDERS = ("time", "slot_ms", "delay_ms", "ports", "port_gbps", "size_mb", "degree")
CALLS = ("schedule", "compare", "topology", "tdm", "rails_count", "rails_delay", "cost")
RELATIONS = ("value", "difference", "ratio", "saving")


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=False)


class PlanRecord(_Record):
    """A row of the plan."""

    start: Least = Field(alias="from")
    end: Least = Field(alias="to")
    do: Annotated[str, Field(max_length=300)]


class LabRecord(_Record):
    """The head of the file; screens and instances are read one by one."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{1,39}$")]
    title: Annotated[str, Field(min_length=1, max_length=80)]
    language: Annotated[str, Field(pattern=r"^[a-z]{2}(-[A-Z]{2})?$")] = "en"
    minutes: Annotated[int, Field(ge=1, le=240)]
    author: Annotated[str, Field(max_length=120)] = ""
    needs: Annotated[list[Annotated[str, Field(max_length=60)]], Field(max_length=10)] = []
    goals: Annotated[list[Annotated[str, Field(max_length=200)]], Field(min_length=1, max_length=8)]
    notes: Annotated[str, Field(max_length=4000)] = ""
    plan: Annotated[list[PlanRecord], Field(max_length=40)] = []
    instances: dict[str, Any]
    screens: Annotated[list[Any], Field(min_length=1, max_length=40)]


class DrawnRecord(_Record):
    """An instance that a generator draws."""

    generator: str
    generator_version: Annotated[int, Field(ge=1)]
    seed: Literal["student", "class"] | Annotated[int, Field(ge=0, le=99_999_999)]


FileName = Annotated[
    str, Field(max_length=100, pattern=r"^(sample:[a-z0-9-]+|[A-Za-z0-9_-][A-Za-z0-9._-]*)$")
]


class NamedFiles(_Record):
    """Files of an instance, by what is in them."""

    graph: FileName | None = None
    cluster: FileName | None = None
    jobs: FileName | None = None
    windows: FileName | None = None
    parts: FileName | None = None


class FilesRecord(_Record):
    """An instance that is read from files."""

    files: NamedFiles


class SliderRecord(_Record):
    """A slider: its values, or from where to where in which steps."""

    key: Literal[SLIDERS]  # type: ignore[valid-type]
    start: Finite | None = Field(None, alias="from")
    end: Finite | None = Field(None, alias="to")
    step: Annotated[float, Field(allow_inf_nan=False, gt=0)] | None = None
    values: Annotated[list[Finite], Field(max_length=50)] | None = None


class ScreenRecord(_Record):
    """A screen; its questions are read one by one."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,29}$")]
    stage: Literal["play", "predict", "work", "reveal", "explain"]
    instance: str = ""
    text: Annotated[str, Field(max_length=1200)] = ""
    show: list[Literal[FIGURES]] = []  # type: ignore[valid-type]
    slider: SliderRecord | None = None
    questions: Annotated[list[Any], Field(max_length=8)]


class OptionRecord(_Record):
    """An option."""

    id: Annotated[str, Field(min_length=1, max_length=30)]
    text: Annotated[str, Field(min_length=1, max_length=200)]


class BandRecord(_Record):
    """A band of numbers that is one option."""

    below: Finite | None = None
    option: str = Field(alias="is")


class ValueRecord(_Record):
    """A key that is a value of the generator."""

    value: str


class CallRecord(_Record):
    """A key that one run of the core gives."""

    call: Literal[CALLS]  # type: ignore[valid-type]
    field: Annotated[str, Field(min_length=1, max_length=80)]
    fabric: Annotated[str, Field(max_length=30)] | None = None
    options: dict[str, Any] | None = Field(None, alias="with")
    against: dict[str, Any] | None = None
    relation: Literal[RELATIONS] = Field("value", alias="as")  # type: ignore[valid-type]
    bands: Annotated[list[BandRecord], Field(min_length=1, max_length=12)] | None = None


class ToleranceRecord(_Record):
    """How far a number may be off."""

    absolute: Least | None = None
    percent: Annotated[float, Field(allow_inf_nan=False, ge=0, le=100)] | None = None


class FeedbackRecord(_Record):
    """A sentence for one mistake."""

    say: Annotated[str, Field(min_length=1, max_length=300)]
    value: str | None = None
    option: str | None = None
    equation: str | None = None


class QuestionRecord(_Record):
    """A question."""

    id: Annotated[str, Field(pattern=r"^[A-Z][0-9]{1,2}$")]
    type: Literal["number", "choice", "multi", "order", "matrix", "schedule", "grouping", "text"]
    points: Annotated[float, Field(allow_inf_nan=False, ge=0, le=20)]
    text: Annotated[str, Field(min_length=1, max_length=800)]
    key: dict[str, Any] | None = None
    attempts: Annotated[int, Field(ge=1, le=20)] = 3
    vote: bool = False
    unit: Annotated[str, Field(max_length=12)] = ""
    digits: Annotated[int, Field(ge=0, le=6)] = 0
    options: Annotated[list[OptionRecord], Field(min_length=2, max_length=12)] = []
    tolerance: ToleranceRecord | None = None
    feedback: Annotated[list[FeedbackRecord], Field(max_length=8)] = []
    otherwise: Annotated[str, Field(max_length=300)] = ""
    rubric: Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=8)] = []
    least: Annotated[int, Field(ge=0)] = 0
    most: Annotated[int, Field(ge=1, le=4_000)] = 4_000
