"""Transformers: BERT as TopoOpt runs it, and large language models, dense or with experts."""

from __future__ import annotations

from functools import cache

from topox_core.io.ranges import check_whole
from topox_core.strategy.blueprint import (
    A100,
    FLOAT_BYTES,
    LAUNCH_MS,
    MAX_SERVERS,
    Blueprint,
    Work,
    divisors,
)
from topox_core.strategy.operators import Cost, Edge, Operator, OperatorGraph, Weight
from topox_core.training.exchanges import layer_exchanges, residual_bytes, single_exchange
from topox_core.training.job import Job
from topox_core.training.layer import (
    attention_backward_ms,
    head_forward_ms,
    layer_backward_ms,
    layer_time,
)
from topox_core.training.machine import MACHINES
from topox_core.training.memory import OPTIMIZER_BYTES
from topox_core.training.plan import Plan
from topox_core.training.schedule import Schedule
from topox_core.training.shape import SHAPES
from topox_core.training.weights import WEIGHT_BYTES

# Sequences of one server of an iteration that is split over all servers.
SAMPLES_PER_SERVER = 8


def bert(servers: int, size: int) -> OperatorGraph:
    """Return BERT as in TopoOpt's simulator; ``size`` (16 or 128) is its servers.

    A layer is attention, the sum with its input, and two dense layers h x h without bias; word
    tables and the wide feed-forward block of the published BERT are left out there, so they are
    here.
    """
    layers, sequence, hidden, heads = {16: (6, 256, 768, 12), 128: (12, 64, 1024, 16)}[size]
    plan = Blueprint(
        f"bert-{size}",
        f"BERT ({size} servers)",
        "structure and sizes: TopoOpt's runs and their simulator; "
        "A100 times published with TopoOpt (NSDI 2023)",
        servers,
        4 * 16,
        A100,
        "transformer16" if size == 16 else "",
    )
    row = FLOAT_BYTES * sequence * hidden
    below: tuple[str, ...] = ()
    for i in range(layers):
        weights = (Weight("weight", 4 * hidden * hidden),)
        scores = FLOAT_BYTES * heads * sequence * sequence
        work = Work(
            flop=sequence * (8.0 * hidden * hidden + 4.0 * sequence * hidden),
            moved_bytes=8 * row + 3 * scores,
            weight_bytes=weights[0].size_bytes,
            state_bytes=2 * weights[0].size_bytes,
            kept_bytes=5 * row + scores,
        )
        mixed = plan.add(
            f"attention{i}",
            "attention",
            work,
            row,
            below,
            weights,
            f"MultiHeadAttention_{hidden}{heads}",
        )
        added = plan.moving(
            f"add{i}",
            "add",
            2 * sequence * hidden,
            sequence * hidden,
            (mixed, *below),
            "ElementBinary_31",
        )
        wide = plan.dense(f"dense{i}.0", hidden, hidden, (added,), bias=False, rows=sequence)
        below = (plan.dense(f"dense{i}.1", hidden, hidden, (wide,), bias=False, rows=sequence),)
    plan.dense("score", hidden, 1, below, bias=False, rows=sequence)
    return plan.graph()


def language_model(servers: int, name: str) -> OperatorGraph:
    """Return a language model as an operator graph; a sample is one sequence.

    A server's eight H100 share every operator (tensor parallel inside the server) and hold its
    training state once; the backward pass repeats the forward pass, so that only what flows between
    operators is kept. Times are those of :mod:`topox_core.training` for one microbatch of all sequences
    of a partition, exchanges inside the server included. Experts of one layer are one operator here;
    spreading them is for :mod:`topox_core.strategy.plans`.
    """
    check_whole(servers, 1, MAX_SERVERS, file=f"model {name}", field="servers")
    shape, total = SHAPES[name], servers * SAMPLES_PER_SERVER
    row = residual_bytes(_on_server(name, 1))
    operators: list[Operator] = []
    edges: list[Edge] = []

    def add(title: str, kind: str, parameters: int, part: str) -> None:
        """Add an operator that reads the one before."""
        costs = {}
        for partitions in divisors(servers):
            samples = total // partitions
            job = _on_server(name, samples)
            state_bytes = WEIGHT_BYTES + job.plan.gradient_bytes + OPTIMIZER_BYTES
            held = (state_bytes * parameters + row * samples) / job.plan.tensor
            costs[partitions] = Cost(*_times(name, samples)[part], held, "closed form")
        if operators:
            edges.append(Edge(operators[-1].name, title, row))
        gpus = MACHINES["h100"].gpus_per_server
        operators.append(Operator(title, kind, costs, (Weight("weight", parameters),), gpus))

    add("words", "lookup", shape.table_parameters, "words")
    kind = "experts" if shape.experts > 1 else "dense"
    for layer in range(shape.layers):
        add(f"attention{layer}", "attention", shape.shared_parameters, "attention")
        add(f"{kind}{layer}", kind, shape.experts * shape.expert_parameters, "block")
    add("head", "dense", shape.table_parameters + shape.hidden, "head")
    return OperatorGraph(
        name,
        total,
        tuple(operators),
        tuple(edges),
        MACHINES["h100"].memory_gb,
        MACHINES["h100"].gpus_per_server,
        shape.title,
        f"{shape.source}; one training iteration in closed form, tensor parallel in a server of eight H100",
    )


def _on_server(name: str, samples: int) -> Job:
    """Return one server that trains on ``samples`` sequences at once."""
    plan = Plan(tensor=8, microbatch_size=samples, sequence_parallel=True)
    return Job(SHAPES[name], plan, MACHINES["h100"], Schedule(recompute="full"))


@cache
def _times(name: str, samples: int) -> dict[str, tuple[float, float]]:
    """Return forward and backward times, in ms, of each part of a language model on one server."""
    job = _on_server(name, samples)
    time, exchanges, single_ms = layer_time(job), layer_exchanges(job), single_exchange(job).ms(job)
    # Attention and block have half of a layer's tensor-parallel exchanges each.
    forward_ms = sum(one.forward * one.ms(job) for one in exchanges) / 2
    backward_ms = sum(one.backward * one.ms(job) for one in exchanges) / 2
    attention_ms, head_ms = attention_backward_ms(job, time), head_forward_ms(job)
    block_ms = layer_backward_ms(job, time) - attention_ms
    return {
        part: (max(LAUNCH_MS, round(forward, 6)), max(LAUNCH_MS, round(backward, 6)))
        for part, forward, backward in (
            ("words", single_ms, 0.0),
            ("attention", time.attention_ms + forward_ms, attention_ms + backward_ms),
            ("block", time.forward_ms - time.attention_ms + forward_ms, block_ms + backward_ms),
            ("head", head_ms, 2 * head_ms + single_ms),
        )
    }
