"""VGG16 and ResNet50 on 224 x 224 images, and VGG16 as TopoOpt's simulator measured it."""

from __future__ import annotations

from typing import NamedTuple

from topox_core.strategy.blueprint import A100, FLOAT_BYTES, Blueprint, Work
from topox_core.strategy.operators import OperatorGraph, Weight

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
        A100,
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
        A100,
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
            name = f"conv{b}.{i}"
            shape = Filter(3, channels, outputs, side, side)
            below = _convolution(plan, name, shape, below, known)
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
    plan = Blueprint(
        "resnet50", "ResNet50", "structure: He et al. (CVPR 2016)", servers, 4 * 128, A100
    )
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
    wide = 4 * middle
    one = Filter(1, channels, middle, into, into)
    first = _convolution(plan, f"{name}.a", one, below, normalised=True)
    three = Filter(3, middle, middle, into, side)
    second = _convolution(plan, f"{name}.b", three, first, normalised=True)
    widening = Filter(1, middle, wide, side, side)
    third = _convolution(plan, f"{name}.c", widening, second, normalised=True)
    skip = below
    if channels != wide:
        projection = Filter(1, channels, wide, into, side)
        skip = _convolution(plan, f"{name}.skip", projection, below, normalised=True)
    elements = wide * side**2
    return plan.moving(f"{name}.add", "add", 2 * elements, elements, (third, skip))


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
