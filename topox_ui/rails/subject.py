"""What the Rails page is about (a job, a task graph as a fabric ran it, a list of windows), and its simulations."""

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar

import streamlit as st

from topox_core.errors import InputError, wrong_setting
from topox_core.rails.delay import (
    BOTH,
    RUN,
    UNDISTURBED,
    Answer,
    Question,
    Recorded,
    Running,
    Source,
    answer,
    iteration_of,
    simulation,
    windows_source,
)
from topox_core.rails.iteration import Rail, RailRun, Window
from topox_core.rails.measured import WINDOWS, WINDOWS_ITERATION_MS, WINDOWS_PROVENANCE
from topox_core.rails.presets import degrees_in_words
from topox_core.rails.technologies import BY_KEY, fits
from topox_core.rails.window_lengths import WindowList
from topox_core.rails.windows import Phase, strip, traffic_between
from topox_core.runs.cells import CellsResult, CellsRun
from topox_core.text.numbers import plural
from topox_core.training.job import Job, dump_job
from topox_ui.answers.contest import contest_of, run_all
from topox_ui.answers.solving import job_of
from topox_ui.rails.state import (
    JOB,
    MEASURED,
    SCENARIO,
    RailsState,
    last_end_ms,
    preset_of,
)
from topox_ui.runs.owner import RunKind, once, run_owner
from topox_ui.shell.charts import button
from topox_ui.shell.panel import run_note, run_panel
from topox_ui.state.loading import OWN_WINDOWS, loaded, scenario

Lane = tuple[int, int]


@dataclass(frozen=True)
class Pattern:
    """Windows and traffic of every lane (rank and rail) of a subject, switching taking no time.

    ``drawn_evenly``: a list gave no times, so that the traffic between its windows is drawn with
    equal widths.
    """

    windows: tuple[Window, ...]
    traffic: tuple[Phase, ...]
    iteration_ms: float
    drawn_evenly: bool = False

    @cached_property
    def lanes(self) -> list[Lane]:
        """Ranks and rails, in order."""
        return sorted(
            {(w.rank, w.rail) for w in self.windows} | {(s.rank, s.rail) for s in self.traffic}
        )

    @property
    def lane(self) -> Lane:
        """The lane that was chosen, or the first."""
        at = RailsState.now().lane
        return self.lanes[at if at < len(self.lanes) else 0]

    def of(self, lane: Lane) -> tuple[tuple[Phase, ...], tuple[Window, ...]]:
        """Return traffic and windows of one lane."""
        return (
            tuple(one for one in self.traffic if (one.rank, one.rail) == lane),
            tuple(one for one in self.windows if (one.rank, one.rail) == lane),
        )


@dataclass(frozen=True)
class Simulated:
    """A job with the rail it runs on, which is asked by questions (:func:`answered`, :func:`known`)."""

    job: Running
    rail: Rail
    title: str
    words: str
    note: ClassVar[str] = ""

    def undisturbed(self) -> Question:
        """Return the question of the run when switching takes no time: where the windows come from."""
        return Question(UNDISTURBED, self.job, self.rail)

    def switched(self, **changes: object) -> Question:
        """Return the question of the run on the rail as it is, or with some of it changed."""
        return Question(RUN, self.job, replace(self.rail, **changes))  # type: ignore[arg-type]

    def at(self, dark_ms: float) -> Question:
        """Return the question of both controls with another dark time."""
        return Question(BOTH, self.job, self.rail, dark_ms)

    @property
    def run(self) -> RailRun:
        """The run when switching takes no time, which is known once the page is drawn."""
        return known(self.undisturbed())

    @property
    def base_ms(self) -> float:
        """The iteration when switching takes no time."""
        return self.run.iteration_ms

    def both_ms(self, dark_ms: float) -> tuple[float, float] | None:
        """Return the iteration on demand and provisioned; None while they are not known."""
        return known(self.at(dark_ms))

    @property
    def stays(self) -> bool:
        """Whether no circuit changes, though the traffic may have windows."""
        return not self.run.reconfigurations

    @cached_property
    def pattern(self) -> Pattern:
        """Windows and traffic of the run."""
        run = self.run
        return once(
            "rail windows",
            str(hash(self.undisturbed().key)),
            lambda: Pattern(
                run.windows,
                strip(run.iteration, run.start_ms, run.end_ms, apart=True),
                run.iteration_ms,
            ),
        )

    @property
    def source(self) -> Source:
        """The job as what a delay study asks; raises InputError where it cannot be simulated."""
        run = simulation(self.job, self.at(0.0).key.rail)
        return Source(self.title, run.undisturbed_ms, run.both_ms)

    @property
    def inputs(self) -> dict[str, str]:
        """Digests of what it was made of, by kind: of a job that of its file."""
        if isinstance(self.job, Job):
            return {"job": hashlib.sha256(dump_job(self.job)).hexdigest()}
        return {"execution": self.job.key}

    @property
    def training(self) -> Job | None:
        """The training job, if it is one."""
        return self.job if isinstance(self.job, Job) else None


