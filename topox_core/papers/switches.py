"""Switches that several cards have."""

from __future__ import annotations

from topox_core.papers.card import Choice

VARIANTS = (("published", "as in the paper"), ("released", "as in the code"))
VARIANT = Choice(
    "variant", "Fixed circuits", "How TopologyFinder lays out the circuits.", VARIANTS, "published"
)
BYTES = Choice(
    "bytes",
    "Embedding element",
    "Bytes of an embedding element on the network; FlexNet released 8.",
    ((8, "8 bytes"), (4, "4 bytes")),
    8,
)
SHARE = Choice(
    "fat_tree",
    "Fat-tree of similar cost",
    "Its one NIC a server, as a share of d × B; the paper derives it from prices.",
    (
        (0.25, "a quarter of d × B"),
        (0.37, "0.37 of d × B"),
        (0.5, "half of d × B"),
        (1.0, "all of d × B"),
    ),
    0.37,
)
SPEED = Choice(
    "port_gbps",
    "Port speed",
    "B of the optical ports.",
    tuple((b, f"{b} Gbit/s") for b in (10, 25, 40, 100, 200)),
    100,
)


def seeds(meaning: str) -> Choice:
    """Return the switch of the seed, 0 to 4."""
    return Choice("seed", "Seed", meaning, tuple((i, str(i)) for i in range(5)), 0)


# Of rails: what the paper leaves open about weights and gradients.
REDUCE = Choice(
    "reduce",
    "Reduce-scatters",
    "When gradients are scattered; the paper does not say.",
    (
        ("pass", "in a burst after each backward pass"),
        ("layer", "layer by layer"),
        ("last", "in a burst after the last"),
    ),
    "pass",
)
REGATHER = Choice(
    "regather",
    "Weights for the backward pass",
    "Whether they are gathered again; Table 2 says no, the authors' configuration yes.",
    ((0, "kept"), (1, "gathered again")),
    0,
)
