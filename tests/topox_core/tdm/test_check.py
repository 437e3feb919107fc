"""The checker of rounds: right rounds hold, and whatever is changed in one is named with its equation."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.conftest import some
from tests.topox_core.check.broken_schedules import broken
from tests.topox_core.tdm.tdm_cases import random_jobs
from topox_core.check.round import check_round, demands
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.model.jobs import (
    DRAFT,
    PUSH,
    Cycle,
    Job,
    Jobs,
    PodNetwork,
    Reading,
    Round,
    RoundBound,
    RoundForm,
    TdmSettings,
)
from topox_core.tdm.model.jobs_file import validated
from topox_core.tdm.model.rounds import round_of
from topox_core.tdm.model.traffic import StageTable

READINGS = (
    Reading(),
    Reading(eq3_literal=True),
    Reading(physical_ring=True),
    Reading(delay_inside=True),
)
FORMS = {
    "the drafts' four phases": DRAFT,
    "all-train phases": RoundForm(all_train=True),
    "a barrier for each pod group": RoundForm(per_pod_group=True),
    "both": RoundForm(all_train=True, per_pod_group=True),
    "three groups": RoundForm(3, all_train=True, per_pod_group=True),
    "one group": RoundForm(1, all_train=True),
    "static": RoundForm(static=True),
}


@cache
def made(seed: int, form: str, reading: Reading = READINGS[0]) -> Round:
    """A round of random groups; every phase can be dark, and every pod is in reach of every other."""
    groups = FORMS[form].groups
    jobs = random_jobs(seed, most_jobs=7, pods=4, reconfiguration_ms=500.0)
    group = [random.Random(seed + n).randrange(groups) for n in range(len(jobs))]
    return round_of(StageTable(jobs, reading), group, FORMS[form])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reading", READINGS)
def test_a_right_round_holds_to_every_equation(form: str, reading: Reading) -> None:
    for seed in some(range(8), quick=3):
        answer = made(seed, form, reading)
        report = check_round(answer)
        assert report.lines() == ()
        assert {"1", "2", "3", "6", "7", "reconfiguration", "bound"} <= set(report.equations)


def changed(values: np.ndarray, position: tuple[int, ...], by: float) -> np.ndarray:
    copy = values.copy()
    copy[position] += by
    return copy


def in_phase(answer: Round, position: int, **changes: float) -> Round:
    first, *rest = answer.cycles
    phases = list(first.phases)
    phases[position] = replace(phases[position], **changes)
    return replace(answer, cycles=(replace(first, phases=tuple(phases)), *rest))


def busiest(answer: Round) -> tuple[int, ...]:
    """Return the pod group, group and pair that take the longest, so that a link less there is felt."""
    inter, _ = demands(answer)
    seconds = np.divide(inter, answer.links, out=np.zeros_like(inter), where=answer.links > 0)
    return tuple(int(n) for n in np.unravel_index(int(seconds.argmax()), seconds.shape))


def with_ring(answer: Round, change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Round:
    n = next(n for n, ring in enumerate(answer.rings) if len(ring) > 2)
    return replace(
        answer, rings=(*answer.rings[:n], change(answer.rings[n]), *answer.rings[n + 1 :])
    )


MUTATIONS: dict[str, tuple[Callable[[Round], Round], str]] = {
    "a job in the other group": (
        lambda a: replace(a, group=(1 - a.group[0], *a.group[1:])),
        "demand is served in the time claimed",
    ),
    "a job in no group": (
        lambda a: replace(a, group=(7, *a.group[1:])),
        "every job is in one group",
    ),
    "a job forgotten": (lambda a: replace(a, group=a.group[1:]), "everything is there"),
    "a ring that misses a pod": (
        lambda a: with_ring(a, lambda ring: ring[1:]),
        "a ring is one ring",
    ),
    "a ring with a subtour": (
        lambda a: with_ring(a, lambda ring: (ring[0], ring[1], *ring[:-2])),
        "a ring is one ring",
    ),
    "a ring elsewhere": (
        lambda a: with_ring(a, lambda ring: (*ring[:-1], 9)),
        "a ring is one ring",
    ),
    "a ring for an all-to-all": (
        lambda a: replace(a, rings=tuple(ring or (0, 1) for ring in a.rings)),
        "a ring is one ring",
    ),
    "a link less on the slowest pair": (
        lambda a: replace(a, links=changed(a.links, busiest(a), -1)),
        "demand is served in the time claimed",
    ),
    "more links than ports": (
        lambda a: replace(a, links=changed(a.links, (0, 0, 0, 1), 99)),
        "ports of a pod",
    ),
    "a negative link": (
        lambda a: replace(a, links=changed(a.links, (0, 0, 0, 1), -9)),
        "links are whole numbers between two pods",
    ),
    "a link to itself": (
        lambda a: replace(a, links=changed(a.links, (0, 0, 2, 2), 1)),
        "links are whole numbers between two pods",
    ),
    "half a link": (
        lambda a: replace(a, links=changed(a.links.astype(float), busiest(a), 0.5)),
        "links are whole numbers between two pods",
    ),
    "links of another fabric": (
        lambda a: replace(a, links=a.links[:, :, 1:, 1:]),
        "everything is there",
    ),
    "a push claimed faster": (
        lambda a: replace(a, communication_s=a.communication_s * 0.999),
        "demand is served in the time claimed",
    ),
    "a push claimed slower": (
        lambda a: replace(a, communication_s=a.communication_s + 1e-4),
        "demand is served in the time claimed",
    ),
    "a phase that starts late": (
        lambda a: in_phase(a, 1, start_s=a.cycles[0].phases[1].start_s + 0.1),
        "phases follow one another",
    ),
    "a phase that ends early": (
        lambda a: in_phase(a, 0, end_s=a.cycles[0].phases[0].end_s - 0.1),
        "length of a phase",
    ),
    "a last phase cut short": (
        lambda a: in_phase(a, 3, end_s=a.cycles[0].phases[3].end_s - 1e-3),
        "length of a phase",
    ),
    "a last phase drawn out": (
        lambda a: in_phase(a, 3, end_s=a.cycles[0].phases[3].end_s + 1e-3),
        "length of a phase",
    ),
    "no reconfiguration": (
        lambda a: in_phase(a, 1, dark_s=0.0),
        "reconfiguration where links change",
    ),
    "another reconfiguration": (
        lambda a: in_phase(a, 0, dark_s=0.75),
        "reconfiguration where links change",
    ),
    "a phase claimed to communicate less": (
        lambda a: in_phase(a, 2, communication_s=0.0),
        "length of a phase",
    ),
    "a phase claimed to hold less computing": (
        lambda a: in_phase(a, 2, computing_s=a.cycles[0].phases[2].computing_s * 0.5),
        "length of a phase",
    ),
    "a phase of nobody": (
        lambda a: in_phase(a, 0, group=-1),
        "every group pushes once, then pulls once",
    ),
    "a phase of a third group": (
        lambda a: in_phase(a, 0, group=2),
        "every group pushes once, then pulls once",
    ),
    "two pushes": (lambda a: in_phase(a, 2, way=PUSH), "every group pushes once, then pulls once"),
    "a way that is none": (
        lambda a: in_phase(a, 2, way=2),
        "every group pushes once, then pulls once",
    ),
    "no cycle": (lambda a: replace(a, cycles=()), "everything is there"),
    "a pod group without a barrier": (
        lambda a: replace(a, cycles=(Cycle((0,), a.cycles[0].phases),)),
        "every pod group follows one barrier",
    ),
    "a pod group with two barriers": (
        lambda a: replace(a, cycles=a.cycles * 2),
        "every pod group follows one barrier",
    ),
    "a bound above the round": (lambda a: replace(a, bound=RoundBound(a.round_s * 1.01)), "bound"),
    "an optimum above its bound": (
        lambda a: replace(a, bound=RoundBound(a.round_s * 0.9), status="optimal"),
        "bound",
    ),
    "no answer, and a round": (lambda a: replace(a, status="infeasible"), "bound"),
    "a static round with two topologies": (
        lambda a: replace(a, form=RoundForm(static=True)),
        "a static topology stays",
    ),
    "one group too few": (
        lambda a: replace(
            a,
            form=RoundForm(1),
            links=a.links[:, :1],
            communication_s=a.communication_s[:, :1],
        ),
        "every job is in one group",
    ),
}


@cache
def rounds_to_change() -> list[Round]:
    answers = [made(seed, "the drafts' four phases") for seed in range(30)]
    busy = [a for a in answers if min(p.computing_s for p in a.cycles[0].phases) > 0]
    rings = [a for a in busy if set(a.group) == {0, 1} and max(map(len, a.rings)) > 2]
    return some(rings, quick=3)


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_round_that_was_changed_is_caught_by_its_constraint(name: str) -> None:
    change, constraint = MUTATIONS[name]
    assert len(rounds_to_change()) > 2
    for answer in rounds_to_change():
        caught = broken(check_round(change(answer)))
        assert constraint in caught, f"{answer.jobs.name}: {caught}"


def cut(cycle: Cycle, position: int) -> Cycle:
    """A phase a hundredth shorter and all later ones earlier: contiguous, and yet too short."""
    off = 0.01 * (cycle.phases[position].end_s - cycle.phases[position].start_s)
    phases = (
        replace(
            phase,
            start_s=phase.start_s - off * (p > position),
            end_s=phase.end_s - off * (p >= position),
        )
        for p, phase in enumerate(cycle.phases)
    )
    return Cycle(cycle.pod_groups, tuple(phases))


@pytest.mark.parametrize("form", FORMS)
def test_time_taken_off_any_phase_is_caught(form: str) -> None:
    answer = made(3, form)
    for c, cycle in enumerate(answer.cycles):
        for position, phase in enumerate(cycle.phases):
            if phase.end_s - phase.start_s > 1e-6:
                cycles = (*answer.cycles[:c], cut(cycle, position), *answer.cycles[c + 1 :])
                assert "length of a phase" in broken(check_round(replace(answer, cycles=cycles)))


def test_a_parameter_server_trains_only_between_pull_and_push() -> None:
    """Eq. 3 as printed makes it train twice a round; the default round is too short for that, and the checker says so."""
    jobs = Jobs(
        "one",
        PodNetwork(1, 2, 2, 10.0, 100.0, 0.0),
        (Job("ps", "parameter_server", 0, (1, 1), 10.0, 7.0, server_pod=0),),
    )
    answer = round_of(StageTable(jobs, Reading()), [0])
    assert answer.round_s == pytest.approx(0.5 + 0.5 + 7.0)
    assert check_round(answer).ok
    literal = check_round(replace(answer, reading=Reading(eq3_literal=True)))
    assert "time to compute" in broken(literal)
    assert "computes 7 s after its push, and has 0 s" in " ".join(literal.lines())


def test_no_round_to_check() -> None:
    answer = replace(made(0, "static"), cycles=(), status="infeasible")
    assert "there is none to check (status infeasible)" in check_round(answer).lines()[0]


def test_a_right_round_of_many_years_holds() -> None:
    """A second of training beside stages of thirty years: the clock has no more digits for it, and that is no mistake."""
    rings = [
        Job("slow", "ring_all_reduce", 0, (1, 1), 4.999e8, 7.3, None),
        Job("quick", "ring_all_reduce", 0, (1, 1), 1.0, 0.1, None),
    ]
    jobs = validated("slow", PodNetwork(1, 2, 2, 1.0, 1e3, 0.5), rings, "test")
    for form in ("hill-climbing", "all-train", "three-groups"):
        assert check_round(solve(jobs, TdmSettings(form))).ok
