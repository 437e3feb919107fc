"""Text can be read on every colour that it is written on."""

import pytest

from topox_core.fabrics.registry import FABRICS
from topox_core.figures.palette import CATEGORY_COLOURS, CATEGORY_TEXT, DARK_THEME, LIGHT, Theme

READABLE = 4.5  # WCAG 2.2, success criterion 1.4.3, for text of ordinary size


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK_THEME], ids=lambda theme: theme.name)
def test_text_is_readable_on_page_bars_cells_and_switches(theme: Theme) -> None:
    pairs = [
        (text, ground)
        for text in (theme.ink, theme.muted, theme.primary, theme.good, theme.bad)
        for ground in (theme.page, theme.panel)
    ]
    pairs += [(theme.muted, ground) for ground in (theme.grid, theme.cell, theme.cell_diagonal)]
    pairs += [(text, CATEGORY_COLOURS[kind]) for kind, text in CATEGORY_TEXT.items()]
    pairs += [(theme.switch_text(k), theme.switch_colour(k)) for k in range(8)]
    pairs += [(theme.fabric_text(name), theme.fabric_colour(name)) for name in FABRICS]
    faint = {pair: contrast(*pair) for pair in pairs if contrast(*pair) < READABLE}
    assert faint == {}
