"""What goes beyond the drafts, against brute force: exact where it says so, never worse than what it extends, repeatable."""

from dataclasses import replace
from importlib import import_module
from itertools import product
from pkgutil import iter_modules

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples, long_after
from tests.refusal import refusal
from tests.topox_core.tdm.tdm_cases import (
    GOLDEN_HILL_CLIMBING_S,
    GOLDEN_OPTIMUM_S,
    golden,
    laps,
    random_jobs,
    round_s_of,
    small,
)
from topox_core.errors import InputError
from topox_core.runs.executor import WorkerDied
from topox_core.tdm import exact, kernels
from topox_core.tdm.algorithms import combination
from topox_core.tdm.algorithms.catalogue import ALGORITHMS, solve
from topox_core.tdm.algorithms.combination import subsets_of
from topox_core.tdm.algorithms.round_bounds import bounded
from topox_core.tdm.kernels.ring_moves import better_rings
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs import (
    DRAFT,
    Job,
    Jobs,
    PodNetwork,
    Reading,
    Round,
    RoundForm,
    RoundTracePoint,
    TdmSettings,
)
from topox_core.tdm.model.jobs_file import validated
from topox_core.tdm.model.rounds import round_of
from topox_core.tdm.model.traffic import StageTable
from topox_core.warm_up import warm_up_jobs

READINGS = (
    Reading(),
    Reading(delay_inside=True),
    Reading(eq3_literal=True),
    Reading(physical_ring=True),
)


def run(jobs: Jobs, algorithm: str, **chosen: object) -> Round:
    return solve(jobs, TdmSettings(algorithm=algorithm, **chosen))  # type: ignore[arg-type]


def shortest(jobs: Jobs, reading: Reading, form: RoundForm) -> float:
    table = StageTable(jobs, reading)
    every = product(range(form.groups), repeat=len(jobs))
    return min(round_s_of(table, group, form) for group in every)


@pytest.mark.parametrize(
    ("algorithm", "form"),
    [
        ("best-grouping", DRAFT),
        ("all-train", RoundForm(all_train=True)),
        ("barrier-per-pod-group", RoundForm(per_pod_group=True)),
        ("three-groups", RoundForm(3, all_train=True, per_pod_group=True)),
    ],
)
@pytest.mark.parametrize("seed", long_after(5, range(12)))
def test_no_grouping_of_a_form_beats_the_one_found(
    seed: int, algorithm: str, form: RoundForm
) -> None:
    """Slow switches included, and ports that are too few for some groupings, or for all."""
    reading = READINGS[seed % len(READINGS)]
    jobs = random_jobs(
        seed,
        most_jobs=6,
        pods=2 + seed % 4,
        reconfiguration_ms=0.0 if algorithm == "three-groups" else None,
    )
    if seed % 3 == 1:
        jobs = replace(jobs, network=replace(jobs.network, ports_per_pod=4))
    least = shortest(jobs, reading, form)
    if least == np.inf:
        assert "infeasible" in refusal(run, jobs, algorithm, reading=reading)
    else:
        found = run(jobs, algorithm, reading=reading)
        assert found.round_s == pytest.approx(least, rel=1e-9)
        assert found.status == "optimal" or algorithm != "best-grouping"


def no_worse(jobs: Jobs, **chosen: object) -> None:
    rounds = {name: run(jobs, name, **chosen).round_s for name in ALGORITHMS if name != "milp"}
    for name, entry in ALGORITHMS.items():
        if entry.extends and name != "milp":
            assert rounds[name] <= rounds[entry.extends] * (1 + 1e-9), name
    others = [rounds[name] for name in ("load-aware-rings", "annealing")]
    assert rounds["best"] <= min(others) * (1 + 1e-9)


@examples(10)
@given(st.integers(0, 10_000))
def test_nothing_is_worse_than_what_it_extends(seed: int) -> None:
    no_worse(random_jobs(seed, most_jobs=6, pods=2 + seed % 4), steps=100)


