"""What goes beyond the drafts: exact for given rings, never worse than what it extends, the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from itertools import product
from pkgutil import iter_modules

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.topox_core.tdm.tdm_cases import GOLDEN_OPTIMUM_S, golden, random_jobs, small
from topox_core.errors import InputError
from topox_core.tdm import kernels
from topox_core.tdm.algorithms import combination, splits
from topox_core.tdm.algorithms.catalogue import ALGORITHMS
from topox_core.tdm.algorithms.splits import MOST_BUNDLES, bundles_around, bundles_of, subsets_of
from topox_core.tdm.bounds.round_bounds import bounded
from topox_core.tdm.kernels.ring_moves import better_rings
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.jobs import Job, Jobs, PodNetwork, Reading
from topox_core.tdm.model.round import DRAFT, Round, RoundForm, TdmSettings
from topox_core.tdm.model.rounds import round_s_of
from topox_core.tdm.model.stage_table import StageTable
from topox_core.tdm.solve import solve
from topox_core.warm_up import warm_up_jobs

EXTENDING = [name for name, entry in ALGORITHMS.items() if entry.extends and name != "milp"]


def run(jobs: Jobs, algorithm: str, **chosen: object) -> Round:
    return solve(jobs, TdmSettings(algorithm=algorithm, **chosen))  # type: ignore[arg-type]


def mixed(seed: int, jobs: int = 7) -> Jobs:
    return random_jobs(seed, most_jobs=jobs, pods=2 + seed % 4)


def shortest(jobs: Jobs, reading: Reading, form: RoundForm = DRAFT) -> float:
    table = StageTable(jobs, reading)
    every: Sequence[tuple[int, ...]] = list(product(range(form.groups), repeat=len(jobs)))
    return min(round_s_of(table, group, form) for group in every)


@pytest.mark.parametrize(
    "reading",
    [Reading(), Reading(eq3_literal=True), Reading(delay_inside=True), Reading(physical_ring=True)],
)
@pytest.mark.parametrize("seed", range(10))
def test_no_grouping_beats_the_best_grouping_for_its_rings(seed: int, reading: Reading) -> None:
    """Slow switches included: which stages change circuits is part of what is minimised."""
    jobs = mixed(seed)
    found = run(jobs, "best-grouping", reading=reading)
    assert found.round_s == pytest.approx(shortest(jobs, reading), rel=1e-9)
    assert found.status == "optimal"


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_no_grouping_beats_it_with_all_train_phases(seed: int, inside: bool) -> None:
    jobs, reading = mixed(seed), Reading(delay_inside=inside)
    assert run(jobs, "all-train", reading=reading).round_s == pytest.approx(
        shortest(jobs, reading, RoundForm(all_train=True)), rel=1e-9
    )


@pytest.mark.parametrize("seed", range(8))
def test_no_grouping_beats_it_with_a_barrier_for_each_pod_group(seed: int) -> None:
    jobs = mixed(seed)
    found = run(jobs, "barrier-per-pod-group")
    assert found.round_s == pytest.approx(
        shortest(jobs, Reading(), RoundForm(per_pod_group=True)), rel=1e-9
    )
    assert len(found.cycles) == jobs.network.pod_groups


@pytest.mark.parametrize("seed", range(6))
def test_no_three_groups_beat_the_three_groups_found(seed: int) -> None:
    jobs = random_jobs(seed, most_jobs=6, pods=4, reconfiguration_ms=0.0)
    least = shortest(jobs, Reading(), RoundForm(3, all_train=True, per_pod_group=True))
    assert run(jobs, "three-groups").round_s == pytest.approx(least, rel=1e-9)


@examples(10)
@given(st.integers(0, 10_000))
def test_nothing_is_worse_than_what_it_extends(seed: int) -> None:
    jobs = mixed(seed, 6)
    rounds = {
        name: run(jobs, name, starts=3, steps=300).round_s for name in ALGORITHMS if name != "milp"
    }
    for name in EXTENDING:
        assert rounds[name] <= rounds[str(ALGORITHMS[name].extends)] * (1 + 1e-9), name
    assert rounds["best"] <= min(
        rounds[name] for name in ("load-aware-rings", "multi-start", "annealing")
    ) * (1 + 1e-9)


@pytest.mark.parametrize("context", [8192, 131_072])
def test_nothing_is_worse_than_what_it_extends_where_jobs_are_bundled(
    context: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "MOST_BUNDLES", 8)
    jobs = deploy(SetUp(jobs=24, pod_groups=2, context=context, seed=3))
    rounds = {
        name: run(jobs, name, starts=3, steps=2_000).round_s
        for name in ALGORITHMS
        if name != "milp"
    }
    for name in EXTENDING:
        assert rounds[name] <= rounds[str(ALGORITHMS[name].extends)] * (1 + 1e-9), name
    assert any(subsets_of(StageTable(jobs), g).bundled for g in range(2))


def test_all_train_phases_pay_where_training_outlasts_communication() -> None:
    jobs = deploy(SetUp(jobs=32, pod_groups=4, context=131_072, seed=0))
    without, with_phases = run(jobs, "best-grouping"), run(jobs, "all-train")
    assert with_phases.round_s < 0.9 * without.round_s


def test_two_jobs_overlap_by_hand() -> None:
    """Each pushes 4 s and trains 4 s: one after the other 16 s, in two groups no second is lost."""
    network = PodNetwork(1, 2, 2, 100.0, 1e6, 0.0)
    jobs = Jobs(
        "two", network, tuple(Job(name, "ring_all_reduce", 0, (1, 1), 400.0, 4.0) for name in "ab")
    )
    assert run(jobs, "non-tdm").round_s == pytest.approx(2 * 8.0 + 2 * 4.0)
    found = run(jobs, "best-grouping")
    assert found.round_s == pytest.approx(16.0)
    assert sorted(found.group) == [0, 1]


@pytest.mark.parametrize("name", ["random", "multi-start", "annealing", "best-grouping", "best"])
def test_the_same_seed_gives_the_same_round(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "MOST_BUNDLES", 8)
    jobs = deploy(SetUp(jobs=24, pod_groups=2, seed=5))
    one, other = (run(jobs, name, seed=7, starts=3, steps=2_000) for _ in range(2))
    assert (one.group, one.rings, one.round_s) == (other.group, other.rings, other.round_s)


def test_random_groupings_differ_by_seed() -> None:
    jobs = deploy(SetUp(jobs=40, pod_groups=2, seed=5))
    assert run(jobs, "random", seed=1).group != run(jobs, "random", seed=2).group


def test_annealing_leaves_the_plateau_on_which_hill_climbing_stops() -> None:
    jobs = deploy(SetUp(jobs=64, pod_groups=4, seed=1))
    stuck, free = run(jobs, "hill-climbing"), run(jobs, "annealing", steps=10_000)
    assert free.round_s < 0.95 * stuck.round_s


def test_bundles_hold_every_job_once() -> None:
    jobs = deploy(SetUp(jobs=60, pod_groups=2, seed=3))
    table = StageTable(jobs)
    random = np.random.default_rng(0)
    group = random.integers(0, 2, len(jobs)).tolist()
    for g, members in enumerate(table.members):
        for bundles in (bundles_of(table, members), bundles_around(table, members, group, random)):
            assert len(bundles) <= MOST_BUNDLES
            assert sorted(n for bundle in bundles for n in bundle) == sorted(members), g
    for bundle in bundles:
        assert len({group[n] for n in bundle}) == 1


def test_the_table_of_subsets_is_that_of_single_stages() -> None:
    table = StageTable(small(3))
    subsets = subsets_of(table, 0)
    for subset in range(len(subsets.seconds)):
        assert subsets.seconds[subset] == pytest.approx(
            table.communication_s(0, list(subsets.members(subset)))
        )


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
    jobs = Jobs(
        "one",
        PodNetwork(1, 3, 4, 100.0, 1e6, 0.0),
        (Job("a", "ring_all_reduce", 0, (1, 1, 1), 100.0, 3.0),),
    )
    assert run(jobs, name, steps=50).round_s == pytest.approx(2 * (0.5 + 3.0))


@pytest.mark.parametrize(
    "name",
    ["best-grouping", "load-aware-rings", "annealing", "multi-start", "three-groups", "best"],
)
def test_asked_to_stop_they_answer_with_what_they_have(name: str) -> None:
    jobs = deploy(SetUp(jobs=60, pod_groups=2, seed=3))
    found = solve(jobs, TdmSettings(algorithm=name), lambda: True)
    assert found.stopped_by == "cancelled"
    assert np.isfinite(found.round_s)


def test_without_time_the_round_of_the_start_comes_back() -> None:
    jobs = deploy(SetUp(jobs=60, pod_groups=2, seed=3))
    found = run(jobs, "best-grouping", time_limit_s=0.0)
    assert found.stopped_by == "time_limit"
    assert found.round_s <= run(jobs, "non-tdm").round_s * (1 + 1e-9)


def test_too_few_ports_for_one_stage_may_be_enough_for_two() -> None:
    """Two rings of two pods need four ports in the pod they share; one after the other two are enough."""
    network = PodNetwork(1, 3, 2, 100.0, 1e6, 0.0)
    jobs = Jobs(
        "tight",
        network,
        (
            Job("a", "ring_all_reduce", 0, (1, 1, 0), 100.0, 1.0),
            Job("b", "ring_all_reduce", 0, (0, 1, 1), 100.0, 1.0),
        ),
    )
    with pytest.raises(InputError, match=r"pod 1 has 2 .* needs 4"):
        run(jobs, "non-tdm")
    assert run(jobs, "best-grouping").round_s == pytest.approx(4.0)
    assert run(jobs, "milp").round_s == pytest.approx(4.0)
    assert run(jobs, "best").round_s == pytest.approx(4.0)


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


def test_too_few_ports_for_two_groups_may_be_enough_for_three() -> None:
    """Three rings of two pods share pod 0, whose two ports hold one of them."""
    jobs = Jobs("tight", PodNetwork(1, 4, 2, 100.0, 1e6, 0.0), rings_through_pod_0(4))
    with pytest.raises(InputError, match=r"pod 0 has 2 ports and needs"):
        run(jobs, "barrier-per-pod-group")
    found = run(jobs, "three-groups")
    assert sorted(found.group) == [0, 1, 2]
    assert found.round_s == pytest.approx(2 * 3.0)


def test_a_round_outlives_bundles_of_which_none_fits_the_ports(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bundled by size, a ring through pods 0 and 1 joins one through 0 and 2; apart, as one flip leaves them, they fit."""
    monkeypatch.setattr(splits, "MOST_BUNDLES", 1)
    monkeypatch.setattr(splits, "FEWEST_BUNDLES", 1)
    jobs = Jobs("tight", PodNetwork(1, 3, 2, 100.0, 1e6, 0.0), rings_through_pod_0(3))
    monkeypatch.setattr(
        combination,
        "bundles_around",
        lambda table, members, group, random: bundles_of(table, members),
    )
    for name in ("best-grouping", "barrier-per-pod-group", "three-groups"):
        assert run(jobs, name).round_s == pytest.approx(4.0)


