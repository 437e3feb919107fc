"""Make every file of ``sample_data`` afresh, byte for byte the same each time: ``python tools/make_samples.py``."""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.topox_core.traces.made import Style, pipeline_and_data, recordings  # noqa: E402
from topox_core.io.cluster_file import dump_cluster  # noqa: E402
from topox_core.io.task_graph_file import dump_graph_json  # noqa: E402
from topox_core.io.task_graph_rules import validated  # noqa: E402
from topox_core.model.cluster import Cluster  # noqa: E402
from topox_core.model.facts import facts  # noqa: E402
from topox_core.model.task_graph import Task, TaskGraph  # noqa: E402
from topox_core.tdm.algorithms.catalogue import solve  # noqa: E402
from topox_core.tdm.mixes.deployment import SetUp, deploy  # noqa: E402
from topox_core.tdm.model import jobs_file  # noqa: E402
from topox_core.tdm.model.jobs import (  # noqa: E402
    Job,
    Jobs,
    PodNetwork,
    TdmSettings,
)
from topox_core.workloads.catalogue import generate  # noqa: E402

# Files above this are gzipped.
PLAIN_BYTES = 300_000
# 8 Gbit/s carry a megabyte in a millisecond, so sums stay on the blackboard.
BLACKBOARD_GBPS = 8.0
ONE_SWITCH = Cluster(
    servers=3,
    ports_per_server=1,
    switches=1,
    ports_per_switch=3,
    port_gbps=BLACKBOARD_GBPS,
    name="3 servers, 1 OCS",
)
PHYSICAL = {"model": "physical"}


def _compute(name: str, kind: str, server: int, ms: float, *waits: str) -> Task:
    return Task(name, kind, dependencies=waits, server=server, device=0, duration_ms=ms)


def _send(
    name: str, source: int, destination: int, megabytes: float, *waits: str, parallelism: str = "pp"
) -> Task:
    return Task(
        name,
        "communication",
        dependencies=waits,
        source=source,
        destination=destination,
        size_bytes=megabytes * 1e6,
        parallelism=parallelism,
    )


def blackboard() -> tuple[TaskGraph, Cluster]:
    """Six tasks on three servers with one port each: it matters which of two transfers goes first."""
    tasks = [
        _compute("a", "forward", 0, 2),
        _send("x", 0, 1, 3, "a"),
        _send("y", 0, 2, 2, "a"),
        _compute("b", "forward", 1, 4, "x"),
        _compute("c", "forward", 2, 2, "y"),
        _send("z", 1, 0, 1, "b"),
    ]
    return validated("blackboard", tasks, "sample"), ONE_SWITCH


def patience() -> tuple[TaskGraph, Cluster]:
    """Seven tasks where the port must wait on purpose, and where the bounds alone do not prove it."""
    tasks = [
        _compute("f0", "forward", 0, 1),
        _send("act0", 0, 1, 1, "f0"),
        _compute("f1", "forward", 1, 4, "act0"),
        _send("act1", 1, 2, 1, "f1"),
        _compute("f2", "forward", 2, 4, "act1"),
        _send("weights", 0, 2, 6, parallelism="dp"),
        _compute("u2", "update", 2, 1, "f2", "weights"),
    ]
    return validated("patience", tasks, "sample"), ONE_SWITCH


WRITTEN: list[tuple[str, Any, dict[str, Any]]] = [
    (
        "blackboard",
        blackboard,
        {
            "title": "Blackboard: six tasks",
            "see": "Two transfers want the same port: send x first and the iteration ends at 10 ms, send y first and it ends at 12.",
            "optimum_ms": 10.0,
            "optimum_settings": PHYSICAL,
            "proof": "a, x, b, z lie in series: 2 + 3 + 4 + 1 = 10 ms, and x before y attains it.",
        },
    ),
    (
        "patience",
        patience,
        {
            "title": "Patience: leave the port idle",
            "see": "Sending the big transfer at once costs 17 ms; an idle port at the start gives 14. The bounds say less: only "
            "the exact engine proves 14.",
            "optimum_ms": 14.0,
            "optimum_settings": PHYSICAL,
            "first_come_ms": 17.0,
            "proof": "Three cases: weights before act0 gives 17 ms, weights between act0 and act1 gives 14, weights after act1 "
            "gives 14.",
        },
    ),
]

