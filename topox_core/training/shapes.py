"""Published transformers that jobs are made of."""

from __future__ import annotations

from dataclasses import replace

from topox_core.training.shape import Shape

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
