"""Jobs that share a fabric: their file, mistakes in it, and the drafts' set-up with its draws and its placing."""

import gzip
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.conftest import some
from tests.refusal import refusal
from tests.topox_core.tdm.tdm_cases import random_jobs
from topox_core.tdm.algorithms.catalogue import solve
from topox_core.tdm.mixes.deployment import MODELS, SetUp, deploy
from topox_core.tdm.model import jobs_file
from topox_core.tdm.model.jobs import Job, PodNetwork, TdmSettings, total_gbit
from topox_core.tdm.model.jobs_file import (
    JOB_SAMPLES,
    dump_jobs,
    load_job_sample,
    load_jobs,
    validated,
)

NETWORK: dict[str, Any] = {
    "pod_groups": 2,
    "pods_per_group": 4,
    "ports_per_pod": 8,
    "port_gbps": 150.0,
    "tor_gbps": 1200.0,
}


def ring(**changes: Any) -> dict[str, Any]:
    entry = {
        "id": "r",
        "collective": "ring_all_reduce",
        "pod_group": 0,
        "units_per_pod": [1, 1, 0, 2],
        "volume_gbit": 10.0,
        "train_s": 2.0,
        **changes,
    }
    return {key: value for key, value in entry.items() if value != "drop"}


def server(**changes: Any) -> dict[str, Any]:
    return ring(**{"id": "p", "collective": "parameter_server", "server_pod": 2, **changes})


def file_of(*jobs: Any, **changes: Any) -> bytes:
    record = {
        "format": "topox-jobs",
        "version": 1,
        "name": "n",
        "network": NETWORK,
        "jobs": list(jobs),
        **changes,
    }
    return json.dumps({key: value for key, value in record.items() if value != "drop"}).encode()


def line_of(data: bytes) -> str:
    line = refusal(load_jobs, data, "x.jobs.json")
    assert line.startswith("x.jobs.json"), "an error names its file"
    return line.removeprefix("x.jobs.json").removeprefix(", ").removeprefix(": ")


@pytest.mark.parametrize("seed", range(6))
def test_jobs_come_back_from_their_file_as_they_went(seed: int) -> None:
    jobs = random_jobs(seed)
    assert (
        load_jobs(dump_jobs(jobs), "a") == load_jobs(gzip.compress(dump_jobs(jobs)), "a.gz") == jobs
    )
    assert load_jobs(dump_jobs(jobs), "a").digest == jobs.digest


@pytest.mark.parametrize(
    ("jobs", "line"),
    [
        ([], "field jobs: must hold at least one job"),
        ([ring(), ring()], "job r, field id: is used by an earlier job as well"),
        (
            [ring(id=" ")],
            "job 1, field id: must be printable text of 1 to 200 characters (got ' ')",
        ),
        ([ring(id="drop")], "job 1, field id: is missing"),
        (
            [ring(collective="broadcast")],
            "job r, field collective: must be one of parameter_server, ring_all_reduce, all_to_all (got "
            "'broadcast')",
        ),
        ([ring(volume_gbit="drop")], "job r, field volume_gbit: is missing"),
        (
            [ring(volume_gbit=-1.0)],
            "job r, field volume_gbit: must be greater than 0 (got -1)",
        ),
        (
            [ring(volume_gbit=0.0)],
            "job r, field volume_gbit: must be greater than 0 (got 0)",
        ),
        (
            [ring(volume_gbit=float("nan"))],
            "job r, field volume_gbit: must be a finite number (got nan)",
        ),
        (
            [ring(volume_gbit=1e300)],
            "job r, field volume_gbit: must be at most 1e+15 (got 1e+300)",
        ),
        ([ring(volume_gbit="10")], "job r, field volume_gbit: must be a number (got '10')"),
        (
            [ring(train_s=-0.1)],
            "job r, field train_s: must be at least 0 (got -0.1)",
        ),
        (
            [ring(train_s=1e10)],
            "job r, field train_s: must be at most 1e+09 (got 10000000000)",
        ),
        (
            [ring(volume_gbit=1e13)],
            "job r, field volume_gbit: makes 4e+13 Gbit in all, more than 1e+09 s at 150 Gbit/s carry",
        ),
        ([ring(pod_group=2)], "job r, field pod_group: must be from 0 to 1 (got 2)"),
        ([ring(pod_group=True)], "job r, field pod_group: must be a whole number (got True)"),
        (
            [ring(units_per_pod=[1, 1, 1, 0, 1])],
            "job r, field units_per_pod: must have one entry for each of the 4 pods of a group "
            "(got 5)",
        ),
        (
            [ring(units_per_pod=[1, -1, 1, 0])],
            "job r, field units_per_pod[1]: must be from 0 to 1,000,000 (got -1)",
        ),
        (
            [ring(units_per_pod=[1, 0.5, 1, 0])],
            "job r, field units_per_pod[1]: must be a whole number (got 0.5)",
        ),
        (
            [ring(units_per_pod=[0, 0, 0, 0])],
            "job r, field units_per_pod: must place at least one unit (got none)",
        ),
        (
            [server(server_pod="drop")],
            "job p, field server_pod: is missing: a parameter server has a pod",
        ),
        (
            [server(server_pod=4)],
            "job p, field server_pod: must be a pod of the job's own group, 0 to 3 (got 4)",
        ),
        (
            [server(server_pod=-1)],
            "job p, field server_pod: must be a pod of the job's own group, 0 to 3 (got -1)",
        ),
        (
            [ring(server_pod=0)],
            "job r, field server_pod: belongs to a parameter server only (got 0 on ring_all_reduce)",
        ),
        (
            [ring(aggregate_s=1.0)],
            "job r, field aggregate_s: belongs to a parameter server only (got 1 on ring_all_reduce)",
        ),
        (
            [ring(voluem_gbit=1)],
            "job r, field voluem_gbit: unknown key (did you mean 'volume_gbit'?)",
        ),
        ([ring(), 5], "job 2: must be an object in braces (got 5)"),
        (
            [ring(train_s=None, volume_gbit=None)],
            "job r, field volume_gbit: must be a number (got None)",
        ),
    ],
)
def test_a_mistake_in_a_job_is_named(jobs: list[Any], line: str) -> None:
    assert line_of(file_of(*jobs)) == line


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"network": "drop"}, "field network: must be an object in braces (is missing)"),
        ({"jobs": {}}, "field jobs: must be a list of jobs in brackets (got an object)"),
        (
            {"network": NETWORK | {"pods_per_group": 0}},
            "network, field pods_per_group: must be from 1 to 64 (got 0)",
        ),
        (
            {"network": NETWORK | {"pod_groups": 5_000}},
            "network, field pod_groups: makes 20,000 pods, more than the 16,384 there may be",
        ),
        (
            {"network": NETWORK | {"ports_per_pod": 0}},
            "network, field ports_per_pod: must be from 1 to 1,024 (got 0)",
        ),
        (
            {"network": NETWORK | {"port_gbps": 0}},
            "network, field port_gbps: must be from 1e-06 to 1e+12 (got 0)",
        ),
        (
            {"network": NETWORK | {"reconfiguration_ms": -1}},
            "network, field reconfiguration_ms: must be at least 0 (got -1)",
        ),
        ({"network": {"pods_per_group": 4}}, "network, field pod_groups: is missing"),
        (
            {"format": "topox-cluster"},
            "field format: must be 'topox-jobs' (got 'topox-cluster': this is a cluster file)",
        ),
        (
            {"version": 2},
            "field version: 2 is newer than this program, which reads up to version 1; update the program",
        ),
        ({"job": []}, "field job: unknown key (did you mean 'jobs'?)"),
        ({"name": 7}, "field name: must be printable text of at most 200 characters (got 7)"),
    ],
)
def test_a_mistake_in_the_file_is_named(changes: dict[str, Any], line: str) -> None:
    assert line_of(file_of(ring(), **changes)) == line


