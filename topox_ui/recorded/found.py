"""What is computed of a recorded run, once a session: its steps, the chosen one, its task graph, its replays."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import streamlit as st

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.model.quantities import SPEEDS_GBPS
from topox_core.traces.checks import Check, checks_of
from topox_core.traces.importing import Imported, groups_of, import_run
from topox_core.traces.recorded.recorded_run import RecordedRun, RunStep, run_of, step_of
from topox_core.traces.recorded.steps import WHOLE_FILE, chosen_step
from topox_core.traces.recorded.windows import RecordedWindows, windows_of_step
from topox_core.traces.run_graph import RunGraph, StepTime, at_speed, free, replay_ms
from topox_core.traces.source import ImportSettings
from topox_core.traces.tasks import fitting_cluster, keep_inside_servers
from topox_ui.recorded.reading import LABELS, Opened
from topox_ui.recorded.state import RecordedState

HALVINGS = 10  # of the stretch between two usual speeds: three digits


@dataclass(frozen=True)
class RecordedStep:
    """One step of a run, with what follows from it.

    Attributes
    ----------
    settings
        As the command ``trace import`` has them, but for the network's speed: a slider that moves
        replays, and imports nothing.
    step
        As it was recorded: nothing in it depends on a network.
    imported
        The task graph and its report; None where it cannot be made, and ``refusal`` says why.
    """

    run: RecordedRun
    settings: ImportSettings
    steps: tuple[StepTime, ...]
    step: RunStep
    imported: Imported | None
    refusal: str = ""

    @property
    def graph(self) -> RunGraph:
        """The step as it was recorded."""
        return self.step.graph

    @property
    def number(self) -> int:
        """Of the step; -1 if the files name none."""
        return self.step.number

    @property
    def recorded_ms(self) -> float:
        """From the first begin to the last end over ranks."""
        return self.graph.recorded_ms

    @property
    def words(self) -> str:
        """Return the step in words."""
        return f"Step {self.number}" if self.number >= 0 else "The recording"

    @cached_property
    def free_ms(self) -> float:
        """How long it lasts with a network that takes no time."""
        if self.imported is not None:
            return float(self.imported.report["replay_ms"]["free_network"])
        return next(one.free_ms for one in self.steps if one.number == self.number)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Of the import, the worst first."""
        known = self.imported
        return known.checks if known is not None else checks_of(self.step)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be known besides, a sentence each."""
        known = self.imported
        if known is not None:
            return tuple(dict.fromkeys(known.report["warnings"]))
        return (*self.run.warnings, *self.step.warnings)

    @cached_property
    def groups(self) -> list[dict[str, object]]:
        """Ranks, calls, bytes and label of each group, the largest first."""
        return groups_of(self.graph.calls)

    @cached_property
    def windows(self) -> RecordedWindows:
        """Idle time of the network between one kind of traffic and the next."""
        return windows_of_step(self.step, self.settings.parallelism)

    def at_ms(self, gbps: float) -> float:
        """Return how long the step lasts at a network speed; only where there is a task graph."""
        return replay_ms(self.imported.run, at_speed(gbps))

    @cached_property
    def recorded_gbps(self) -> float | None:
        """The network speed of the recording: at it the replay takes as long. None where no usual speed does."""
        if self.imported is None:
            return None
        for (slow, slow_ms), (fast, fast_ms) in pairwise(sorted(self.curve)):
            if slow_ms >= self.recorded_ms >= fast_ms:
                for _ in range(HALVINGS):
                    middle = math.sqrt(slow * fast)
                    if self.at_ms(middle) > self.recorded_ms:
                        slow = middle
                    else:
                        fast = middle
                return float(f"{fast:.3g}")
        return None

    @cached_property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """The replayed time over the network's speed, (Gbit/s, ms)."""
        return tuple((gbps, self.at_ms(gbps)) for gbps in SPEEDS_GBPS)

    def cluster(self, gbps: float) -> Cluster:
        """Return the cluster that fits the task graph at a network speed."""
        return fitting_cluster(self.imported.graph, self.recorded_ms, gbps)

    def report(self, gbps: float) -> dict[str, object]:
        """Return the report of ``trace import`` at a network speed."""
        settings = replace(self.settings, nic_gbps=gbps)
        return import_run(self.run, settings, self.imported.graph.name).report


def found_of(opened: Opened) -> RecordedStep:
    """Return the chosen step of what was read.

    Raises
    ------
    InputError
        If the files are not of one recording, or hold no step in common.
    """
    now = RecordedState.now()
    symmetry = now.symmetry and len(opened.recordings) == 1
    run, steps = _run(opened, symmetry), _steps(opened, symmetry, now.gpus_per_server)
    # One that is not there is a link's, or of the run before.
    there = any(one.number == now.step for one in steps)
    number = chosen_step(run.ranks, now.step if there else "median")
    settings = ImportSettings(
        step=number,
        gpus_per_server=now.gpus_per_server,
        symmetry=symmetry,
        assume_gbps=now.assume_gbps,
        parallelism=dict(LABELS.get() or {}),
    )
    return _found(opened, settings)


# What a run is known by: the contents of its files; what it is read with: every setting.
_KEYS = {Opened: lambda one: one.key, ImportSettings: repr}


@st.cache_resource(
    scope="session", max_entries=2, show_spinner="Putting the ranks together", hash_funcs=_KEYS
)
def _run(opened: Opened, symmetry: bool) -> RecordedRun:
    return run_of(opened.recordings, ImportSettings(symmetry=symmetry))


@st.cache_resource(
    scope="session", max_entries=4, show_spinner="Replaying every step", hash_funcs=_KEYS
)
def _steps(opened: Opened, symmetry: bool, gpus_per_server: int) -> tuple[StepTime, ...]:
    run, rows = _run(opened, symmetry), list[StepTime]()
    for number in run.ranks[min(run.ranks)].numbers:
        if not all(number in one.numbers for one in run.ranks.values()):
            continue
        try:
            graph = step_of(run, ImportSettings(), number).graph
        except InputError:  # of this step alone; where it is chosen its line is shown
            continue
        keep_inside_servers(graph, gpus_per_server)
        rows.append(StepTime(number, graph.recorded_ms, replay_ms(graph, free)))
    return tuple(rows)


@st.cache_resource(scope="session", max_entries=4, show_spinner=False, hash_funcs=_KEYS)
def _step(opened: Opened, symmetry: bool, number: int) -> RunStep:
    return step_of(_run(opened, symmetry), ImportSettings(step=number))


@st.cache_resource(
    scope="session", max_entries=4, show_spinner="Making the task graph", hash_funcs=_KEYS
)
def _found(opened: Opened, settings: ImportSettings) -> RecordedStep:
    run, number = _run(opened, settings.symmetry), int(settings.step)
    steps = _steps(opened, settings.symmetry, settings.gpus_per_server)
    step, imported, refusal = _step(opened, settings.symmetry, number), None, ""
    try:
        name = f"recorded step {number}" if number != WHOLE_FILE else "recorded run"
        imported = import_run(run, settings, name)
    except InputError as error:
        refusal = str(error)
    return RecordedStep(run, settings, steps, step, imported, refusal)
