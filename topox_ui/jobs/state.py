"""What can be chosen on the page Sharing."""

from collections.abc import Collection
from typing import Annotated, ClassVar

from topox_core.errors import InputError
from topox_core.model.quantities import SMALL_COUNTS
from topox_core.schema.fields import fields_of, setting
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.mixes.deployment import SetUp
from topox_core.tdm.model.jobs import Jobs, PodNetwork, Reading
from topox_core.tdm.model.jobs_file import JOB_SAMPLES
from topox_core.workloads.samples import SAMPLES
from topox_ui.state.loading import loaded, opened_by_itself
from topox_ui.state.session import Index, Lasting, PageState, as_in

OWN_JOBS = Lasting[Jobs]("jobs_upload")
JOB = "job"
COPY = "#{}"  # what copies of the loaded job are called, whose name may be long
SOURCES = {
    JOB: "your job",
    "sample": "a sample",
    "generator": "the paper’s set-up",
    "graphs": "task graphs",
    "upload": "your own file",
}
# Without time division is what all others stand beside.
OFFERED = tuple(name for name in ALGORITHMS if name != "non-tdm")
ACROSS = {"jobs": "number of jobs", "context": "context length"}
SECTIONS = {
    "links": "Links between pods",
    "groups": "Pod groups",
    "search": "How it was found",
    "study": "Gain over many jobs",
    "jobs": "Every job",
}
# What is changed about the network, and of which field of it.
NETWORK = {
    "ports": "ports_per_pod",
    "port_gbps": "port_gbps",
    "reconfiguration_ms": "reconfiguration_ms",
}
FIRST = "overlap"  # two jobs, so that who has never seen any sees what taking turns is
OF_SOURCE = (*NETWORK, "pod_group", "stage", "ring", "pod", "pod_stage")
Name = Annotated[str, setting(max_length=400)]


class JobsState(PageState):
    """Where the jobs come from, what is changed about the network, who shares the fabric, and what is in view.

    ``ports``, ``port_gbps`` and ``reconfiguration_ms`` are None where the file's value holds;
    ``pod_group`` is -1 for the one that lasts longest; ``ring`` is the job whose ring is drawn, all
    if empty; ``pod_stage`` is the stage that fills the axis of one pod, -1 for the whole round; ``see`` is the
    section below the first screen. ``partner`` is the sample that the reader's job shares with, itself if empty.
    """

    prefix = "jobs."
    resets: ClassVar = dict.fromkeys(("source", "sample", "partner"), OF_SOURCE)

    source: Annotated[str, setting(choices=SOURCES)] | None = None
    sample: Annotated[str, setting(choices=JOB_SAMPLES)] = FIRST
    partner: Annotated[str, setting(choices=("", *SAMPLES))] = ""
    jobs: Annotated[int, as_in(SetUp, "jobs")] = SetUp.jobs
    context: Annotated[int, as_in(SetUp, "context")] = SetUp.context
    seed: Annotated[int, setting("Seed", ge=0, le=1_000_000)] = SetUp.seed
    graphs: tuple[Annotated[str, setting(choices=SAMPLES)], ...] = ("llama3-8b", "moe", "fsdp")
    copies: Annotated[int, setting(ge=1, le=64, steps=SMALL_COUNTS)] = 2

    ports: Annotated[int, as_in(PodNetwork, "ports_per_pod")] | None = None
    port_gbps: Annotated[float, as_in(PodNetwork, "port_gbps")] | None = None
    reconfiguration_ms: Annotated[float, as_in(PodNetwork, "reconfiguration_ms")] | None = None
    algorithm: Annotated[str, setting(choices=OFFERED)] = "best"
    eq3_literal: Annotated[bool, as_in(Reading, "eq3_literal")] = Reading.eq3_literal
    physical_ring: Annotated[bool, as_in(Reading, "physical_ring")] = Reading.physical_ring
    delay_inside: Annotated[bool, as_in(Reading, "delay_inside")] = Reading.delay_inside

    pod_group: Annotated[int, setting(ge=-1, le=1_000_000)] = -1
    stage: Name = ""
    ring: Name = ""
    pod: Index | None = None
    pod_stage: Annotated[int, setting(ge=-1, le=1_000)] = -1
    see: Annotated[str, setting(choices=SECTIONS)] = "links"
    across: Annotated[str, setting(choices=ACROSS)] = "jobs"
    seeds: Annotated[int, setting(ge=1, le=100)] = 5

    @property
    def origin(self) -> str:
        """Where the jobs come from: as chosen, else the job that the reader loaded, else a sample."""
        if loaded() is None:
            return "sample" if self.source in (None, JOB) else self.source
        begins = JOB if self.sample == FIRST and not opened_by_itself() else "sample"
        return self.source or begins

    @property
    def reading(self) -> Reading:
        """How the drafts are read; a job of the reader's moves what a ring all-reduce really moves."""
        return Reading(
            self.eq3_literal, self.physical_ring or self.origin == JOB, self.delay_inside
        )

    @property
    def network(self) -> dict[str, float]:
        """What differs from the file's network, by its fields."""
        values = {name: getattr(self, field) for field, name in NETWORK.items()}
        return {name: value for name, value in values.items() if value is not None}

    def check(self) -> None:
        """Raise InputError where a file is named that is not here."""
        if self.source == "upload" and not OWN_JOBS.there:
            raise InputError("no file of jobs is loaded", field="source")

    def local(self) -> Collection[str]:
        """Return everything for an upload: it stays on the machine that it was made on."""
        return fields_of(JobsState) if self.source == "upload" else ()
