"""Workloads drawn by chance: bursts of inference, and random layers for tests of scale and of robustness."""

import math
import random
from collections.abc import Iterator
from typing import Any

from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task
from topox_core.workloads.parameter import (
    Parameter,
    Workload,
    cluster_of_servers,
    compute_task,
    suggested_cluster,
)

CLOCK = 1  # the device of server 0 that only counts the time between bursts


def _bursts(values: dict[str, Any]) -> Iterator[Task]:
    """Yield bursts: the clock, then each request's chunks of reading, their transfers, and the first answer.

    Prompts are read on some servers, in turn, and move to others that answer, where chance has it. Chunks of one prompt
    are read one after another, and each is sent as soon as it is read.
    """
    rng = random.Random(values["seed"])
    chunks = values["chunks"]
    number = 0
    tick: tuple[str, ...] = ()
    for burst in range(values["bursts"]):
        if burst:
            yield Task(f"clock.{burst}", "forward", tick, 0, CLOCK, values["gap_ms"])
            tick = (f"clock.{burst}",)
        for _ in range(values["requests"]):
            chunk_tokens = _tokens(rng, values) / chunks
            writer = values["readers"] + rng.randrange(values["writers"])
            yield from _request(values, number, tick, chunk_tokens, writer)
            number += 1


def _tokens(rng: random.Random, values: dict[str, Any]) -> float:
    """Draw the length of a prompt: log-normal about the mean, at most eight times it."""
    spread = values["spread"]
    drawn = math.exp(rng.gauss(-spread * spread / 2, spread))
    return float(max(1, round(values["tokens"] * min(drawn, 8.0))))


def _request(
    values: dict[str, Any], number: int, tick: tuple[str, ...], chunk_tokens: float, writer: int
) -> Iterator[Task]:
    reader = number % values["readers"]
    before, moved = tick, []
    for chunk in range(values["chunks"]):
        name = f"read.{number}.{chunk}"
        yield compute_task(name, "forward", before, reader, chunk_tokens * values["read_us"] / 1e3)
        before = (name,)
        moved.append(f"cache.{number}.{chunk}")
        yield Task(
            moved[-1],
            "communication",
            before,
            source=reader,
            destination=writer,
            size_bytes=float(round(chunk_tokens * values["token_bytes"])),
        )
    yield compute_task(f"answer.{number}", "forward", tuple(moved), writer, values["answer_ms"])


def _in_bursts(values: dict[str, Any]) -> int:
    requests = values["bursts"] * values["requests"]
    return int(requests * (2 * values["chunks"] + 1) + values["bursts"] - 1)


def _cluster(values: dict[str, Any]) -> Cluster:
    servers = values["readers"] + values["writers"]
    return suggested_cluster(servers, values["port_gbps"]).changed(devices_per_server=CLOCK + 1)


SERVING_BURSTS = Workload(
    "serving-bursts",
    "Serving in bursts",
    "Inference with prompts read on some servers and answered on others: requests come in bursts, and the keys and "
    "values of a prompt move to the server that answers.",
    "our own construction; 131,072 bytes per token are the keys and values of Llama 3 8B (32 layers, 8 heads of 128, two "
    "bytes each); the seed fixes every byte",
    (
        Parameter("readers", 4, "", "servers that read prompts", 1, 50_000),
        Parameter("writers", 4, "", "servers that answer", 1, 50_000),
        Parameter("bursts", 6, "", "bursts", 1, 10_000),
        Parameter("requests", 8, "", "requests in a burst", 1, 10_000),
        Parameter("gap_ms", 60.0, "ms", "from burst to burst", 0.001, 1e6),
        Parameter("tokens", 2000, "", "mean length of a prompt, in tokens", 1, 10_000_000),
        Parameter(
            "spread", 0.6, "", "spread of the lengths (of their logarithm; 0: all alike)", 0.0, 3.0
        ),
        Parameter("chunks", 4, "", "pieces in which a prompt is read and sent", 1, 1_000),
        Parameter("token_bytes", 131_072, "B", "keys and values of a token", 1, 1_000_000_000),
        Parameter("read_us", 10.0, "us", "time to read a token", 0.001, 1e6),
        Parameter("answer_ms", 15.0, "ms", "from the last piece to the first word", 0.001, 1e6),
        Parameter("port_gbps", 100.0, "Gbit/s", "port speed of the suggested cluster", 0.001, 1e6),
        Parameter("seed", 0, "", "of all random choices", 0, 2**31),
    ),
    _bursts,
    _in_bursts,
    _cluster,
)


def _layers(values: dict[str, Any]) -> Iterator[Task]:
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


def _computing(values: dict[str, Any]) -> int:
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
    _layers,
    _computing,
    cluster_of_servers,
)