# name, workload, its parameters, changes of the cluster, title, what to see.
GENERATED: list[tuple[str, str, dict[str, str], dict[str, Any], str, str]] = [
    (
        "race",
        "random-layered",
        {"layers": "6", "width": "4", "servers": "4", "mean_mb": "15"},
        {"ports_per_server": 1, "switches": 1},
        "Race: schedule against bound",
        "Small, yet no rule of thumb is good: press Prove it and watch schedule and bound meet, well below the list schedule.",
    ),
    (
        "llama3-8b",
        "llama3-8b",
        {},
        {},
        "Llama 3 8B: 4 stages",
        "Microbatches fill and drain the pipeline; the first stage is done last, so its all-reduce ends the iteration.",
    ),
    (
        "fsdp",
        "fsdp",
        {"layers": "16", "nic_gbps": "200"},
        {},
        "Sharded transformer",
        "Every layer's weights are gathered and its gradients scattered: two rings use both ports, and no circuit has to change.",
    ),
    (
        "moe",
        "moe",
        {"skew": "0.5", "nic_gbps": "100"},
        {},
        "Mixture of experts",
        "Every transfer wants another circuit: raise the reconfiguration delay and watch the iteration stretch.",
    ),
    (
        "dlrm-16",
        "dlrm",
        {},
        {},
        "DLRM of the TOPO-X paper",
        "Compute needs 14.5 ms, the all-reduce of 306 MB far more: take it off the network to see the setting that fits the "
        "paper's table.",
    ),
    (
        "llama3-70b",
        "llama3-70b",
        {},
        {"slot_ms": 2.0},
        "Llama 3 70B: 16 stages",
        "Ten thousand tasks on 128 servers: the list schedule comes within 2 % of the lower bound.",
    ),
]


def two_rings(name: str, train_s: float) -> Jobs:
    """Two equal rings over two pods: each needs 10 s for its 1,000 Gbit alone, both together 20 s."""
    network = PodNetwork(
        pod_groups=1,
        pods_per_group=2,
        ports_per_pod=2,
        port_gbps=100.0,
        tor_gbps=400.0,
        reconfiguration_ms=0.0,
    )
    jobs = [Job(job, "ring_all_reduce", 0, (1, 1), 1000.0, train_s) for job in ("blue", "green")]
    return jobs_file.validated(name, network, jobs, "sample")


def four_pods() -> Jobs:
    """Four rings and a parameter server, where the optimum is in the rings and not in the grouping."""
    network = PodNetwork(
        pod_groups=1,
        pods_per_group=4,
        ports_per_pod=8,
        port_gbps=150.0,
        tor_gbps=1200.0,
        reconfiguration_ms=0.0,
    )
    rings = (
        ("1B", (2, 2, 2, 2), 78.72, 31.0036),
        ("1B-again", (1, 1, 1, 1), 78.72, 31.0036),
        ("3B", (0, 2, 2, 1), 205.44, 40.4559),
        ("90B", (0, 1, 0, 1), 5683.2, 34.9735),
    )
    jobs = [
        Job(job, "ring_all_reduce", 0, units, volume, train) for job, units, volume, train in rings
    ]
    jobs.append(Job("8B", "parameter_server", 0, (0, 1, 1, 1), 678.4, 33.3982, server_pod=0))
    return jobs_file.validated("four-pods", network, jobs, "sample")


