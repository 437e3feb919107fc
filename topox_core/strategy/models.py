"""All models by name, each buildable for any number of servers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import NamedTuple

from topox_core.errors import InputError, shown, unknown
from topox_core.io.limits import check_whole
from topox_core.strategy.operators import (
    FLOAT_BYTES,
    LAUNCH_MS,
    MAX_SERVERS,
    Blueprint,
    Cost,
    Edge,
    Operator,
    OperatorGraph,
    Weight,
    Work,
    divisors,
)
from topox_core.strategy.recommenders import candle, dlrm, ncf
from topox_core.training.costs.collectives import (
    WEIGHT_BYTES,
    layer_exchanges,
    residual_bytes,
    single_exchange,
)
from topox_core.training.costs.layer import (
    head_forward_ms,
    layer_backward_ms,
    layer_time,
)
from topox_core.training.costs.memory import OPTIMIZER_BYTES
from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
from topox_core.training.plan import Plan, Schedule
from topox_core.training.shape import SHAPES, Shape

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
    attention_ms = layer_backward_ms(job, time, attention_only=True)
    head_ms = head_forward_ms(job)
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


# Channels of the convolutions of VGG16 by block (Simonyan and Zisserman, ICLR 2015, configuration
# D).
VGG_BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
# Middle channels and number of the bottlenecks of ResNet50 (He et al., CVPR 2016, table 1).
RESNET_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))


class Filter(NamedTuple):
    """A convolution: width of its kernel, channels in and out, and the image's side before and after it."""

    kernel: int
    channels: int
    outputs: int
    into: int
    side: int


def vgg16(servers: int) -> OperatorGraph:
    """Return VGG16: 138.36 million parameters.

    Of the published measurements only those of layers of the same shape are used (the last two
    dense layers, softmax); the measured convolutions saw other image sizes, see
    :func:`vgg16_measured`.
    """
    plan = Blueprint(
        "vgg16",
        "VGG16",
        "structure: Simonyan and Zisserman (ICLR 2015); A100 times of the layers that agree: "
        "published with TopoOpt (NSDI 2023)",
        servers,
        4 * 64,
        "vgg16",
    )
    below, elements = _vgg_body(plan, 224)
    _vgg_head(plan, below, elements)
    return plan.graph()


def vgg16_measured(servers: int) -> OperatorGraph:
    """Return VGG16 with the operator times that TopoOpt's simulator used: one for all convolutions of a width.

    The measurements belong to larger images (the first dense layer has 61,952 inputs where 224 x
    224 images give 25,088), so this graph has more parameters. Its compute adds up to the 100.6 ms
    of TopoOpt's job list.
    """
    plan = Blueprint(
        "vgg16-measured",
        "VGG16 (as measured by TopoOpt)",
        "A100 times published with TopoOpt (NSDI 2023), one for each width of convolution",
        servers,
        4 * 64,
        "vgg16",
    )
    below, _ = _vgg_body(plan, 352, measured=True)
    _vgg_head(plan, plan.moving("flat", "reshape", 61_952, 61_952, (below,), "Flat"), 61_952)
    return plan.graph()


