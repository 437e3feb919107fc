"""A transformer iteration with pipeline and data parallelism: 1F1B or all-forward-all-backward.

Server ``replica * stages + stage`` runs one stage of one replica; tensor parallelism stays inside
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task
from topox_core.training.order import order
from topox_core.workloads.arithmetic import Transformer, compute_ms, update_ms
from topox_core.workloads.parameter import (
    Parameter,
    Workload,
    compute_task,
    preset,
    suggested_cluster,
)

SOURCE = (
    "1F1B order: PipeDream (SOSP 2019) as in Narayanan et al. (SC 2021), whose operation counts are used; "
    "update: bytes of Adam in mixed precision (ZeRO, SC 2020)"
)

MODEL_PARAMETERS = (
    Parameter("layers", 32, "", "transformer layers", 1, 1000),
    Parameter("hidden", 4096, "", "hidden size", 1, 1_000_000),
    Parameter("feed_forward", 14336, "", "width of the feed-forward block", 1, 10_000_000),
    Parameter("feed_forward_matrices", 3, "", "2 (GELU) or 3 (gated)", choices=(2, 3)),
    Parameter(
        "key_value",
        1024,
        "",
        "width of all key heads together (the hidden size without grouped queries)",
        1,
        1_000_000,
    ),
    Parameter("vocabulary", 128256, "", "entries of the vocabulary", 1, 10_000_000),
    Parameter("sequence", 8192, "tokens", "sequence length", 1, 10_000_000),
)
MACHINE_PARAMETERS = (
    Parameter("bytes_per_element", 2, "bytes", "of an activation", choices=(1, 2, 4)),
    Parameter("gradient_bytes", 4, "bytes", "of a gradient on the network", choices=(1, 2, 4)),
    Parameter(
        "gpus_per_server",
        8,
        "",
        "GPUs that share a server's work (tensor parallel inside it)",
        1,
        1024,
    ),
    Parameter(
        "tflops",
        989.0,
        "TFLOP/s",
        "peak of one GPU (H100 SXM, dense BF16: 989; A100: 312)",
        0.001,
        1e6,
    ),
    Parameter("efficiency", 0.4, "", "share of the peak that is reached", 0.001, 1.0),
    Parameter(
        "memory_gb_per_s",
        3350.0,
        "GB/s",
        "memory bandwidth of one GPU (H100 SXM: 3,350), for the update",
        0.1,
        1e6,
    ),
    Parameter("port_gbps", 400.0, "Gbit/s", "port speed of the suggested cluster", 0.001, 1e6),
)


def _tasks(values: dict[str, Any]) -> Iterator[Task]:
    stages, replicas = values["stages"], values["replicas"]
    model = Transformer.of(values)
    if stages > model.layers:
        raise InputError(
            f"must be at most the number of layers, {model.layers} (got {stages})", field="stages"
        )
    for replica in range(replicas):
        for stage in range(stages):
            yield from _stage(values, model, replica, stage)
    for stage in range(stages):
        yield from _reduce_and_update(values, model, stage)


def _count(values: dict[str, Any]) -> int:
    """Count the work of every stage and what it sends, both ways; a sum a stage, an update a server."""
    stages, replicas = values["stages"], values["replicas"]
    passes = 2 * (2 * stages - 1) * replicas * values["microbatches"]
    return int(passes + stages * (replicas > 1) + stages * replicas)


def _stage(values: dict[str, Any], model: Transformer, replica: int, stage: int) -> Iterator[Task]:
    """Yield one stage's compute in its order, and what it sends to its neighbours."""
    stages, tokens = values["stages"], values["microbatch_size"] * values["sequence"]
    server = replica * stages + stage
    flop = model.stage_forward_flop(stage, stages, tokens, values["sequence"])
    durations = {
        "f": compute_ms(flop, values),
        "b": compute_ms(flop * (3 if values["recompute"] == "yes" else 2), values),
    }
    size = float(tokens * model.hidden * values["bytes_per_element"])
    before: tuple[str, ...] = ()
    for way, m in order(stage, stages, values["microbatches"], values["schedule"]):
        name = f"{way}.r{replica}.s{stage}.m{m}"
        sender, receiver = (stage - 1, stage + 1) if way == "f" else (stage + 1, stage - 1)
        arrived = (f"{way}x.r{replica}.s{sender}.m{m}",) if 0 <= sender < stages else ()
        own = (f"f.r{replica}.s{stage}.m{m}",) if way == "b" else ()
        yield compute_task(
            name,
            "forward" if way == "f" else "backward",
            tuple(dict.fromkeys((*before, *arrived, *own))),
            server,
            durations[way],
            microbatch=m,
            stage=stage,
        )
        before = (name,)
        if 0 <= receiver < stages:
            yield Task(
                f"{way}x.r{replica}.s{stage}.m{m}",
                "communication",
                before,
                source=server,
                destination=replica * stages + receiver,
                size_bytes=size,
                parallelism="pp",
                group=f"pp{replica}",
                microbatch=m,
                stage=stage,
            )


