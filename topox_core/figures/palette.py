"""Colours: one meaning, one colour, on every chart (Okabe-Ito, adapted)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topox_core.fabrics.registry import ENTRIES
from topox_core.model.transfer_graph import BARRIER, COMPUTE, TRANSFER, TransferGraph

# What a bar means, as the small number that overview images store; 0 is idle.
IDLE, FORWARD, BACKWARD, UPDATE, SEND, GRADIENT, MODEL, EXPERT, DARK = range(9)

_COMPUTE_CATEGORY = {"forward": FORWARD, "backward": BACKWARD, "update": UPDATE}
_TRANSFER_CATEGORY = {
    "pp": SEND,
    "": SEND,
    "dp": GRADIENT,
    "fsdp": GRADIENT,
    "tp": MODEL,
    "mp": MODEL,
    "sp": MODEL,
    "ep": EXPERT,
    "cp": EXPERT,
}
_PARALLELISM_WORDS = {
    "pp": "pipeline send",
    "": "transfer",
    "dp": "gradient all-reduce (dp)",
    "fsdp": "sharded weights (fsdp)",
    "tp": "tensor exchange (tp)",
    "mp": "model exchange (mp)",
    "sp": "sequence exchange (sp)",
    "ep": "expert all-to-all (ep)",
    "cp": "context exchange (cp)",
}
CATEGORY_WORDS = {
    FORWARD: "forward",
    BACKWARD: "backward",
    UPDATE: "update",
    DARK: "dark (reconfiguring)",
}
CATEGORY_COLOURS = {
    FORWARD: "#56B4E9",
    BACKWARD: "#0072B2",
    UPDATE: "#8A8F98",
    SEND: "#E69F00",
    GRADIENT: "#007A5A",
    MODEL: "#F0E442",
    EXPERT: "#CC79A7",
    DARK: "#D55E00",
}
KIND_COLOURS = {
    "forward": CATEGORY_COLOURS[FORWARD],
    "backward": CATEGORY_COLOURS[BACKWARD],
    "update": CATEGORY_COLOURS[UPDATE],
}
CATEGORY_TEXT = {
    FORWARD: "#10151C",
    BACKWARD: "#FFFFFF",
    UPDATE: "#10151C",
    SEND: "#10151C",
    GRADIENT: "#FFFFFF",
    MODEL: "#10151C",
    EXPERT: "#10151C",
}
CATEGORY_LETTER = {FORWARD: "F", BACKWARD: "B", UPDATE: "U"}

VERMILION = "#D55E00"
_SWITCHES_LIGHT = (
    "#56B4E9",
    "#332288",
    "#F0E442",
    "#009E73",
    "#4A5568",
    "#DDCC77",
    "#661100",
    "#0072B2",
)
_SWITCHES_DARK = (
    "#56B4E9",
    "#5B4BC4",
    "#F0E442",
    "#009E73",
    "#7D8899",
    "#DDCC77",
    "#A33A2A",
    "#0072B2",
)


@dataclass(frozen=True)
class Theme:
    """The tokens of one theme; ``band`` and ``veil`` are translucent.

    Attributes
    ----------
    scale
        Of type, and of what must grow with it: 1, or more for the large type of a projector.
    """

    name: Literal["light", "dark"]
    page: str
    panel: str
    ink: str
    muted: str
    grid: str
    line: str
    band: str
    veil: str
    primary: str
    good: str
    bad: str
    cell: str
    cell_diagonal: str
    scale: float = 1.0

    def switch_colour(self, switch: int) -> str:
        """Return the colour of a switch; beyond eight switches colours repeat."""
        colours = _SWITCHES_LIGHT if self.name == "light" else _SWITCHES_DARK
        return colours[switch % len(colours)]

    def switch_text(self, switch: int) -> str:
        """Return the text colour that reads on a switch's colour."""
        return readable_on(self.switch_colour(switch))

    def fabric_colour(self, fabric: str) -> str:
        """Return the colour of a fabric; of one whose package is not installed here that of side notes."""
        known = ENTRIES.get(fabric)
        return known.colours[self.name == "dark"] if known else self.muted

    def fabric_text(self, fabric: str) -> str:
        """Return the text colour that reads on a fabric's colour."""
        return readable_on(self.fabric_colour(fabric))