MIX = {"jobs": 40, "pod_groups": 4, "seed": 6}
JOB_MIXES: list[tuple[str, Jobs, dict[str, Any]]] = [
    (
        "overlap",
        two_rings("overlap", 10.0),
        {
            "title": "Overlap: two jobs, one sends while the other computes",
            "see": "Together they send for 20 s and train for 10 s, twice: 60 s. In turns one trains while the other sends: 40 s.",
            "optimum_s": 40.0,
            "proof": "Each port must carry 2,000 Gbit twice a round at 100 Gbit/s: 40 s.",
        },
    ),
    (
        "long-training",
        two_rings("long-training", 40.0),
        {
            "title": "Long training: time division alone makes it slower",
            "see": "Four strict phases would last 160 s, no turns 120 s; a phase in which both train brings it to 100 s.",
            "optimum_s": 120.0,
            "proof": "Apart, every phase lasts the other's 40 s; together they push 20 s and train 40 s, twice.",
        },
    ),
    (
        "four-pods",
        four_pods(),
        {
            "title": "Four pods: the gap to the bound comes from the rings",
            "see": "No split helps here. Other rings for the same jobs cut a stage from 18.9 s to 13.4 s, which the exact model "
            "finds.",
            "optimum_s": 107.7832,
            "proof": "The exact model over all groupings and rings.",
        },
    ),
    (
        "mix-32-pods",
        deploy(SetUp(**MIX)),
        {
            "title": "40 jobs on 32 pods: the best round is hard to find",
            "see": "Hill climbing stops at 172 s: regrouping a job outside the slowest pod group gains nothing. The best split takes "
            "126 s.",
            "made_by": MIX,
        },
    ),
]


def main(folder: Path = ROOT / "sample_data") -> None:
    """Write all samples and their index."""
    folder.mkdir(exist_ok=True)
    entries = []
    for name, make, about in WRITTEN:
        graph, cluster = make()
        entries.append(_write(folder, name, graph, cluster, about))
    for name, workload, values, changes, title, see in GENERATED:
        graph, cluster = generate(workload, values)
        about = {"title": title, "see": see, "made_by": {"workload": workload, "set": values}}
        entries.append(
            _write(folder, name, replace(graph, name=name), cluster.changed(**changes), about)
        )
    mixes = [
        _write_jobs(folder, name, replace(jobs, name=name), about)
        for name, jobs, about in JOB_MIXES
    ]
    _write_recorded_run(folder)
    index = {"format": "topox-samples", "version": 1, "samples": entries, "job_mixes": mixes}
    (folder / "index.json").write_bytes(
        (json.dumps(index, indent=1, ensure_ascii=False) + "\n").encode()
    )


def _write_recorded_run(folder: Path) -> None:
    """Write what a profiler would of four ranks at 100 Gbit/s: made up, so that its truth is known, clocks apart."""
    style = Style(steps=4, first_step=100, split=3, offsets_us=(0.0, 310_000.0, -24_000.0, 700.0))
    for file, content in recordings(pipeline_and_data(6), 100.0, style).items():
        packed = gzip.compress(content, 9, mtime=0)
        (folder / f"{file.replace('run_', 'recorded-run_')}.gz").write_bytes(packed)


def _write_jobs(folder: Path, name: str, jobs: Jobs, about: dict[str, Any]) -> dict[str, Any]:
    (folder / f"{name}.jobs.json").write_bytes(jobs_file.dump_jobs(jobs))
    rounds = {
        key: round(solve(jobs, TdmSettings(algorithm)).round_s, 4)
        for key, algorithm in (("non_tdm_s", "non-tdm"), ("hill_climbing_s", "hill-climbing"))
    }
    return {
        "name": name,
        **about,
        "jobs": len(jobs),
        "pods": jobs.network.pod_groups * jobs.network.pods_per_group,
        "file": f"{name}.jobs.json",
        **rounds,
    }


def _write(
    folder: Path, name: str, graph: TaskGraph, cluster: Cluster, about: dict[str, Any]
) -> dict[str, Any]:
    content = dump_graph_json(graph)
    file = f"{name}.taskgraph.json"
    for old in (file, file + ".gz"):
        (folder / old).unlink(missing_ok=True)
    if len(content) > PLAIN_BYTES:
        file, content = file + ".gz", gzip.compress(content, 9, mtime=0)
    (folder / file).write_bytes(content)
    (folder / f"{name}.cluster.json").write_bytes(dump_cluster(cluster))
    known = facts(graph, cluster)
    return {
        "name": name,
        **about,
        "tasks": known.tasks,
        "transfers": known.transfers,
        "servers": cluster.servers,
        "graph_file": file,
        "cluster_file": f"{name}.cluster.json",
    }


if __name__ == "__main__":
    main()