def test_the_best_of_all_needs_no_start_where_jobs_are_bundled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rings through pods 0 and 1 have to take turns with those through 0 and 2, and hill climbing cannot even begin."""
    monkeypatch.setattr(splits, "MOST_BUNDLES", 4)
    monkeypatch.setattr(splits, "FEWEST_BUNDLES", 4)
    rings = tuple(
        replace(ring, id=f"{ring.id} {volume}", volume_gbit=volume)
        for ring, volumes in zip(
            rings_through_pod_0(3), ((10.0, 11.0, 100.0), (15.0, 16.0, 200.0)), strict=True
        )
        for volume in volumes
    )
    jobs = Jobs("tight", PodNetwork(1, 3, 2, 100.0, 1e6, 0.0), rings)
    with pytest.raises(InputError, match="needs 4"):
        run(jobs, "hill-climbing")
    assert (
        run(jobs, "best").round_s
        == run(jobs, "all-train").round_s
        == pytest.approx(2 * (1.21 + 2.31))
    )


def test_better_rings_do_not_depend_on_the_unit_of_volumes() -> None:
    for seed in range(30):
        jobs = random_jobs(seed, pod_groups=1, pods=5, reconfiguration_ms=0.0)
        tiny = replace(
            jobs,
            jobs=tuple(replace(job, volume_gbit=job.volume_gbit * 2.0**-40) for job in jobs.jobs),
        )
        (long, laps), (short, same) = (
            better_rings(
                StageTable(mix).load(0), np.ones(len(mix), np.bool_), StageTable(mix).fabric
            )
            for mix in (jobs, tiny)
        )
        assert short == long * 2.0**-40
        assert (laps == same).all()


def test_too_few_ports_in_every_grouping_are_named() -> None:
    jobs = Jobs(
        "tight",
        PodNetwork(1, 3, 1, 100.0, 1e6, 0.0),
        (Job("a", "ring_all_reduce", 0, (1, 1, 1), 100.0, 1.0),),
    )
    for name in set(ALGORITHMS) - {"static"}:
        with pytest.raises(InputError, match=r"pod 0 has 1 .* needs 2"):
            run(jobs, name)


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
    with pytest.raises(InputError, match=words):
        solve(small(1), replace(TdmSettings(), **chosen))  # type: ignore[arg-type]


def test_every_algorithm_says_what_it_is() -> None:
    assert len({entry.title for entry in ALGORITHMS.values()}) == len(ALGORITHMS)
    assert all(
        entry.extends is None or entry.extends in ALGORITHMS for entry in ALGORITHMS.values()
    )
    for name in ALGORITHMS:
        assert run(small(2), name, steps=10).algorithm == name


def test_after_warming_up_no_method_compiles_anything_more() -> None:
    def compiled_versions() -> dict[str, int]:
        modules = [
            import_module(f"{kernels.__name__}.{module.name}")
            for module in iter_modules(kernels.__path__)
        ]
        return {
            f"{module.__name__}.{name}": len(value.signatures)
            for module in modules
            for name, value in vars(module).items()
            if hasattr(value, "signatures")
        }

    assert warm_up_jobs() > 0
    ready = compiled_versions()
    relaxed = f"{kernels.__name__}.relaxed"
    assert ready[f"{relaxed}.front"] and ready[f"{relaxed}.least_round_s"], "bounds are warm too"
    for name in ALGORITHMS:
        for jobs in (small(3), random_jobs(4)):
            bounded(run(jobs, name, steps=10))
    assert compiled_versions() == ready
