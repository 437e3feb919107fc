"""Sharing in words: what shares what, the finding, a round against others, why none fits."""

import math

from topox_core.fabrics.comparison.compare import EQUAL, same_time
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.algorithms.round_bounds import lower_bound
from topox_core.tdm.model.jobs import COLLECTIVES, Jobs, Round
from topox_core.tdm.model.round_words import lasting
from topox_core.tdm.search import ANY_ROUND
from topox_core.text.numbers import NBSP, capitalised, percent, plural, short
from topox_ui.jobs.solving import (
    AT_ONCE,
    Case,
    Rounds,
    soon,
)
from topox_ui.shell.charts import (
    escape,
)

UNREADABLE = 0.0005  # three digits cannot tell a round from a bound this close


def kicker(jobs: Jobs, title: str) -> str:
    """Return the line above the headline: what shares what."""
    network = jobs.network
    kinds = [
        plural(n, words.lower())
        for kind, words in COLLECTIVES.items()
        if (n := sum(job.collective == kind for job in jobs.jobs))
    ]
    pods = plural(network.pod_groups * network.pods_per_group, "pod")
    groups = f" in {plural(network.pod_groups, 'pod group')}" if network.pod_groups > 1 else ""
    return (
        f"Sharing · {escape(title)} · {pods}{groups}, each pod with "
        f"{plural(network.ports_per_pod, 'one-way port')} of {network.port_gbps:,g} Gbit/s · {', '.join(kinds)}"
    )


def all_of(jobs: Jobs) -> str:
    """Return all jobs in words: the job, both jobs, all 5 jobs."""
    return {1: "the job", 2: "both jobs"}.get(len(jobs), f"all {plural(len(jobs), 'job')}")


def finding(rounds: Rounds) -> str:
    """Return what time division brings, as a sentence made of the numbers."""
    together, paper, best = rounds.together, rounds.paper, rounds.best
    jobs, every = plural(len(best.jobs), "job"), all_of(best.jobs)
    takes = f"{a_or_an(rounds.unit)} takes <b>{lasting(best.round_s)}</b>"
    if together is None:
        return (
            f"{capitalised(every)} at once need <b>more ports</b> than there are. By time division they fit: {takes}; "
            f"{alone_in_words(rounds)}."
        )
    assert paper is not None  # hill climbing starts from all jobs at once
    if together.round_s <= 0:
        return f"<b>{jobs}</b> that neither compute nor communicate take <b>no time</b>."
    saves = rounds.saved
    if ALGORITHMS[best.algorithm].family == "baseline" or saves < -EQUAL:
        how = (
            "as long as"
            if same_time(best.round_s, together.round_s)
            else f"{about(abs(saves))} {'shorter' if saves > 0 else 'longer'} than"
        )
        return (
            f"{ALGORITHMS[best.algorithm].title}: {takes}, {how} with {every} at once; hill climbing takes "
            f"<b>{lasting(paper.round_s)}</b>; {alone_in_words(rounds)}."
        )
    if saves <= EQUAL:
        return (
            f"Time division gains <b>nothing</b> for these {jobs}: {takes} with all of them at once; "
            f"{alone_in_words(rounds)}. Nothing shorter by more than {percent(EQUAL)} was found."
        )
    shared = f"{taking_turns(rounds)}; all at once {lasting(together.round_s)}"
    if best.proved:
        any_round = best.bound.holds_for == ANY_ROUND.holds_for
        proved = "" if any_round else " with turns of this kind"
        return f"{shared}. Nothing shorter is possible{proved}."
    if best.gap <= UNREADABLE:
        return f"{shared}. With groups of this kind at most {lasting(best.round_s - best.bound_s)} can be saved."
    return f"{shared}. The best possible is at least {lasting(best.bound_s)}."


def in_model(rounds: Rounds, servers: int) -> str:
    """Return the finding on copies of a job that overlap, of which was spoken before: here they do not; ``servers`` of a pod."""
    together, best = rounds.together, rounds.best
    model = (
        "All below is <b>another model, without overlap</b>: a job first computes, then sends, over "
        f"{plural(best.jobs.network.ports_per_pod, 'one-way port')} of each "
        f"{'server' if servers == 1 else f'pod of {servers} servers, inside which data need none'}."
    )
    if not together or ALGORITHMS[best.algorithm].family == "baseline" or rounds.saved <= EQUAL:
        return f"{model} {finding(rounds)}"
    return (
        f"{model} Then an iteration takes <b>{lasting(best.round_s)}</b> by turns, {lasting(together.round_s)} all at once, "
        f"and {lasting(rounds.beside[0])} alone."
    )


