"""A fully sharded data-parallel transformer iteration (FSDP): gather each layer's weights, scatter its gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from topox_core.model.task_graph import Task
from topox_core.workloads.arithmetic import Transformer, compute_ms, update_ms
from topox_core.workloads.parameter import Parameter, Workload, cluster_of_servers, compute_task
from topox_core.workloads.pipeline import MACHINE_PARAMETERS, MODEL_PARAMETERS

SOURCE = "ZeRO stage 3 (SC 2020); operation counts of Narayanan et al. (SC 2021); tables and head are left out"


def _tasks(values: dict[str, Any]) -> Iterator[Task]:
    model, n = Transformer.of(values), values["servers"]
    members = tuple(range(n))
    flop = model.layer_forward_flop(
        values["microbatch_size"] * values["sequence"], values["sequence"]
    )
    weights = float(model.layer_parameters * values["bytes_per_element"])
    gradients = float(model.layer_parameters * values["gradient_bytes"])
    # One pass over the layers forward, one back; layer k's weights may be gathered while the layer
    # before it runs.
    walk = [("f", layer) for layer in range(model.layers)] + [
        ("b", layer) for layer in reversed(range(model.layers))
    ]
    for step, (way, layer) in enumerate(walk):
        ahead = step - 1 - values["prefetch"]
        started = (
            tuple(f"{walk[ahead][0]}.l{walk[ahead][1]}.{s}" for s in members) if ahead >= 0 else ()
        )
        gathered = (f"{walk[step - 1][0]}gather.l{walk[step - 1][1]}",) if step else ()
        yield Task(
            f"{way}gather.l{layer}",
            "all_gather",
            started + gathered,
            members=members,
            size_bytes=weights,
            parallelism="fsdp",
            group="fsdp",
            layer=layer,
        )
        for s in members:
            before = (f"{walk[step - 1][0]}.l{walk[step - 1][1]}.{s}",) if step else ()
            yield compute_task(
                f"{way}.l{layer}.{s}",
                "forward" if way == "f" else "backward",
                (*before, f"{way}gather.l{layer}"),
                s,
                compute_ms(flop if way == "f" else 2 * flop, values),
                layer=layer,
            )
        if way == "b":
            yield Task(
                f"scatter.l{layer}",
                "reduce_scatter",
                tuple(f"b.l{layer}.{s}" for s in members),
                members=members,
                size_bytes=gradients,
                parallelism="fsdp",
                group="fsdp",
                layer=layer,
            )
    scattered = tuple(f"scatter.l{layer}" for layer in range(model.layers))
    for s in members:
        yield compute_task(
            f"u.{s}",
            "update",
            (*scattered, f"b.l0.{s}"),
            s,
            update_ms(model.layers * model.layer_parameters / n, values),
        )


def _count(values: dict[str, Any]) -> int:
    """Count a gather and the work of every server for each layer, both ways; a scatter a layer, an update a server."""
    layers, n = values["layers"], values["servers"]
    return int(2 * layers * (n + 1) + layers + n)


FSDP = Workload(
    "fsdp",
    "Transformer, fully sharded",
    "Every layer's weights are gathered before use, forward and backward, and its gradients reduced and scattered.",
    SOURCE,
    (
        Parameter("servers", 8, "", "servers that share the weights", 1, 4096),
        Parameter(
            "microbatch_size", 1, "sequences", "sequences of one server in an iteration", 1, 4096
        ),
        Parameter(
            "prefetch",
            1,
            "layers",
            "how many layers ahead of the running one weights may be gathered",
            0,
            1000,
        ),
        *MODEL_PARAMETERS,
        *MACHINE_PARAMETERS,
    ),
    _tasks,
    _count,
    cluster_of_servers,
)