def test_nothing_is_worse_than_what_it_extends_where_jobs_are_bundled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(combination, "MAX_BUNDLES", 6)
    jobs = deploy(SetUp(jobs=18, pod_groups=2, context=131_072, seed=3))
    no_worse(jobs, steps=1_000)
    assert any(subsets_of(StageTable(jobs), g, (0,) * len(jobs)).bundled for g in range(2))


@pytest.mark.parametrize("name", ["annealing", "best"])
def test_the_same_seed_gives_the_same_round(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combination, "MAX_BUNDLES", 8)
    jobs = deploy(SetUp(jobs=20, pod_groups=2, seed=5))
    one, other = (run(jobs, name, seed=7, steps=1_000) for _ in range(2))
    assert (one.group, one.rings, one.round_s) == (other.group, other.rings, other.round_s)


def test_annealing_leaves_the_plateau_on_which_hill_climbing_stops() -> None:
    jobs = deploy(SetUp(jobs=64, pod_groups=4, seed=1))
    stuck, free = run(jobs, "hill-climbing"), run(jobs, "annealing", steps=10_000)
    assert free.round_s < 0.95 * stuck.round_s


@examples(25)
@given(st.integers(0, 10_000))
def test_better_rings_are_rings_and_never_longer(seed: int) -> None:
    jobs = random_jobs(seed, pod_groups=1, pods=6)
    table = StageTable(jobs)
    seconds, laps = better_rings(table.load(0), np.ones(len(jobs), np.bool_), table.fabric)
    everyone = tuple(range(len(jobs)))
    assert seconds <= table.communication_s(0, everyone) * (1 + 1e-9)
    rings = {
        n: tuple(int(pod) for pod in lap[lap >= 0])
        for n, lap in enumerate(laps)
        if (lap >= 0).any()
    }
    for n, ring in rings.items():
        assert tuple(sorted(ring)) == jobs.jobs[n].pods
    assert table.stage(0, everyone, rings).communication_s == pytest.approx(seconds)


def test_load_aware_rings_find_the_golden_optimum() -> None:
    """Two rings must change together there: neither gains anything alone."""
    assert run(golden(), "load-aware-rings").round_s == pytest.approx(GOLDEN_OPTIMUM_S, abs=1e-4)


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - {"static"}))
def test_one_job_alone_has_nothing_to_share(name: str) -> None:
    """And where its ports are too few, every method names the pod."""
    ring = Job("a", "ring_all_reduce", 0, (1, 1, 1), 100.0, 3.0)
    jobs = Jobs("one", PodNetwork(1, 3, 4, 100.0, 1e6, 0.0), (ring,))
    assert run(jobs, name, steps=50).round_s == pytest.approx(2 * (0.5 + 3.0))
    with pytest.raises(InputError, match=r"infeasible: pod 0 has 1 .* needs 2"):
        run(replace(jobs, network=replace(jobs.network, ports_per_pod=1)), name)


@pytest.mark.parametrize(
    "name", ["best-grouping", "load-aware-rings", "annealing", "three-groups", "best", "milp"]
)
def test_asked_to_stop_or_out_of_time_they_answer_with_what_they_have(name: str) -> None:
    jobs = small(1020) if name == "milp" else deploy(SetUp(jobs=60, pod_groups=2, seed=3))
    cancelled = solve(jobs, TdmSettings(algorithm=name), lambda: True)
    late = run(jobs, name, time_limit_s=0.0)
    assert (cancelled.stopped_by, late.stopped_by) == ("cancelled", "time_limit")
    assert max(cancelled.round_s, late.round_s) < np.inf


def rings_through_pod_0(pods: int) -> tuple[Job, ...]:
    return tuple(
        Job(
            f"r{n}",
            "ring_all_reduce",
            0,
            tuple(int(pod in (0, n)) for pod in range(pods)),
            100.0,
            1.0,
        )
        for n in range(1, pods)
    )