def taking_turns(rounds: Rounds) -> str:
    """Return what taking turns costs the jobs: their time beside that of each alone, or of the longest where they differ."""
    best, alone_s = rounds.best, float(rounds.alone_s.max())
    cost = slowed(best.round_s / alone_s - 1)
    whose = "alone" if rounds.beside[1] == "alone" else "the longest of them alone"
    return (
        f"{capitalised(all_of(best.jobs))}, which first compute and then send, take <b>{lasting(best.round_s)}</b> "
        f"{a_or_an(rounds.unit)} by turns, <b>{f'{cost} longer' if cost else 'no longer'}</b> than {whose} ({lasting(alone_s)})"
    )


def a_or_an(unit: str) -> str:
    """Return an iteration or a round."""
    return f"{'an' if unit == 'iteration' else 'a'} {unit}"


def about(share: float) -> str:
    """Return a share in whole percent, in tenths below one: a ratio of two model times is no sharper."""
    return f"{short(round(100 * share, 0 if share >= 0.01 else 1))}{NBSP}%"


def slowed(share: float) -> str:
    """Return by how much sharing makes a time longer; empty where that is nothing."""
    return "" if share <= EQUAL else about(share)


def without_rings(words: str, jobs: Jobs) -> str:
    """Return what a bound says, of jobs of which none runs on a ring without a word on rings."""
    if any(job.collective == "ring_all_reduce" for job in jobs.jobs):
        return words
    return (
        words.replace(", any rings", "").replace(" and ring ", " ").replace(" and every ring", "")
    )


def alone_in_words(rounds: Rounds) -> str:
    """Return how long each job takes with the fabric to itself: alone, an iteration of each takes 40 s."""
    each, jobs, one = rounds.alone_s, rounds.best.jobs.jobs, a_or_an(rounds.unit)
    least, most = float(each.min()), float(each.max())
    if same_time(least, most):
        return f"alone, {one}{' of each' * (len(each) > 1)} takes {lasting(most)}"
    if len(jobs) == 2:
        first, second = (
            f"of {escape(job.id)} takes {lasting(float(s))}"
            for job, s in zip(jobs, each, strict=True)
        )
        return f"alone, {one} {first}, and {second}"
    return f"alone, they take {lasting(least)} to {lasting(most)}"


def title_of(algorithm: str) -> str:
    """Return what a round is called beside the others: that of the best of all methods by what they have in common."""
    return "Taking turns" if algorithm == "best" else ALGORITHMS[algorithm].title


def hill_climbing_differs(rounds: Rounds) -> bool:
    """Return whether the round of hill climbing is worth showing beside the best: another one, or the best itself."""
    paper, best = rounds.paper, rounds.best
    return paper is not None and (
        best.algorithm in AT_ONCE or not same_time(paper.round_s, best.round_s)
    )


def bound_figure(round_: Round) -> tuple[str, str, str]:
    """Return the bound as a key figure; what is left to gain where three digits cannot tell it from the round."""
    words = lasting(round_.bound_s)
    if not round_.proved and round_.gap <= UNREADABLE:
        left = lasting(round_.round_s - round_.bound_s)
        return "Still to gain", f"at most {left}", f"◐ lower bound {words}"
    below = "proved" if round_.proved else f"◐ {percent(round_.gap)} below what was found"
    return "Lower bound", words, below


def crowding(rounds: Rounds) -> str:
    """Return why all jobs at once have no round: the pod, its ports, and how many it needs."""
    error = rounds.crowded
    assert error is not None
    return f"All jobs at once: in {error.item}, {error.problem}."


def hopeless(case: Case) -> str:
    """Return whether any grouping could help, in words."""
    if not soon(case.jobs):
        return "Give the pods more ports on the left, or let another algorithm search for a time division that fits."
    bound = lower_bound(case.jobs, case.reading)
    if math.isinf(bound.round_s):
        return f"No time division can help: {bound.by}. Give the pods more ports on the left, or choose other jobs."
    return "Another time division may fit: choose another algorithm on the left, or give the pods more ports."


def against(length_s: float, rounds: Rounds, more: str = "") -> tuple[str, str, str]:
    """Return a time beside each job alone, or all at once where jobs differ: words, arrow, colour."""
    base_s, base = rounds.beside
    if base != "alone" and not rounds.together:
        return "fits with time division" + more, "off", "off"
    share = length_s / base_s - 1 if base_s else 0.0
    if abs(share) <= EQUAL:
        return f"as long as {base}{more}", "off", "off"
    return (
        (f"{about(-share)} shorter than {base}{more}", "down", "normal")
        if share < 0
        else (f"{about(share)} longer than {base}{more}", "up", "inverse")
    )
