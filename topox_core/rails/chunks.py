"""What a pipeline stage holds, layer by layer: weights, computing, and exchanges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from topox_core.rails.iteration import ALL_GATHER, ALL_TO_ALL, COMPUTE, REDUCE_SCATTER
from topox_core.rails.presets import Preset
from topox_core.strategy.transformers import HALF


@dataclass(frozen=True)
class ChunkStep:
    """Computing (``ms``), or an exchange of ``size_bytes`` in a group ``of`` cp or ep."""

    kind: int
    ms: float = 0.0
    size_bytes: float = 0.0
    of: str = ""


@dataclass(frozen=True)
class Unit:
    """What is gathered, computed and reduced together: a layer, the head, or a merged chunk.

    Attributes
    ----------
    name, layer
        E.g. ``layer 7`` and 7; -1 where it is not one layer.
    weights
        Parameters of one tensor-parallel rank by sharding: ``weights`` over all replicas,
        ``experts`` over those that hold the same experts. Several entries of one kind are gathered
        one after the other.
    forward, backward
        Steps of the passes, in order.
    """

    name: str
    layer: int
    weights: tuple[tuple[str, float], ...]
    forward: tuple[ChunkStep, ...]
    backward: tuple[ChunkStep, ...]

    @property
    def forward_ms(self) -> float:
        """Computing of the forward pass."""
        return sum(step.ms for step in self.forward)

    @property
    def backward_ms(self) -> float:
        """Computing of the backward pass."""
        return sum(step.ms for step in self.backward)


def chunk_layers(preset: Preset) -> list[range]:
    """Return the layers of every chunk, as even as can be; shorter chunks at the ends, last first.

    Llama 3 405B leaves a layer out of the first and the last stage likewise (arXiv 2407.21783,
    section 3.3.2).
    """
    count, longer = divmod(preset.shape.base.layers, preset.chunks)
    shorter_first = (preset.chunks - longer) // 2
    result, first = [], 0
    for chunk in range(preset.chunks):
        size = count + (shorter_first <= chunk < shorter_first + longer)
        result.append(range(first, first + size))
        first += size
    return result


def chunk_units(preset: Preset, chunk: int, layers: range, by_layer: bool) -> list[Unit]:
    """Return a chunk's units in forward order.

    The input table belongs to the first layer (looking it up is free), output table and last norm
    to the head, a unit of its own. Norms, which tensor parallelism copies, are counted as split.
    """
    base = preset.shape.base
    units = [_layer(preset, layer) for layer in layers]
    if chunk == 0:
        table = ("weights", base.embedding_parameters / preset.tensor)
        first = units[0]
        units[0] = Unit(
            first.name, first.layer, (table, *first.weights), first.forward, first.backward
        )
    if chunk == preset.chunks - 1:
        steps = (ChunkStep(COMPUTE, base.head_forward_flop(preset.tokens) / _flop_per_ms(preset)),)
        weights = (("weights", (base.embedding_parameters + base.hidden) / preset.tensor),)
        units.append(Unit("head", -1, weights, steps, _backward(preset, steps)))
    return units if by_layer else [_merged(preset, units)]


def message_bytes(preset: Preset) -> float:
    """Return the bytes of a microbatch's activations, or gradients, between stages, of one rank."""
    parts = preset.tensor if preset.split_sends else 1
    return float(HALF * preset.tokens * preset.shape.base.hidden / parts)


def _flop_per_ms(preset: Preset) -> float:
    return preset.tflops * preset.efficiency * 1e9 * preset.tensor


def _layer(preset: Preset, layer: int) -> Unit:
    shape, base, n = preset.shape, preset.shape.base, preset.tokens
    per_ms = _flop_per_ms(preset)
    inputs = n * 2.0 * base.hidden * (base.hidden + 2 * base.key_value)
    steps = [ChunkStep(COMPUTE, inputs / per_ms)]
    if preset.context > 1:
        # Every rank gathers the keys and values of all tokens (Llama 3, section 3.3.2; Table 2 of
        # the paper).
        keys = 2.0 * HALF * n * preset.context * base.key_value / preset.tensor
        steps.append(ChunkStep(ALL_GATHER, size_bytes=keys, of="cp"))
    steps.append(ChunkStep(COMPUTE, (shape.attention_flop(n, preset.sequence) - inputs) / per_ms))
    tokens = ChunkStep(
        ALL_TO_ALL, size_bytes=HALF * n * base.hidden * shape.top_k / preset.tensor, of="ep"
    )
    experts = [ChunkStep(COMPUTE, shape.feed_forward_flop(n) / per_ms)]
    steps += [tokens, *experts, tokens] if preset.expert > 1 else experts
    forward = _joined(steps)
    held = shape.experts * shape.expert_parameters / preset.tensor
    shared = shape.shared_parameters / preset.tensor
    weights: tuple[tuple[str, float], ...] = (("weights", shared + held),)
    if preset.expert > 1:
        weights = (("weights", shared), ("experts", held / preset.expert))
    return Unit(f"layer {layer}", layer, weights, forward, _backward(preset, forward))


def _backward(preset: Preset, forward: Iterable[ChunkStep]) -> tuple[ChunkStep, ...]:
    """Return the steps back: twice the computing, exchanges reversed; recomputing comes before."""
    steps = list(forward)
    turned = {COMPUTE: COMPUTE, ALL_GATHER: REDUCE_SCATTER, ALL_TO_ALL: ALL_TO_ALL}
    back = [
        ChunkStep(turned[step.kind], 2 * step.ms, step.size_bytes, step.of)
        for step in reversed(steps)
    ]
    return _joined([*steps, *back] if preset.recompute else back)


def _joined(steps: Iterable[ChunkStep]) -> tuple[ChunkStep, ...]:
    """Return the steps with computing that follows computing made one."""
    result: list[ChunkStep] = []
    for kind, same in groupby(steps, key=lambda step: step.kind):
        if kind == COMPUTE:
            result.append(ChunkStep(COMPUTE, sum(step.ms for step in same)))
        else:
            result += same
    return tuple(result)


def _merged(preset: Preset, units: list[Unit]) -> Unit:
    """Return all units as one: each exchange of a layer once, with the bytes of all layers."""
    layers = [unit for unit in units if unit.layer >= 0]
    steps = [
        ChunkStep(step.kind, step.ms * len(layers), step.size_bytes * len(layers), step.of)
        for step in layers[0].forward
    ]
    steps += [step for unit in units if unit.layer < 0 for step in unit.forward]
    sums: dict[str, float] = {}
    for unit in units:
        for kind, count in unit.weights:
            sums[kind] = sums.get(kind, 0.0) + count
    forward = _joined(steps)
    return Unit("all layers", -1, tuple(sums.items()), forward, _backward(preset, forward))
