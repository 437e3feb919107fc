"""The drafts' set-up: its constants, its draws, its placing, and what comes of it on the whole."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.conftest import some
from topox_core.errors import InputError
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.mixes.deployment import MODELS, SetUp, deploy
from topox_core.tdm.model.jobs import total_gbit
from topox_core.tdm.model.round import TdmSettings


def model_of(name: str) -> str:
    return name.split("-")[1]


@pytest.mark.parametrize(
    ("name", "gbit", "gpus", "seconds"),
    [
        ("1B", 78.72, 1, 7.75),
        ("3B", 205.44, 2, 10.11),
        ("8B", 678.4, 8, 8.35),
        ("90B", 5683.2, 64, 8.74),
    ],
)
def test_models_synchronise_table_iii_in_fp64_and_train_one_context_a_unit(
    name: str, gbit: float, gpus: int, seconds: float
) -> None:
    model = MODELS[name]
    assert model.sync_gbit == pytest.approx(gbit)
    assert model.gpus_per_unit == gpus
    assert SetUp().train_s(model) == pytest.approx(seconds, abs=0.005)
    assert SetUp(literal_eq8=True).train_s(model) == pytest.approx(gpus * SetUp().train_s(model))
    assert SetUp(context=131072).train_s(model) == pytest.approx(16 * SetUp().train_s(model))


def test_a_seed_gives_the_same_jobs_again_and_more_jobs_begin_with_fewer() -> None:
    many, few = deploy(SetUp(jobs=60, seed=3)), deploy(SetUp(jobs=20, seed=3))
    assert deploy(SetUp(jobs=60, seed=3)) == many
    assert many.jobs[:20] == few.jobs
    assert deploy(SetUp(jobs=20, seed=4)).jobs != few.jobs


def test_every_kind_size_and_degree_comes_about_as_often() -> None:
    jobs = [job for seed in range(2) for job in deploy(SetUp(jobs=500, seed=seed)).jobs]
    for counted, words in (
        (Counter(job.collective for job in jobs), 3),
        (Counter(model_of(job.id) for job in jobs), 4),
        (Counter(job.units for job in jobs), 15),
    ):
        assert len(counted) == words
        assert all(abs(count / len(jobs) - 1 / words) < 0.04 for count in counted.values())
    only = deploy(SetUp(jobs=30, mix=(0.0, 1.0, 0.0), degree_min=5, degree_max=5))
    assert {(job.collective, job.units) for job in only.jobs} == {("ring_all_reduce", 5)}


def test_a_job_goes_where_the_least_traffic_is() -> None:
    jobs = deploy(SetUp(jobs=100, seed=1))
    carried = np.zeros(32)
    for job in jobs.jobs:
        assert carried[job.pod_group] == carried.min()
        carried[job.pod_group] += total_gbit(job.collective, job.units, job.volume_gbit)


def test_the_first_job_of_a_pod_group_has_its_server_in_pod_0_and_its_units_around() -> None:
    first = next(
        job
        for job in deploy(SetUp(jobs=50)).jobs
        if job.collective == "parameter_server" and job.units <= 7
    )
    assert first.server_pod == 0
    # The server weighs as much as all units together: they go to the other pods, one each.
    assert first.units_per_pod == tuple(int(1 <= pod <= first.units) for pod in range(8))


def test_no_pod_holds_more_gpus_than_it_has() -> None:
    used = np.zeros((8, 8))
    for job in deploy(SetUp(jobs=400, pod_groups=8, gpus_per_pod=1200, seed=2)).jobs:
        used[job.pod_group] += np.array(job.units_per_pod) * MODELS[model_of(job.id)].gpus_per_unit
    assert 1100 < used.max() <= 1200


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"jobs": 0}, "settings, field jobs: must be from 1 to 20,000 (got 0)"),
        ({"jobs": 100_000}, "settings, field jobs: must be from 1 to 20,000 (got 100000)"),
        (
            {"degree_min": 5, "degree_max": 4},
            "settings, field degree_min: must be from 1 to 4 (got 5)",
        ),
        ({"context": 0}, "settings, field context: must be from 1 to 100,000,000 (got 0)"),
        ({"efficiency": 1.5}, "settings, field efficiency: must be at most 1 (got 1.5)"),
        (
            {"gpu_tflops": float("nan")},
            "settings, field gpu_tflops: must be a finite number (got nan)",
        ),
        (
            {"mix": (0.0, 0.0, 0.0)},
            "settings, field mix: must be three weights of at least 0, not all 0: parameter server, ring, "
            "all-to-all",
        ),
        (
            {"port_gbps": -1.0},
            "settings, field port_gbps: must be greater than 0 (got -1)",
        ),
        (
            {"pod_groups": 0},
            "settings, field pod_groups: must be from 1 to 16,384 (got 0)",
        ),
        (
            {"pod_groups": 10**12},
            "settings, field pod_groups: must be from 1 to 16,384 (got 1000000000000)",
        ),
        (
            {"pods_per_group": 100},
            "settings, field pods_per_group: must be from 1 to 64 (got 100)",
        ),
        (
            {"jobs": 100, "gpus_per_pod": 63},
            "units of 64 GPUs, each within one pod of 63",
        ),
    ],
)
def test_a_set_up_out_of_range_is_refused(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as caught:
        deploy(SetUp(**changes))
    assert line in str(caught.value)


def test_on_the_drafts_scale_hill_climbing_gains_and_greedy_splits_lose() -> None:
    """Means over some seeds at 8k and 512 jobs, wide around 18 to 29 % that were measured with two generators."""
    gains = []
    for seed in some(range(10), quick=1):
        jobs = deploy(SetUp(jobs=512, seed=seed))
        plain, split, climbed = (
            solve(jobs, TdmSettings(algorithm)).round_s
            for algorithm in ("non-tdm", "greedy", "hill-climbing")
        )
        gains.append((1 - climbed / plain, 1 - split / plain))
    climbing, splitting = np.mean(gains, axis=0)
    assert 0.12 < climbing < 0.40
    assert splitting < 0