def test_the_first_bad_job_ends_the_reading() -> None:
    assert line_of(file_of(*[{}] * 20_000)) == "job 1, field id: is missing"
    words = "holds more than the 21,000 objects a file may have"
    assert line_of(file_of(*[{}] * 200_000)) == words


def test_more_jobs_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(jobs_file._FORM, limits=replace(jobs_file._FORM.limits, entries=2))
    monkeypatch.setattr(jobs_file, "_FORM", few)
    jobs = [ring(id=f"j{i}") for i in range(3)]
    assert line_of(file_of(*jobs)) == "field jobs: holds more than the 2 entries a file may have"


@pytest.mark.parametrize("name", JOB_SAMPLES)
def test_a_sample_is_what_its_index_says(name: str) -> None:
    sample, jobs = JOB_SAMPLES[name], load_job_sample(name)
    pods = jobs.network.pod_groups * jobs.network.pods_per_group
    assert (len(jobs), pods) == (sample.jobs, sample.pods)
    found = [solve(jobs, TdmSettings(how)).round_s for how in ("non-tdm", "hill-climbing")]
    assert found == pytest.approx([sample.non_tdm_s, sample.hill_climbing_s], abs=1e-4)
    assert sample.optimum_s is None or sample.optimum_s <= sample.hill_climbing_s


@pytest.mark.parametrize(
    ("name", "algorithm", "round_s"),
    [
        ("overlap", "best-grouping", 40.0),
        ("long-training", "all-train", 100.0),
        ("mix-32-pods", "best-grouping", 126.5),
    ],
)
def test_what_the_samples_promise_to_show_is_there_to_see(
    name: str, algorithm: str, round_s: float
) -> None:
    found = solve(load_job_sample(name), TdmSettings(algorithm))
    assert found.round_s == pytest.approx(round_s, abs=0.5 if name == "mix-32-pods" else 1e-4)


ELSEWHERE = Job("j", "parameter_server", 0, (1, 1), 1.0, 1.0, server_pod=5)


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (
            lambda: validated("n", PodNetwork(1, 2, 2, 1.0, 1.0), [ELSEWHERE], "here"),
            "here, job j, field server_pod: must be a pod of the job's own group, 0 to 1 (got 5)",
        ),
        (
            lambda: load_job_sample("nonsense"),
            "sample, field name: must be one of overlap, ",
        ),
    ],
)
def test_jobs_made_in_a_program_and_samples_are_checked_like_a_file(
    asked: Callable[[], object], line: str
) -> None:
    assert line in refusal(asked)


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
            "settings, field port_gbps: must be from 1e-06 to 1e+12 (got -1)",
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
    assert line in refusal(deploy, SetUp(**changes))


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