LIGHT = Theme(
    "light",
    page="#FFFFFF",
    panel="#F4F6F8",
    ink="#1B2430",
    muted="#5C6878",
    grid="#E9EDF2",
    line="#C6CED8",
    band="rgba(27,36,48,0.035)",
    veil="rgba(255,255,255,0.55)",
    primary="#0072B2",
    good="#00735A",
    bad="#B34700",
    cell="#F4F6F8",
    cell_diagonal="#E9ECF1",
)
DARK_THEME = Theme(
    "dark",
    page="#10151C",
    panel="#18202A",
    ink="#E6EBF2",
    muted="#9AA7B7",
    grid="#232C38",
    line="#3A4757",
    band="rgba(255,255,255,0.035)",
    veil="rgba(16,21,28,0.55)",
    primary="#56B4E9",
    good="#3CC9A0",
    bad="#F08A4B",
    cell="#18202A",
    cell_diagonal="#232C38",
)


def theme_of(name: str) -> Theme:
    """Return the tokens of ``light`` or ``dark`` (anything else counts as light)."""
    return DARK_THEME if name == "dark" else LIGHT


def categories(graph: TransferGraph) -> NDArray[np.uint8]:
    """Return what each node's bar means (``FORWARD`` ... ``EXPERT``); barriers are ``IDLE``."""
    words = zip(graph.kind.tolist(), graph.task_kind, graph.parallelism, strict=True)
    return np.fromiter(
        (
            _COMPUTE_CATEGORY.get(kind, UPDATE)
            if node == COMPUTE
            else IDLE
            if node == BARRIER
            else _TRANSFER_CATEGORY.get(use, SEND)
            for node, kind, use in words
        ),
        np.uint8,
        len(graph),
    )


def traffic(graph: TransferGraph) -> list[str]:
    """Return the parallelisms of the transfers in a graph (``""`` where a transfer names none)."""
    return sorted(
        {
            use
            for kind, use in zip(graph.kind.tolist(), graph.parallelism, strict=True)
            if kind == TRANSFER
        }
    )


def category_words(parallelisms: Sequence[str]) -> dict[int, str]:
    """Return the legend's words for each category; of traffic only what occurs."""
    present = {
        category: [
            text
            for use, text in _PARALLELISM_WORDS.items()
            if _TRANSFER_CATEGORY[use] == category and use in parallelisms
        ]
        for category in (SEND, GRADIENT, MODEL, EXPERT)
    }
    return CATEGORY_WORDS | {one: ", ".join(texts) or "transfer" for one, texts in present.items()}


def traffic_category(use: str) -> int:
    """Return the category of a parallelism's traffic."""
    return _TRANSFER_CATEGORY.get(use, SEND)


def parallelism_word(use: str) -> str:
    """Return the words for a parallelism (``pp`` -> ``pipeline send``)."""
    return _PARALLELISM_WORDS.get(use, use)


def parallelism_colour(use: str) -> str:
    """Return the colour of a parallelism's traffic."""
    return CATEGORY_COLOURS[traffic_category(use)]


def blend(low: str, high: str, share: float) -> str:
    """Return the colour at a share (0 to 1) of the way between two, in plain RGB."""
    a, b = np.array(_rgb(low)), np.array(_rgb(high))
    return "#" + "".join(f"{round(v):02X}" for v in (a + (b - a) * share).tolist())


def readable_on(colour: str) -> str:
    """Return white or near black, whichever has more contrast with a colour (WCAG 2.2, relative luminance)."""
    channels = np.array(_rgb(colour)) / 255
    linear = np.where(channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    # Contrast with white is 1.05 / (l + 0.05), with near black (l + 0.05) / 0.0575.
    return "#FFFFFF" if float(linear @ [0.2126, 0.7152, 0.0722]) < 0.196 else "#10151C"


def faded(colour: str, opacity: float) -> str:
    """Return a colour (``#rrggbb``) through which what is behind it shows."""
    return f"rgba({','.join(map(str, _rgb(colour)))},{opacity:g})"


def _rgb(colour: str) -> list[int]:
    return [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