def _reduce_and_update(values: dict[str, Any], model: Transformer, stage: int) -> Iterator[Task]:
    """Yield a stage's gradient all-reduce over the replicas and the optimizer's step on each."""
    stages, replicas = values["stages"], values["replicas"]
    count = model.stage_parameters(stage, stages)
    servers = tuple(replica * stages + stage for replica in range(replicas))
    last = values["microbatches"] - 1
    waits = tuple(f"b.r{replica}.s{stage}.m{last}" for replica in range(replicas))
    if replicas > 1:
        yield Task(
            f"sum.s{stage}",
            "all_reduce",
            waits,
            members=servers,
            size_bytes=float(count * values["gradient_bytes"]),
            parallelism="dp",
            group=f"dp{stage}",
            stage=stage,
        )
    for replica, server in enumerate(servers):
        yield compute_task(
            f"u.r{replica}.s{stage}",
            "update",
            (f"sum.s{stage}",) if replicas > 1 else (waits[replica],),
            server,
            update_ms(count, values),
            stage=stage,
        )


def _cluster(values: dict[str, Any]) -> Cluster:
    return suggested_cluster(values["stages"] * values["replicas"], values["port_gbps"])


PIPELINE = Workload(
    "pipeline",
    "Transformer, pipeline and data parallel",
    "Microbatches flow through the stages in 1F1B order, activations and their gradients hop from server to server, "
    "then each stage's gradients are all-reduced over its replicas.",
    SOURCE,
    (
        Parameter("stages", 4, "", "pipeline stages, one server each", 1, 256),
        Parameter("replicas", 2, "", "copies of the pipeline (data parallel)", 1, 4096),
        Parameter("microbatches", 8, "", "microbatches of one replica in an iteration", 1, 4096),
        Parameter("microbatch_size", 1, "sequences", "sequences in a microbatch", 1, 4096),
        Parameter(
            "schedule",
            "1f1b",
            "",
            "1f1b, or afab: all forwards before all backwards",
            choices=("1f1b", "afab"),
        ),
        Parameter(
            "recompute",
            "no",
            "",
            "whether the backward pass repeats the forward pass first",
            choices=("yes", "no"),
        ),
        *MODEL_PARAMETERS,
        *MACHINE_PARAMETERS,
    ),
    _tasks,
    _count,
    _cluster,
)

GPT_SMALL = preset(
    PIPELINE,
    "gpt-small",
    "GPT small, 4 stages",
    "The 12-layer GPT-2 small on servers of one A100: small enough to follow every task.",
    {
        "layers": 12,
        "hidden": 768,
        "feed_forward": 3072,
        "feed_forward_matrices": 2,
        "key_value": 768,
        "vocabulary": 50257,
        "sequence": 1024,
        "microbatch_size": 8,
        "gpus_per_server": 1,
        "tflops": 312.0,
        "memory_gb_per_s": 2039.0,
        "port_gbps": 25.0,
    },
)

LLAMA3_8B = preset(
    PIPELINE,
    "llama3-8b",
    "Llama 3 8B, 4 stages x 2 replicas",
    "Llama 3 8B on servers of eight H100.",
    {},
)

LLAMA3_70B = preset(
    PIPELINE,
    "llama3-70b",
    "Llama 3 70B, 16 stages x 8 replicas",
    "Llama 3 70B on 128 servers of eight H100: about ten thousand tasks.",
    {
        "layers": 80,
        "hidden": 8192,
        "feed_forward": 28672,
        "key_value": 1024,
        "stages": 16,
        "replicas": 8,
        "microbatches": 20,
    },
)