@dataclass(frozen=True)
class Listed:
    """A list of windows: its delay study is in closed form, of the lane that is in view."""

    content: WindowList
    title: str
    words: str
    note: str = ""
    training: ClassVar[Job | None] = None
    run: ClassVar[RailRun | None] = None
    stays: ClassVar[bool] = False

    @property
    def base_ms(self) -> float:
        """The iteration when switching takes no time."""
        return self.source.base_ms

    def both_ms(self, dark_ms: float) -> tuple[float, float]:
        """Return the iteration on demand and provisioned."""
        return self.source.both_ms(dark_ms)

    @cached_property
    def pattern(self) -> Pattern:
        """Windows and traffic, lane by lane."""
        content = self.content if self.content.timed else even(self.content)
        lanes = sorted({(one.rank, one.rail) for one in content.windows})
        traffic = [
            stretch
            for lane in lanes
            for stretch in traffic_between(
                [one for one in content.windows if (one.rank, one.rail) == lane],
                content.iteration_ms,
            )
        ]
        return Pattern(content.windows, tuple(traffic), content.iteration_ms, not content.timed)

    @cached_property
    def source(self) -> Source:
        """The windows of the lane in view, in series, as what a delay study asks."""
        lane = self.pattern.lane
        mine = [one.length_ms for one in self.content.windows if (one.rank, one.rail) == lane]
        return windows_source(self.content.iteration_ms, mine, self.title)


Subject = Simulated | Listed


def subject() -> Subject | None:
    """Return what was chosen; None while there is nothing (no task graph loaded, no list brought).

    Raises
    ------
    InputError
        If the choices do not go together.
    """
    now = RailsState.now()
    if preset_of(now.runs) is not None:
        job = now.job()
        now.check_switch(job)
        rail = Rail(nic_gbps=job.machine.network_gbps, latency_us=now.latency_us, **_control())
        return Simulated(job, rail, job.heading, degrees_in_words(job))
    if now.runs in (JOB, SCENARIO):  # a job that is gone leaves the graph that took its place
        return _of_scenario()
    if now.runs == MEASURED:
        return Listed(
            measured_list(), "Measured by the authors", "Llama 3 8B on 16 GPUs", WINDOWS_PROVENANCE
        )
    brought = OWN_WINDOWS.get()
    return None if brought is None else _of_file(brought)


def _of_file(brought: WindowList) -> Listed:
    """Return the reader's list, with the length of the iteration that the file or the reader gives."""
    words, given, end = (
        f"{plural(len(brought.windows), 'window')} of a file",
        RailsState.now().iteration_ms,
        last_end_ms(brought),
    )
    if given is None:
        open_end = brought.iteration_ms <= end + 1e-9
        return Listed(
            brought, brought.name, words + (", taken to end the iteration" if open_end else "")
        )
    if given < end - 1e-6:
        raise wrong_setting(
            "iteration_ms",
            f"must be at least {end:,.15g}, where the last window ends (got {given:,.15g})",
        )
    return Listed(replace(brought, iteration_ms=float(given)), brought.name, words)


def _control() -> dict[str, Any]:
    now = RailsState.now()
    return {
        "reconfiguration_ms": now.switch_ms,
        "link_up_ms": now.link_up_ms,
        "provisioned": now.control == "provisioned",
    }


def switches_needed(servers: int) -> int:
    """Return how many of the chosen switches the rail takes; 0 if none was chosen."""
    one = BY_KEY.get(RailsState.now().switch)
    return 0 if one is None else fits(one, servers, split=True)


def _of_scenario() -> Simulated | None:
    opened, now = loaded(), RailsState.now()
    if opened is None:
        return None
    fabric = now.fabric
    job = job_of(opened, scenario())
    contest = contest_of(job)
    runs, _ = run_all(job, replace(contest, fabrics=(fabric,)))
    run = runs[fabric]
    key = f"{job.key}|{contest.options}|{fabric}|{run.iteration_ms!r}"
    rail = Rail(nic_gbps=job.cluster.ports_per_server * job.cluster.port_gbps, **_control())
    return Simulated(
        Recorded(key, run.execution),
        rail,
        opened.title,
        f"{plural(job.cluster.servers, 'server')}, as run on: {contest.labels[fabric].lower()}",
    )


def measured_list() -> WindowList:
    """Return the authors' window list; it has no times, so windows stand where equal traffic between them would put them."""
    return even(WindowList("measured-by-the-authors", WINDOWS_ITERATION_MS, WINDOWS, False))


def even(listed: WindowList) -> WindowList:
    """Return a list without times with its windows apart: the rest of the iteration in equal parts between them."""
    rest = listed.iteration_ms - sum(max(0.0, one.length_ms) for one in listed.windows)
    part, at, placed = max(0.0, rest) / (len(listed.windows) + 1), 0.0, []
    for one in listed.windows:
        at += part
        placed.append(replace(one, begin_ms=at))
        at += max(0.0, one.length_ms)
    return replace(listed, windows=tuple(placed))


