"""What is trained: a decoder-only transformer, dense or with experts."""

from dataclasses import dataclass, replace
from typing import Annotated

from topox_core.schema.fields import plain_setting
from topox_core.schema.records import check_fields
from topox_core.training.checks import Rule, degree, divides, obey, short_text, width


@dataclass(frozen=True)
class Shape:
    """A transformer whose layers have one feed-forward block or several experts each.

    Attributes
    ----------
    name, title, source
        A word, a heading, and where the figures are from.
    layers, hidden, heads
        Layers, width of the residual stream, attention heads.
    key_value
        Width of all key heads together (``hidden`` without grouped queries).
    feed_forward, matrices
        Width of the feed-forward block, or of one expert, and its matrices: 2 (GELU) or 3 (gated).
    vocabulary, sequence
        Entries of the vocabulary, tokens of a training sequence.
    experts, top_k
        Experts of a layer and how many a token visits; 1 and 1 is a dense model.
    tied
        Input and output table are one.
    positions
        Learned positions, one row a token of the sequence, on the first stage.
    dropout
        Three dropouts per layer, as in GPT-2 and GPT-3.

    Raises
    ------
    InputError
        If a field is out of range, or one does not divide another.
    """

    name: Annotated[str, short_text()]
    title: Annotated[str, short_text()]
    source: str
    layers: Annotated[int, degree("Layers", "transformer layers")]
    hidden: Annotated[int, width("Hidden", "width of the residual stream")]
    heads: Annotated[int, degree("Heads", "attention heads")]
    key_value: Annotated[
        int,
        width("Keys", "width of all key heads together (hidden without grouped queries)"),
    ]
    feed_forward: Annotated[
        int, width("Feed-forward", "width of the feed-forward block, or of one expert")
    ]
    matrices: Annotated[
        int,
        plain_setting("Matrices", "of the block: 2 (GELU) or 3 (gated)", choices=(2, 3)),
    ]
    vocabulary: Annotated[int, width("Vocabulary", "entries of the vocabulary")]
    sequence: Annotated[int, width("Sequence", "sequence length", "tokens")]
    experts: Annotated[int, degree("Experts", "experts of a layer; 1: dense")] = 1
    top_k: Annotated[int, degree("Experts per token", "experts a token is sent to")] = 1
    tied: Annotated[
        bool, plain_setting("Tied tables", "whether input and output table are one")
    ] = False
    positions: Annotated[
        bool, plain_setting("Learned positions", "whether positions are learned")
    ] = False
    dropout: Annotated[bool, plain_setting("Dropout", "three dropouts a layer (GPT-2, GPT-3)")] = (
        False
    )

    def __post_init__(self) -> None:
        check_fields(self, item="shape")
        obey(self, "shape", "heads", [divides(self.hidden, "hidden")], self.hidden)
        width = self.hidden // self.heads
        keys = Rule(
            f"be whole heads of {width:,} that share the {self.heads:,} heads evenly",
            lambda one: one % width == 0 and self.heads % (one // width) == 0,
        )
        obey(self, "shape", "key_value", [keys], self.hidden)
        visits = Rule("be at most the number of experts", lambda one: one <= self.experts)
        obey(self, "shape", "top_k", [visits], self.experts)

    @property
    def key_heads(self) -> int:
        """Heads of keys and values."""
        return self.key_value * self.heads // self.hidden

    def keys_suit(self, tensor: int) -> bool:
        """Return whether so many GPUs share the heads of keys evenly, or so many of them hold each head."""
        return self.key_heads % tensor == 0 or tensor % self.key_heads == 0

    @property
    def attention_parameters(self) -> int:
        """Weights of a layer's attention: queries and output, keys and values."""
        return 2 * self.hidden * (self.hidden + self.key_value)

    @property
    def expert_parameters(self) -> int:
        """Weights of one expert, or of the feed-forward block."""
        return self.matrices * self.hidden * self.feed_forward

    @property
    def router_parameters(self) -> int:
        """Weights that choose the experts; a dense layer has none."""
        return self.hidden * self.experts if self.experts > 1 else 0

    @property
    def shared_parameters(self) -> int:
        """Weights of a layer besides its block or experts: attention, router, two norms."""
        return self.attention_parameters + self.router_parameters + 2 * self.hidden

    @property
    def layer_parameters(self) -> int:
        """Weights of a layer with all its experts; biases are left out."""
        return self.shared_parameters + self.experts * self.expert_parameters

    @property
    def table_parameters(self) -> int:
        """Weights of the input table, and of the output table."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All layers, the tables (one if tied), the last norm; learned positions are not counted."""
        tables = (1 if self.tied else 2) * self.table_parameters
        return self.layers * self.layer_parameters + tables + self.hidden

    @property
    def sequence_operations(self) -> float:
        """Operations that training needs for a sequence (Narayanan et al., SC 2021, appendix).

        The backward pass is two forward passes. Recomputing and the half of the scores that a causal mask
        skips change the time, not this count.
        """
        visited = self.top_k * self.expert_parameters
        layer = 2 * (self.attention_parameters + visited + self.router_parameters)
        scores = 4 * self.sequence * self.hidden
        token = self.layers * (layer + scores) + 2 * self.table_parameters
        return 3.0 * self.sequence * token


_LLAMA = "Llama 3 (Meta, arXiv 2407.21783, table 3)"
SHAPES: dict[str, Shape] = {
    name: Shape(name, title, _LLAMA, layers, hidden, heads, 1024, width, 3, 128_256, 8192)
    for name, title, layers, hidden, heads, width in (
        ("llama3-8b", "Llama 3 8B", 32, 4096, 32, 14_336),
        ("llama3-70b", "Llama 3 70B", 80, 8192, 64, 28_672),
        ("llama3-405b", "Llama 3 405B", 126, 16_384, 128, 53_248),
    )
}
SHAPES["mixtral-8x7b"] = Shape(
    "mixtral-8x7b",
    "Mixture of experts, 8 x 7B",
    "Mixtral (arXiv 2401.04088, table 1)",
    *(32, 4096, 32, 1024, 14_336, 3, 32_000, 8192),
    experts=8,
    top_k=2,
)


def gpt(name: str, layers: int, hidden: int, heads: int, sequence: int = 2048) -> Shape:
    """Return a GPT-3 as Megatron trains it: tied tables, learned positions, dropout, a block of 4 h."""
    count = 12 * layers * hidden * hidden
    return Shape(
        name,
        f"GPT, {count / 1e9:,.0f} billion parameters",
        "Narayanan et al., Efficient Large-Scale Language Model Training (SC 2021)",
        *(layers, hidden, heads, hidden, 4 * hidden, 2, 51_200, sequence),
        tied=True,
        positions=True,
        dropout=True,
    )


SHAPES["gpt3-175b"] = gpt("gpt3-175b", 96, 12_288, 96)
SHAPES["gpt2-small"] = replace(
    gpt("gpt2-small", 12, 768, 12, sequence=1024),
    title="GPT-2 small",
    source="Radford et al., Language Models are Unsupervised Multitask Learners (2019)",
    vocabulary=50_257,
)
SHAPES["deepseek-16b"] = Shape(
    "deepseek-16b",
    "DeepSeekMoE 16B",
    "DeepSeekMoE (arXiv 2401.06066), section 5; its two shared experts and dense first layer are left out",
    *(28, 2048, 16, 2048, 1408, 3, 102_400, 4096),
    experts=64,
    top_k=6,
)