def test_the_best_of_all_needs_no_start_where_jobs_are_bundled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rings through pods 0 and 1 have to take turns with those through 0 and 2, and hill climbing cannot even begin."""
    monkeypatch.setattr(combination, "MAX_BUNDLES", 4)
    monkeypatch.setattr(combination, "FEWEST_BUNDLES", 4)
    rings = tuple(
        replace(ring, id=f"{ring.id} {volume}", volume_gbit=volume)
        for ring, volumes in zip(
            rings_through_pod_0(3), ((10.0, 11.0, 100.0), (15.0, 16.0, 200.0)), strict=True
        )
        for volume in volumes
    )
    jobs = Jobs("tight", PodNetwork(1, 3, 2, 100.0, 1e6, 0.0), rings)
    assert "needs 4" in refusal(run, jobs, "hill-climbing")
    assert (
        run(jobs, "best").round_s
        == run(jobs, "all-train").round_s
        == pytest.approx(2 * (1.21 + 2.31))
    )


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"algorithm": "tabu"}, "must be one of non-tdm"),
        ({"seed": -1}, "field seed"),
        ({"steps": -5}, "field steps"),
        ({"time_limit_s": float("nan")}, "time_limit_s"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(chosen: dict[str, object], words: str) -> None:
    assert words in refusal(solve, small(1), replace(TdmSettings(), **chosen))


def test_after_warming_up_no_method_compiles_anything_more() -> None:
    names = [f"{kernels.__name__}.{module.name}" for module in iter_modules(kernels.__path__)]
    values = [value for name in names for value in vars(import_module(name)).values()]
    compiled = [value for value in values if hasattr(value, "signatures")]
    warm_up_jobs()
    ready = [len(kernel.signatures) for kernel in compiled]
    for name in ALGORITHMS:
        bounded(run(random_jobs(4), name, steps=10))
    assert [len(kernel.signatures) for kernel in compiled] == ready


def proved(jobs: Jobs, reading: Reading | None = None) -> Round:
    found = solve(jobs, TdmSettings(algorithm="milp", reading=reading or Reading()))
    assert (found.status, found.stopped_by) == ("optimal", "proof")
    return found


def shortest_of_all(jobs: Jobs, reading: Reading) -> float:
    """The shortest round over all groupings and rings, each with the links of Algorithm 2, which are optimal."""
    table = StageTable(jobs, reading)
    return min(
        round_of(table, group, rings=dict(enumerate(rings))).round_s
        for group in product((0, 1), repeat=len(jobs))
        for rings in product(*map(laps, jobs.jobs))
    )


def few(seed: int) -> Jobs:
    """Four or fewer jobs on three or four pods, so that all rings can be tried, without reconfiguration time."""
    return random_jobs(
        seed,
        most_jobs=4,
        pod_groups=1 + (seed % 3 == 2),
        pods=3 + seed % 2,
        reconfiguration_ms=0.0,
    )


@pytest.mark.parametrize("seed", long_after(6, range(14)))
def test_no_grouping_and_no_ring_beats_the_exact_model(seed: int) -> None:
    """Under each reading, and where pod groups share a barrier."""
    reading = (Reading(), Reading(eq3_literal=True), Reading(physical_ring=True))[seed // 2 % 3]
    jobs = few(seed)
    assert proved(jobs, reading).round_s == pytest.approx(shortest_of_all(jobs, reading), rel=1e-6)


def test_the_golden_optimum_keeps_the_grouping_and_finds_other_rings() -> None:
    found = proved(golden())
    climbed = solve(golden(), TdmSettings(algorithm="hill-climbing"))
    assert climbed.round_s == pytest.approx(GOLDEN_HILL_CLIMBING_S, abs=1e-4)
    assert found.round_s == pytest.approx(GOLDEN_OPTIMUM_S, abs=1e-4)
    assert found.group == climbed.group
    assert found.rings != climbed.rings


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("seed", [1, 6])
def test_with_slow_switches_the_optimum_still_counts_every_change(seed: int, inside: bool) -> None:
    """Without a delay the round is shorter, and paying for it four times would be the same grouping's price at most."""
    jobs, reading = few(seed), Reading(delay_inside=inside)
    slow = replace(jobs, network=replace(jobs.network, reconfiguration_ms=800.0))
    free, charged = proved(jobs, reading).round_s, proved(slow, reading).round_s
    assert (
        free * (1 - 1e-6)
        <= charged
        <= min(free + 4 * 0.8, shortest_of_all(slow, reading)) * (1 + 1e-6)
    )


