"""What time division is, said in the numbers of a round."""

from collections.abc import Sequence

from topox_core.tdm.model.jobs import NOBODY, Job, Phase, Round
from topox_core.tdm.model.rounds import cycle_in_view, members, numbered
from topox_core.text.numbers import plural, time


def in_turns(round_: Round, together: Round | None) -> str:
    """Return who sends while who computes, and what that is instead of.

    Parameters
    ----------
    together
        The round of the same jobs without time division, where ports suffice for one.
    """
    words = "Time division: groups of jobs use the circuits one after the other."
    cycle = cycle_in_view(round_, None)
    lanes = {group: members(round_, cycle, group) for group in range(round_.groups)}
    several, first = sum(map(bool, lanes.values())), _first_sent(round_)
    if several > 1 and first is not None and lanes[first.group]:
        computing = f" for {lasting(first.computing_s)}" if first.computing_s else ""
        others = [job for group, jobs in lanes.items() if group != first.group for job in jobs]
        words += (
            f" Here {_who(lanes[first.group], 'sends', 'send')} for {lasting(first.communication_s)} while "
            f"{_who(others, 'computes', 'compute')}{computing}; then "
            f"{'they change places' if several == 2 else 'the next group sends'}."
        )
        beside = together and _first_sent(together)
        if beside:
            words += (
                f" All at once they share the links and send for {lasting(beside.communication_s)}, all in step as in the "
                "paper; out of step they may lose less."
            )
    if round_.jobs.network.reconfiguration_ms and not any(
        phase.dark_s for one in round_.cycles for phase in one.phases
    ):
        words += (
            " No circuit changes between these stages, so the reconfiguration delay adds nothing."
        )
    return words


def _first_sent(round_: Round) -> Phase | None:
    stages = numbered(cycle_in_view(round_, None))
    return next((stage for _, stage in stages if stage.group != NOBODY), None)


def _who(jobs: Sequence[Job], one_does: str, several_do: str) -> str:
    """Return jobs with what they do: moe-0 sends; 20 jobs send."""
    if len(jobs) == 1:
        return f"{jobs[0].id} {one_does}"
    return f"{plural(len(jobs), 'job')} {several_do}"


def lasting(value_s: float) -> str:
    """Return a time given in s, in s also beyond two minutes: 41.2 s, 216 s."""
    return time(1000 * value_s)
