"""A mixture-of-experts iteration: attention, tokens to their experts, experts, tokens home again; then the way back.

Every server holds the attention of all layers (data parallel) and its share of each layer's
experts.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from topox_core.model.task_graph import Task
from topox_core.workloads.arithmetic import compute_ms
from topox_core.workloads.parameter import Parameter, Workload, cluster_of_servers, compute_task
from topox_core.workloads.pipeline import MACHINE_PARAMETERS

SOURCE = (
    "layer as in GShard (ICLR 2021): an all-to-all before and one after the experts, both again in the backward pass; "
    "operation counts of Narayanan et al. (SC 2021)"
)

Shares = list[list[float]]


def steps(layers: int) -> list[tuple[str, int]]:
    """Return the compute steps of a microbatch as (step, layer); between any two an all-to-all moves the tokens."""
    down = [(step, layer) for layer in range(layers) for step in ("f.attend", "f.expert")]
    up = [(step, layer) for layer in reversed(range(layers)) for step in ("b.expert", "b.attend")]
    return [*down, ("f.head", layers - 1), *up]


def _tasks(values: dict[str, Any]) -> Iterator[Task]:
    rng = random.Random(values["seed"])
    walk = steps(values["layers"])
    for m in range(values["microbatches"]):
        shares = [_routing(values, rng) for _ in range(values["layers"])]
        received = [_received(share) for share in shares]
        for k, (step, layer) in enumerate(walk):
            for s in range(values["servers"]):
                waits = _arrivals(values, walk[k - 1], m, s) if k else ()
                yield compute_task(
                    _name(step, m, layer, s),
                    "forward" if step[0] == "f" else "backward",
                    waits,
                    s,
                    _step_ms(values, step, received[layer][s]),
                    microbatch=m,
                    layer=layer,
                )
            if k + 1 < len(walk):
                to_experts = walk[k + 1][0].endswith("expert")
                yield from _exchange(
                    values,
                    (step, layer),
                    m,
                    shares[walk[k + 1][1] if to_experts else layer],
                    to_experts,
                )
    yield from _gradients(values)


def _count(values: dict[str, Any]) -> int:
    """Count the steps of every server, the exchanges between them, and a sum a layer."""
    n, walk = values["servers"], 4 * values["layers"] + 1
    exchange = n * (n - 1) if values["skew"] else 1
    return int(values["microbatches"] * (walk * n + (walk - 1) * exchange) + values["layers"])


def _routing(values: dict[str, Any], rng: random.Random) -> Shares:
    """Return which share of the tokens of server i goes to the experts of server j; rows add up to 1."""
    n, skew = values["servers"], values["skew"]
    if not skew:
        return [[1.0 / n] * n] * n
    popular = [math.exp(skew * rng.gauss(0, 1)) for _ in range(n)]
    rows = [[p * math.exp(0.25 * skew * rng.gauss(0, 1)) for p in popular] for _ in range(n)]
    return [[x / total for x in row] for row in rows for total in (sum(row),)]


def _received(share: Shares) -> list[float]:
    """Return how many servers' tokens each server's experts are sent."""
    if share[0] is share[-1]:  # all alike
        return [sum([share[0][0]] * len(share))] * len(share)
    return [sum(column) for column in zip(*share, strict=True)]


def _step_ms(values: dict[str, Any], step: str, received: float) -> float:
    """Return the time of a step: attention 4 matrices and scores, an expert as many tokens as were sent to it."""
    tokens, hidden = values["tokens"], values["hidden"]
    if step == "f.head":
        return compute_ms(2.0 * tokens * hidden * values["vocabulary"], values)
    if step.endswith("attend"):
        flop = tokens * (8.0 * hidden * hidden + 4.0 * values["sequence"] * hidden)
    else:
        flop = (
            received
            * tokens
            * values["top_k"]
            * 2.0
            * values["feed_forward_matrices"]
            * hidden
            * values["feed_forward"]
        )
    return compute_ms(flop * (2 if step[0] == "b" else 1), values)


def _exchange(
    values: dict[str, Any], step: tuple[str, int], m: int, share: Shares, to_experts: bool
) -> Iterator[Task]:
    """Yield the all-to-all after a step: one collective if all pairs move the same, else a transfer a pair."""
    n = values["servers"]
    buffer = float(
        values["tokens"] * values["top_k"] * values["hidden"] * values["bytes_per_element"]
    )
    name, layer = step
    if not values["skew"]:
        yield Task(
            f"{name}x.m{m}.l{layer}",
            "all_to_all",
            tuple(_name(name, m, layer, s) for s in range(n)),
            members=tuple(range(n)),
            size_bytes=buffer,
            parallelism="ep",
            group="ep",
            microbatch=m,
            layer=layer,
        )
        return
    for i in range(n):
        for j in range(n):
            if i != j:
                size = float(round(buffer * (share[i][j] if to_experts else share[j][i])))
                yield Task(
                    f"{name}x.m{m}.l{layer}.{i}-{j}",
                    "communication",
                    (_name(name, m, layer, i),),
                    source=i,
                    destination=j,
                    size_bytes=size,
                    parallelism="ep",
                    group="ep",
                    microbatch=m,
                    layer=layer,
                )


def _arrivals(
    values: dict[str, Any], step: tuple[str, int], m: int, server: int
) -> tuple[str, ...]:
    name, layer = step
    if not values["skew"]:
        return (f"{name}x.m{m}.l{layer}",)
    sent = (f"{name}x.m{m}.l{layer}.{i}-{server}" for i in range(values["servers"]) if i != server)
    return (_name(name, m, layer, server), *sent)


def _gradients(values: dict[str, Any]) -> Iterator[Task]:
    """Yield the all-reduce of each layer's attention weights, once all microbatches are through it."""
    n = values["servers"]
    for layer in reversed(range(values["layers"])):
        waits = tuple(
            _name("b.attend", m, layer, s) for m in range(values["microbatches"]) for s in range(n)
        )
        yield Task(
            f"sum.l{layer}",
            "all_reduce",
            waits,
            members=tuple(range(n)),
            parallelism="dp",
            group="dp",
            layer=layer,
            size_bytes=float(4 * values["hidden"] ** 2 * values["gradient_bytes"]),
        )