def _vgg_body(plan: Blueprint, side: int, *, measured: bool = False) -> tuple[str, int]:
    """Add the five blocks of convolutions, each with its pooling; return the last operator and its elements."""
    below, channels = "", 3
    for b, block in enumerate(VGG_BLOCKS):
        for i, outputs in enumerate(block):
            known = f"Conv2D_3_3_{outputs}" if measured else ""
            shape = Filter(3, channels, outputs, side, side)
            below = _convolution(plan, f"conv{b}.{i}", shape, below, known)
            channels = outputs
        read, written = channels * side**2, channels * (side // 2) ** 2
        known = "Pool2D_3_3" if measured else ""
        below = plan.moving(f"pool{b}", "pool", read, written, (below,), known)
        side //= 2
    return below, channels * side**2


def _vgg_head(plan: Blueprint, below: str, inputs: int) -> None:
    for i, (read, written) in enumerate(((inputs, 4096), (4096, 4096), (4096, 1000))):
        below = plan.dense(f"dense{i}", read, written, (below,))
    plan.moving("softmax", "softmax", 1000, 1000, (below,), "Softmax")


def resnet50(servers: int) -> OperatorGraph:
    """Return ResNet50: 25.56 million parameters; a convolution and its batch normalisation are one operator."""
    plan = Blueprint("resnet50", "ResNet50", "structure: He et al. (CVPR 2016)", servers, 4 * 128)
    below = _convolution(plan, "stem", Filter(7, 3, 64, 224, 112), "", normalised=True)
    below = plan.moving("stem.pool", "pool", 64 * 112**2, 64 * 56**2, (below,))
    channels, side = 64, 56
    for s, (middle, count) in enumerate(RESNET_STAGES):
        for block in range(count):
            into = 2 * side if s and not block else side
            below = _bottleneck(plan, f"stage{s}.{block}", channels, middle, into, side, below)
            channels = 4 * middle
        side //= 2
    below = plan.moving("pool", "pool", channels * 7**2, channels, (below,))
    plan.dense("dense", channels, 1000, (below,))
    return plan.graph()


def _bottleneck(
    plan: Blueprint, name: str, channels: int, middle: int, into: int, side: int, below: str
) -> str:
    """Add 1x1, 3x3, 1x1 convolutions and the sum with their input; the 3x3 halves the image where it must."""
    wide, last = 4 * middle, below
    for part, shape in (
        ("a", Filter(1, channels, middle, into, into)),
        ("b", Filter(3, middle, middle, into, side)),
        ("c", Filter(1, middle, wide, side, side)),
    ):
        last = _convolution(plan, f"{name}.{part}", shape, last, normalised=True)
    if channels != wide:
        projection = Filter(1, channels, wide, into, side)
        below = _convolution(plan, f"{name}.skip", projection, below, normalised=True)
    elements = wide * side**2
    return plan.moving(f"{name}.add", "add", 2 * elements, elements, (last, below))


def _convolution(
    plan: Blueprint,
    name: str,
    shape: Filter,
    below: str,
    measured_as: str = "",
    *,
    normalised: bool = False,
) -> str:
    """Add a convolution with bias, or (normalised) with scale and shift instead, which reads its output once more."""
    kernel, channels, outputs, into, side = shape
    matrix = kernel * kernel * channels * outputs
    weights = (
        Weight("weight", matrix),
        *(
            (Weight("scale", outputs), Weight("shift", outputs))
            if normalised
            else (Weight("bias", outputs),)
        ),
    )
    read, written = channels * into**2, outputs * side**2
    size = sum(weight.size_bytes for weight in weights)
    work = Work(
        flop=2.0 * matrix * side**2,
        moved_bytes=FLOAT_BYTES * (read + written * (3 if normalised else 1)),
        weight_bytes=size,
        state_bytes=2 * size,
        kept_bytes=FLOAT_BYTES * (read + written),
        tensor_cores=True,
    )
    return plan.add(
        name,
        "convolution",
        work,
        FLOAT_BYTES * written,
        (below,) if below else (),
        weights,
        measured_as,
    )


@dataclass(frozen=True)
class Model:
    """One entry of the catalogue.

    Attributes
    ----------
    servers
        The number of servers it was published or is commonly run on.
    build
        Servers to operator graph.
    shape
        Of a language model, whose parallel plans can be enumerated; else None.
    batch
        Sequences of an iteration of its plans if nobody says otherwise.
    """

    name: str
    meaning: str
    servers: int
    build: Callable[[int], OperatorGraph]
    shape: Shape | None = None
    batch: int = 0


MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            "dlrm-16",
            "DLRM, TOPO-X Table II No. 2: 16 tables of 10^7 x 256, 23 dense layers (measured)",
            16,
            partial(dlrm, configuration=2),
        ),
        Model(
            "dlrm-128",
            "DLRM, TOPO-X Table II No. 1: 64 tables of 10^7 x 128, 23 dense layers (measured)",
            128,
            partial(dlrm, configuration=1),
        ),
        Model(
            "bert-16",
            "BERT, 6 layers of 768, sequences of 256 (measured)",
            16,
            partial(bert, size=16),
        ),
        Model(
            "bert-128",
            "BERT, 12 layers of 1024, sequences of 64 (roofline)",
            128,
            partial(bert, size=128),
        ),
        Model(
            "candle-16",
            "CANDLE Uno: five towers of 12 layers, 11 operators on top, 4096 wide (measured)",
            16,
            candle,
        ),
        Model(
            "candle-128",
            "CANDLE Uno: five towers of 16 layers, 11 operators on top, 16384 wide (roofline)",
            128,
            partial(candle, width=16_384, feature_layers=16),
        ),
        Model(
            "vgg16", "VGG16, images of 224 x 224 (roofline, measured where shapes agree)", 16, vgg16
        ),
        Model(
            "vgg16-measured",
            "VGG16 with the operator times TopoOpt's simulator used (measured)",
            16,
            vgg16_measured,
        ),
        Model("resnet50", "ResNet50, images of 224 x 224 (roofline)", 128, resnet50),
        Model(
            "ncf", "Neural collaborative filtering, 128 tables of 10^6 rows (roofline)", 128, ncf
        ),
        Model(
            "llama3-8b",
            "Llama 3 8B (closed form)",
            16,
            partial(language_model, name="llama3-8b"),
            SHAPES["llama3-8b"],
            512,
        ),
        Model(
            "llama3-70b",
            "Llama 3 70B (closed form)",
            64,
            partial(language_model, name="llama3-70b"),
            SHAPES["llama3-70b"],
            1024,
        ),
        Model(
            "llama3-405b",
            "Llama 3 405B (closed form)",
            512,
            partial(language_model, name="llama3-405b"),
            SHAPES["llama3-405b"],
            2048,
        ),
        Model(
            "mixtral-8x7b",
            "Mixture of experts, 8 experts a layer, 2 for a token (closed form)",
            32,
            partial(language_model, name="mixtral-8x7b"),
            SHAPES["mixtral-8x7b"],
            512,
        ),
    )
}


# Short names for the variants that were measured on 16 servers.
ALIASES = {"dlrm": "dlrm-16", "bert": "bert-16", "candle": "candle-16", "moe": "mixtral-8x7b"}


def named(name: str) -> Model:
    """Return a model by name.

    Raises
    ------
    InputError
        If there is none of that name; the nearest one is told.
    """
    name = ALIASES.get(name, name)
    if name not in MODELS:
        raise InputError(
            f"{shown(name)} is an {unknown(name, [*MODELS, *ALIASES], 'model')}", field="model"
        )
    return MODELS[name]