def lane_words(subject: Subject, lane: Lane) -> str:
    """Return the name of a lane: server 0, stage 0."""
    rank, rail = lane
    words = f"Server {rank}" if isinstance(subject, Simulated) else f"Rank {rank}"
    if subject.run is not None and subject.training is not None:
        iteration = subject.run.iteration
        stands = int(iteration.stands_for[rank])
        words = f"Stage {int(iteration.stage[rank])}" + (
            f", {plural(stands, 'server')} alike" if stands > 1 else ""
        )
    return words + (
        f", rail {rail}" if len({rail for _, rail in subject.pattern.lanes}) > 1 else ""
    )


# Nodes of an iteration: up to the first, a whole curve is simulated at once; up to the second, one
# run is.
CURVE_AT_ONCE, RUN_AT_ONCE = 700, 8_000
SOON_S = 2.5
RAILS = RunKind("rails", 4_000, cancelled="Stopped. Finished simulations are kept.")


@st.cache_resource(scope="session", show_spinner=False)
def _paces() -> dict[Running, float]:
    """Return how many seconds the last simulation of each job took in this session."""
    return {}


def known(question: Question) -> Any:
    """Return the answer that is there, if there is one: a run, or of both controls the iteration on demand and provisioned."""
    return run_owner().results(RAILS).get(question.key)


def refusal(question: Question) -> InputError | None:
    """Return why a question has no answer, if that is known."""
    return run_owner().refusals(RAILS).get(question.key)


def start(questions: Sequence[Question]) -> None:
    """Have what is not known answered beside the page; what runs for another setting is ended first."""
    owner, left = run_owner(), _left(questions)
    answers, refusals = owner.results(RAILS), owner.refusals(RAILS)

    def keep(result: CellsResult[Question, Answer]) -> str:
        note = ""
        for question, error in result.failures.items():
            if not isinstance(error, InputError):
                note = f"{error}. Try a smaller job."
                error = InputError(note)
            refusals[question] = error
        return note

    if left:
        # One process: it keeps the prepared iteration from one question to the next.
        key = attrgetter("key")
        owner.start(RAILS, left, lambda slots: CellsRun(left, key, answer, answers, slots), keep)


def _left(questions: Sequence[Question]) -> tuple[Question, ...]:
    """Return the questions that have neither an answer nor a reason why they have none."""
    owner = run_owner()
    answers, refusals = owner.results(RAILS), owner.refusals(RAILS)
    keys = (one.key for one in questions)
    return tuple(dict.fromkeys(key for key in keys if key not in answers and key not in refusals))


def simulated(questions: Iterable[Question]) -> bool:
    """Return whether one of the questions is being answered beside the page."""
    running: Any = run_owner().key(RAILS) or ()
    return not {one.key for one in questions}.isdisjoint(running)


def simulate(
    questions: Sequence[Question],
    doing: str,
    offer: str,
    key: str,
    draw: Callable[[Any], None] | None = None,
    begins: bool | None = None,
    icon: str = "play_arrow",
    **more: Any,
) -> bool:
    """Draw how far the simulation of questions is, or the button that starts it; return whether it goes on.

    Parameters
    ----------
    draw
        Draws what is there so far.
    begins
        Of the first screen, which says how the last run ended: whether this one begins by itself, unless it was stopped.
    """
    if begins and not run_owner().begun(RAILS, _left(questions)):
        start(questions)
    going = simulated(questions)
    if going:
        run_panel(RAILS, doing, draw, key)
    else:
        if begins is not None:
            run_note(RAILS)
        button(offer, key, icon, start, questions, **more)
    return going


def nodes_of(job: Running) -> int:
    """Return how many nodes a job's iteration has; raises InputError where there is none."""
    return once("rail nodes", str(hash(job)), lambda: len(iteration_of(job)[0]))


def at_once(questions: Sequence[Question]) -> bool:
    """Return whether questions of one job are answered before anybody would look for a progress bar."""
    job = questions[0].job
    pace_s = _paces().get(job)
    if pace_s is not None:
        return pace_s * len(questions) <= SOON_S
    return nodes_of(job) <= (RUN_AT_ONCE if len(questions) <= 2 else CURVE_AT_ONCE)


def answered(questions: Sequence[Question]) -> bool:
    """Have questions answered if that is quick; return whether all of them are. Raises InputError where one cannot be."""
    answers = run_owner().results(RAILS)
    left = [one for one in questions if one.key not in answers]
    for one in left:
        if (error := refusal(one)) is not None:
            raise error
    if not left:
        return True
    if not at_once(left):
        return False
    large = nodes_of(questions[0].job) > CURVE_AT_ONCE
    with st.spinner("Simulating the rail", show_time=True) if large else nullcontext():
        for one in left:
            began = time.monotonic()
            answers[one.key] = answer(one)
            _paces()[one.job] = time.monotonic() - began
    return True