def _name(step: str, m: int, layer: int, server: int) -> str:
    return f"{step}.m{m}.l{layer}.{server}"


EXPERTS = Workload(
    "moe",
    "Mixture of experts",
    "Four all-to-alls a layer and microbatch: every port wants another circuit for every transfer.",
    SOURCE,
    (
        Parameter("servers", 8, "", "servers, each with its share of the experts", 2, 512),
        Parameter("layers", 2, "", "mixture-of-experts layers", 1, 200),
        Parameter(
            "microbatches", 2, "", "microbatches: one computes while another communicates", 1, 256
        ),
        Parameter(
            "tokens", 16384, "tokens", "tokens of one server in a microbatch", 1, 100_000_000
        ),
        Parameter("top_k", 2, "", "experts a token is sent to", 1, 64),
        Parameter(
            "skew",
            0.0,
            "",
            "how unevenly tokens choose experts: 0 even (one collective), 1 strongly uneven",
            0.0,
            3.0,
        ),
        Parameter("seed", 0, "", "of the uneven choice", 0, 2**31),
        Parameter("hidden", 4096, "", "hidden size", 1, 1_000_000),
        Parameter("feed_forward", 14336, "", "width of one expert", 1, 10_000_000),
        Parameter("feed_forward_matrices", 3, "", "2 (GELU) or 3 (gated)", choices=(2, 3)),
        Parameter("vocabulary", 32000, "", "entries of the vocabulary", 1, 10_000_000),
        Parameter("sequence", 4096, "tokens", "sequence length", 1, 10_000_000),
        *(p for p in MACHINE_PARAMETERS if p.key != "memory_gb_per_s"),
    ),
    _tasks,
    _count,
    cluster_of_servers,
)
