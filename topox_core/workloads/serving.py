"""Bursts of inference: prompts are read on some servers, and what was read moves to others that answer."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task
from topox_core.workloads.parameter import Parameter, Workload, compute_task, suggested_cluster

CLOCK = 1  # the device of server 0 that only counts the time between bursts


def _tasks(values: dict[str, Any]) -> Iterator[Task]:
    """Yield bursts: the clock, then each request's chunks of reading, their transfers, and the first answer.

    Requests are read on the servers in turn and answered where chance has it. Chunks of one prompt are read one after
    another, and each is sent as soon as it is read.
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


def _count(values: dict[str, Any]) -> int:
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
    _tasks,
    _count,
    _cluster,
)