def test_links_kept_from_stage_to_stage_are_worth_more_than_the_fastest_ones_where_switching_is_slow() -> (
    None
):
    """A parameter server with a port more than it needs: four links up, or two each way for ever."""
    network = PodNetwork(1, 2, 4, 100.0, 1000.0, 5000.0)
    jobs = Jobs(
        "pair", network, (Job("ps", "parameter_server", 0, (0, 1), 100.0, 1.0, server_pod=0),)
    )
    found = proved(jobs)
    # Fastest: 4 links towards the server, a quarter of a second, and 2 changes of 5 s; kept: 2 and
    # 2 links, half a second.
    assert found.round_s == pytest.approx(0.5 + 0.5 + 1.0)
    assert np.array_equal(found.links[0, 0], found.links[0, 0].T)


def test_rings_of_many_pods_are_numbered_instead_of_cut() -> None:
    network = PodNetwork(1, 10, 4, 100.0, 1e6, 0.0)
    jobs = Jobs("wide", network, (Job("r", "ring_all_reduce", 0, (1,) * 10, 900.0, 1.0),))
    found = proved(jobs)
    assert sorted(found.rings[0]) == list(range(10))
    assert found.round_s == pytest.approx(2 * (900.0 / (2 * 100.0) + 1.0))


def test_bounds_and_rounds_that_it_tells_of_only_get_better() -> None:
    trace: list[RoundTracePoint] = []
    found = solve(golden(), TdmSettings(algorithm="milp"), on_trace=trace.append)
    rounds = [point.round_s for point in trace if point.round_s is not None]
    assert rounds == sorted(rounds, reverse=True)
    assert rounds[-1] == pytest.approx(found.round_s)
    assert all(point.bound_s <= found.round_s * (1 + 1e-9) for point in trace)


def test_a_solver_that_dies_leaves_the_round_of_the_other_methods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dies(*_arguments: object, **_options: object) -> float:
        raise WorkerDied("exit code 7")

    monkeypatch.setattr(exact, "call_in_worker", dies)
    answer, grouped = run(golden(), "milp"), run(golden(), "best-grouping")
    assert (answer.algorithm, answer.stopped_by) == ("milp", "time_limit")
    assert answer.round_s == grouped.round_s
    assert "worker process ended (exit code 7): the optimum is between" in answer.message


def test_a_model_too_large_is_refused_with_its_size_named() -> None:
    with pytest.raises(InputError, match=r"would have [\d,]+ columns \(limit 20,000\)"):
        solve(deploy(SetUp(jobs=256)), TdmSettings(algorithm="milp"))
    many = replace(golden(), jobs=golden().jobs[:1] * 100_000)
    assert "at most 500 jobs" in refusal(solve, many, TdmSettings(algorithm="milp"))


@pytest.mark.parametrize("volume_gbit", [1e-9, 1e-6])
def test_times_too_far_apart_for_the_solver_are_refused_or_left_to_other_methods(
    volume_gbit: float,
) -> None:
    network = PodNetwork(1, 4, 8, 150.0, 1200.0)
    jobs = [
        Job("a", "ring_all_reduce", 0, (1, 1, 1, 1), volume_gbit, 1e9),
        Job("b", "ring_all_reduce", 0, (1, 1, 1, 0), volume_gbit, 1e9),
    ]
    far = validated("far apart", network, jobs, "far")
    assert "times as long as the longest stage" in refusal(
        solve, far, TdmSettings(algorithm="milp", time_limit_s=5.0)
    )
    assert solve(far, TdmSettings(algorithm="best", time_limit_s=5.0)).round_s >= 1e9
