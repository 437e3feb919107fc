"""Random layered graphs: no model in particular, for tests of scale and of robustness."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from topox_core.model.task_graph import Task
from topox_core.workloads.parameter import Parameter, Workload, cluster_of_servers, compute_task


def _tasks(values: dict[str, Any]) -> Iterator[Task]:
    rng = random.Random(values["seed"])
    n, width = values["servers"], values["width"]
    above: list[tuple[str, int]] = []
    for layer in range(values["layers"]):
        row: list[tuple[str, int]] = []
        for k in range(width):
            server = rng.randrange(n)
            name = f"c.{layer}.{k}"
            waits = []
            for parent, at in (
                rng.sample(above, min(len(above), rng.randint(1, values["fan_in"])))
                if above
                else []
            ):
                if at == server:
                    waits.append(parent)
                    continue
                size = float(round(rng.uniform(0.2, 1.8) * values["mean_mb"] * 1e6))
                transfer = f"x.{layer}.{k}.{parent[2:]}"
                yield Task(
                    transfer,
                    "communication",
                    (parent,),
                    source=at,
                    destination=server,
                    size_bytes=size,
                )
                waits.append(transfer)
            kind = "forward" if 2 * layer < values["layers"] else "backward"
            yield compute_task(
                name,
                kind,
                tuple(waits),
                server,
                round(rng.uniform(0.2, 1.8) * values["mean_ms"], 3),
                layer=layer,
            )
            row.append((name, server))
        above = row


def _count(values: dict[str, Any]) -> int:
    """Return how many tasks compute; transfers between them are up to chance."""
    return int(values["layers"] * values["width"])


RANDOM_LAYERED = Workload(
    "random-layered",
    "Random layers",
    "Compute tasks in layers on random servers; each waits for a few tasks of the layer before, over the network "
    "where servers differ.",
    "our own construction; the seed fixes every byte",
    (
        Parameter("layers", 20, "", "layers", 1, 100_000),
        Parameter("width", 8, "", "compute tasks in a layer", 1, 10_000),
        Parameter("servers", 8, "", "servers", 2, 100_000),
        Parameter("fan_in", 2, "", "most tasks of the layer before that one waits for", 1, 64),
        Parameter(
            "mean_ms", 5.0, "ms", "mean compute time (uniform from 0.2 to 1.8 times it)", 0.001, 1e6
        ),
        Parameter(
            "mean_mb", 20.0, "MB", "mean transfer (uniform from 0.2 to 1.8 times it)", 0.0, 1e6
        ),
        Parameter("port_gbps", 40.0, "Gbit/s", "port speed of the suggested cluster", 0.001, 1e6),
        Parameter("seed", 0, "", "of all random choices", 0, 2**31),
    ),
    _tasks,
    _count,
    cluster_of_servers,
)
