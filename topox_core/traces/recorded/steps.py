"""Which step of a recording stands for the iteration, and what of each rank belongs to it.

An activity belongs to the step in which the host launched it, never to the one in which it ran: the
GPU may be a whole step behind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topox_core.errors import InputError, refuse_if
from topox_core.traces.recorded.kineto import ends_early
from topox_core.traces.recorded.recording import (
    Floats,
    Ints,
    Kernel,
    Recording,
    Scope,
    Step,
    Work,
    launch_us,
)
from topox_core.traces.run_graph import spans

# The step of a file that names none.
WHOLE_FILE = -1


@dataclass(frozen=True)
class StepOfRank:
    """What one rank did in one step; times in us of the file's clock.

    Attributes
    ----------
    lane
        Its activities that communicate nothing, of all streams, in order of start.
    entries
        Its communications in order of launch.
    begin_us, end_us
        From the first activity, or the end of the step before if that is later, to the last end.
    has_predecessor
        Whether the step before it is in the file.
    host_us
        How long the host's annotation lasts; NaN if there is none.
    told
        Waits that a host trace names: the scope, and the position in ``entries``.
    """

    recording: Recording
    number: int
    lane: Work
    entries: tuple[Kernel, ...]
    begin_us: float
    end_us: float
    has_predecessor: bool
    host_us: float
    told: tuple[tuple[Scope, int], ...] = ()


class RankSteps:
    """The steps of one rank's file.

    Attributes
    ----------
    numbers
        Those that are complete, in order of time.
    left_out
        Those that are not.
    """

    def __init__(
        self,
        recording: Recording,
        entries: Sequence[Kernel],
        told: Sequence[tuple[Scope, int]] = (),
    ) -> None:
        self.recording, self.entries = recording, tuple(entries)
        self._told = tuple(told)
        work = recording.work
        launched = work.launch_us if recording.has_launches else work.start_us
        self._known = recording.steps or (Step(WHOLE_FILE, -np.inf, np.inf),)
        self._begins = np.array([one.begin_us for one in self._known])
        self._ends = np.array([one.end_us for one in self._known])
        self._of_work = self._steps_of(launched)
        self._of_entry = self._steps_of(
            np.array(
                [one.launch_us if recording.has_launches else launch_us(one) for one in entries],
                np.float64,
            )
        )
        last = len(self._known) - 1
        activities = len(recording.work) + len(recording.kernels)
        few = 0 <= recording.unlaunched <= 0.01 * activities * recording.has_launches
        if recording.cut and not (recording.steps and few):
            raise ends_early(recording.file, recording.events)
        late = set() if self._known[0].number == WHOLE_FILE else self._incomplete(last)
        self.left_out = tuple(self._known[at].number for at in sorted(late))
        self.numbers = tuple(
            one.number
            for at, one in enumerate(self._known)
            if at not in late and (self._of_work == at).any()
        )
        if not self.numbers and recording.cut:
            raise ends_early(recording.file, recording.events)
        refuse_if((not self.numbers, "has no step with work on the GPU"), file=recording.file)

    def _steps_of(self, launched: Floats) -> Ints:
        """Return the position of the step of each launch, -1 for none."""
        at = np.searchsorted(self._begins, launched, side="right") - 1
        last = len(self._begins) - 1
        # What is launched between two annotations belongs to the first.
        inside = (at >= 0) & ((at < last) | (launched <= self._ends[np.clip(at, 0, last)]))
        return np.where(inside & ~np.isnan(launched), at, -1).astype(np.int64)

    def _ends_of(self, at: int) -> Floats:
        """Return the ends of all activities of a step, communications among them."""
        if at < 0:
            return np.zeros(0)
        calls = [self.entries[n].end_us for n in np.flatnonzero(self._of_entry == at)]
        return np.concatenate((self.recording.work.end_us[self._of_work == at], calls))

    def _incomplete(self, last: int) -> set[int]:
        """Return the positions of steps of which activities are absent.

        The last step of a file is incomplete if its last launch has no activity. Of a file that ends
        early it always is, as is every step that lacks more than one in a hundred.
        """
        recording = self.recording
        absent = self._steps_of(recording.unfinished_us)
        found = {last} if recording.cut else set()
        for at in range(last + 1) if recording.cut else (last,):
            lacking = recording.unfinished_us[absent == at]
            launched = recording.work.launch_us[self._of_work == at]
            if len(lacking) and (
                not len(launched)
                or float(lacking[-1]) > float(np.nanmax(launched))
                or (recording.cut and len(lacking) > 0.01 * len(launched))
            ):
                found.add(at)
        return found

    def step(self, number: int) -> StepOfRank:
        """Return one step of the file.

        Raises
        ------
        InputError
            If the file does not hold it.
        """
        recording = self.recording
        refuse_if(
            (number not in self.numbers, f"holds {_span(self.numbers)}"),
            file=recording.file,
            item=f"step {number}",
        )
        at = next(i for i, one in enumerate(self._known) if one.number == number)
        lane = recording.work.taken(np.flatnonzero(self._of_work == at))
        inside = np.flatnonzero(self._of_entry == at).tolist()
        entries = tuple(self.entries[n] for n in inside)
        place = {number: k for k, number in enumerate(inside)}
        told = tuple((scope, place[n]) for scope, n in self._told if n in place)
        before = self._ends_of(at - 1)
        first = min([*lane.start_us[:1].tolist(), *(e.start_us for e in entries)])
        begin = max(first, float(before.max())) if len(before) else first
        end = max([*lane.end_us.tolist(), *(e.end_us for e in entries), begin])
        known = self._known[at]
        return StepOfRank(
            recording,
            number,
            lane,
            entries,
            begin,
            end,
            len(before) > 0,
            known.end_us - known.begin_us if number != WHOLE_FILE else np.nan,
            told,
        )


def chosen_step(ranks: Mapping[int, RankSteps], choice: int | str) -> int:
    """Return the step that stands for the iteration.

    Parameters
    ----------
    ranks
        By rank.
    choice
        A number, ``last``, or ``median``: of the steps with a predecessor that every rank holds,
        the one that lasted as long as the median of the lowest rank.

    Raises
    ------
    InputError
        If no step is on all ranks, or the one asked for is not.
    """
    lowest = ranks[min(ranks)]
    if isinstance(choice, int):
        for one in ranks.values():
            one.step(choice)
        return choice
    common = [n for n in lowest.numbers if all(n in one.numbers for one in ranks.values())]
    if not common:
        for one in ranks.values():
            refuse_if(
                (
                    not set(one.numbers) & set(lowest.numbers),
                    f"holds {_span(one.numbers)}; no step is on all ranks",
                ),
                file=one.recording.file,
                item=f"step {lowest.numbers[0]}",
            )
        raise InputError("no step is on all ranks", file=lowest.recording.file)
    if choice == "last":
        return common[-1]
    lengths = sorted(
        (step.end_us - step.begin_us, step.number)
        for step in map(lowest.step, common)
        if step.has_predecessor
    )
    return lengths[(len(lengths) - 1) // 2][1] if lengths else common[0]


def _span(numbers: Sequence[int]) -> str:
    if list(numbers) == [WHOLE_FILE]:
        return "no steps, only one stretch of time"
    return f"step{'s' * (len(numbers) > 1)} {spans(numbers)}"
