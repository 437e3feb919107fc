"""Operations, parameters and bytes of a transformer, each formula with its source."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from topox_core.training.layer import UPDATE_BYTES


@dataclass(frozen=True)
class Transformer:
    """A decoder-only transformer.

    Attributes
    ----------
    layers, hidden, vocabulary
        L, h and V.
    feed_forward, feed_forward_matrices
        Width of the feed-forward block, and its matrices: 2 (GELU) or 3 (gated, SwiGLU).
    key_value
        Width of all key (and of all value) heads; h without grouped queries.
    """

    layers: int
    hidden: int
    vocabulary: int
    feed_forward: int
    feed_forward_matrices: int
    key_value: int

    @staticmethod
    def of(values: dict[str, Any]) -> Transformer:
        """Return the transformer that a workload's values describe."""
        return Transformer(**{field.name: values[field.name] for field in fields(Transformer)})

    @property
    def layer_matrix_parameters(self) -> int:
        """Weights of a layer: queries and output h*h, keys and values h*kv, feed-forward."""
        return (
            2 * self.hidden * (self.hidden + self.key_value)
            + self.feed_forward_matrices * self.hidden * self.feed_forward
        )

    @property
    def layer_parameters(self) -> int:
        """Matrices and two norms; biases are left out."""
        return self.layer_matrix_parameters + 2 * self.hidden

    @property
    def embedding_parameters(self) -> int:
        """One V x h table; input and output tables are counted apart (untied)."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All layers, both tables, the last norm."""
        return self.layers * self.layer_parameters + 2 * self.embedding_parameters + self.hidden

    def stage_layers(self, stage: int, stages: int) -> int:
        """Layers of a pipeline stage, as even as can be, earlier stages first."""
        return self.layers // stages + (stage < self.layers % stages)

    def stage_parameters(self, stage: int, stages: int) -> int:
        """Parameters of a stage; the first has the input table, the last output table and norm."""
        count = self.stage_layers(stage, stages) * self.layer_parameters
        count += self.embedding_parameters * (stage == 0)
        return count + (self.embedding_parameters + self.hidden) * (stage == stages - 1)

    def layer_forward_flop(self, tokens: int, sequence: int) -> float:
        """Forward operations of a layer: 2 a weight and token, 4*s*h a token for attention.

        Source: Narayanan et al., Efficient Large-Scale Language Model Training, SC 2021, appendix;
        the causal mask is not exploited there either.
        """
        return tokens * (2.0 * self.layer_matrix_parameters + 4.0 * sequence * self.hidden)

    def head_forward_flop(self, tokens: int) -> float:
        """Forward operations of the output layer: 2*V*h a token (same source)."""
        return 2.0 * tokens * self.embedding_parameters

    def stage_forward_flop(self, stage: int, stages: int, tokens: int, sequence: int) -> float:
        """Forward operations of a pipeline stage; looking up the input table is free."""
        flop = self.stage_layers(stage, stages) * self.layer_forward_flop(tokens, sequence)
        return flop + (self.head_forward_flop(tokens) if stage == stages - 1 else 0.0)


def compute_ms(flop: float, values: dict[str, Any]) -> float:
    """Return the time of ``flop`` on one server, in ms: peak TFLOP/s times efficiency."""
    per_ms = values["gpus_per_server"] * values["tflops"] * values["efficiency"] * 1e9
    return rounded_ms(flop / per_ms)


def update_ms(parameters: float, values: dict[str, Any]) -> float:
    """Return the time of an Adam step on one server's parameters, bound by memory, in ms."""
    return rounded_ms(
        parameters * UPDATE_BYTES / (values["gpus_per_server"] * values["memory_gb_per_s"] * 1e6)
    )


def rounded_ms(ms: float) -> float:
    """Round to the nanosecond: keeps files short, far below any tick."""
    return round(ms, 6)
