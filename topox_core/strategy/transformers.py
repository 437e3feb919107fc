"""Transformers: BERT as TopoOpt runs it, and large language models, dense or with experts."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.strategy.blueprint import FLOAT_BYTES, Blueprint
from topox_core.strategy.costs import A100, H100, Work
from topox_core.strategy.operators import OperatorGraph, Weight
from topox_core.training import shape as training
from topox_core.training import shapes as training_shapes
from topox_core.workloads.arithmetic import Transformer

# Bytes of BF16 activations and weights.
HALF = 2
# Bytes a parameter of mixed-precision Adam: weight 2, gradient 4, FP32 copy and two moments 12
# (ZeRO, SC 2020, section 3.1, with gradients accumulated in FP32).
STATE_BYTES = 18


@dataclass(frozen=True)
class Shape:
    """A decoder-only transformer, each layer with one feed-forward block or several experts.

    Attributes
    ----------
    base
        Layers, widths and vocabulary; its feed-forward block is one expert.
    heads, key_heads
        Attention heads, and heads of keys and values.
    sequence
        Tokens of a training sequence.
    experts, top_k
        Experts of a layer and how many a token visits; 1 and 1 is a dense model.
    batch
        Sequences of an iteration if nobody says otherwise.
    """

    name: str
    title: str
    source: str
    base: Transformer
    heads: int
    key_heads: int
    sequence: int
    batch: int
    experts: int = 1
    top_k: int = 1

    @property
    def expert_parameters(self) -> int:
        """Weights of one expert (of the feed-forward block)."""
        return self.base.feed_forward_matrices * self.base.hidden * self.base.feed_forward

    @property
    def router_parameters(self) -> int:
        """Weights that choose the experts; a dense layer has none."""
        return self.base.hidden * self.experts if self.experts > 1 else 0

    @property
    def shared_parameters(self) -> int:
        """Weights of a layer that every token uses: attention, norms, router."""
        return self.base.layer_parameters - self.expert_parameters + self.router_parameters

    @property
    def layer_parameters(self) -> int:
        """Weights of a layer with all its experts."""
        return self.shared_parameters + self.experts * self.expert_parameters

    @property
    def parameters(self) -> int:
        """All layers, both tables, the last norm."""
        return (
            self.base.layers * self.layer_parameters
            + 2 * self.base.embedding_parameters
            + self.base.hidden
        )

    def trained(self, sequence: int | None = None) -> training.Shape:
        """Return the shape as a training job has it, for sequences of another length if given."""
        base = self.base
        return training.Shape(
            self.name,
            self.title,
            self.source,
            base.layers,
            base.hidden,
            self.heads,
            base.key_value,
            base.feed_forward,
            base.feed_forward_matrices,
            base.vocabulary,
            sequence or self.sequence,
            experts=self.experts,
            top_k=self.top_k,
        )

    def attention_flop(self, tokens: float, sequence: int) -> float:
        """Forward operations of a layer's attention (counted as in Narayanan et al., SC 2021)."""
        matrices = (
            2 * self.base.hidden * (self.base.hidden + self.base.key_value) + self.router_parameters
        )
        return tokens * (2.0 * matrices + 4.0 * sequence * self.base.hidden)

    def feed_forward_flop(self, tokens: float) -> float:
        """Forward operations of a feed-forward block: a token visits ``top_k`` experts."""
        return 2.0 * tokens * self.top_k * self.expert_parameters


_COUNTS = "operation counts: Narayanan et al. (SC 2021)"


def _ranked(name: str, batch: int) -> Shape:
    """Return a published shape as plans and operator graphs have it."""
    one = training_shapes.SHAPES[name]
    base = Transformer(
        one.layers, one.hidden, one.vocabulary, one.feed_forward, one.matrices, one.key_value
    )
    return Shape(
        name,
        one.title,
        f"{one.source}; {_COUNTS}",
        base,
        *(one.heads, one.key_heads, one.sequence, batch, one.experts, one.top_k),
    )


SHAPES = {
    name: _ranked(name, batch)
    for name, batch in (
        ("llama3-8b", 512),
        ("llama3-70b", 1024),
        ("llama3-405b", 2048),
        ("mixtral-8x7b", 512),
    )
}


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
    """Return a language model of :data:`SHAPES` as an operator graph; a sample is one sequence.

    A server's eight GPUs share every operator (tensor parallel inside the server) and hold its
    training state once; the backward pass repeats the forward pass, so that only what flows between
    operators is kept. Experts of one layer are one operator here; spreading them is for
    :mod:`topox_core.strategy.plans`.
    """
    shape = SHAPES[name]
    base, sequence = shape.base, shape.sequence
    plan = Blueprint(name, shape.title, shape.source, servers, 8, H100)
    row = HALF * sequence * base.hidden

    def add(
        title: str, kind: str, parameters: int, flop: float, output: float, after: tuple[str, ...]
    ) -> str:
        work = Work(
            flop=flop,
            moved_bytes=3.0 * row,
            weight_bytes=HALF * parameters / H100.gpus,
            state_bytes=STATE_BYTES * parameters / H100.gpus,
            kept_bytes=row / 2,
            backward=3.0,
        )
        return plan.add(title, kind, work, output, after, (Weight("weight", parameters),))

    below = add("words", "lookup", base.embedding_parameters, 0.0, row, ())
    for i in range(base.layers):
        flop = shape.attention_flop(sequence, sequence)
        below = add(f"attention{i}", "attention", shape.shared_parameters, flop, row, (below,))
        kind, parameters = (
            ("experts" if shape.experts > 1 else "dense"),
            shape.experts * shape.expert_parameters,
        )
        below = add(
            f"{kind}{i}", kind, parameters, shape.feed_forward_flop(sequence), row, (below,)
        )
    add(
        "head",
        "dense",
        base.embedding_parameters + base.hidden,
        base.head_forward_flop(sequence),
        4.0 * sequence,
        (below,),
    )
    return plan.graph()
