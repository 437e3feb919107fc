"""Text can be read on every colour that it is written on, and colours that mean something stay apart."""

from itertools import combinations

import numpy as np
import pytest

from topox_core.fabrics.registry import FABRICS
from topox_core.figures.maps import _colours
from topox_core.figures.palette import (
    CATEGORY_COLOURS,
    CATEGORY_TEXT,
    DARK_THEME,
    LIGHT,
    VERMILION,
    Theme,
    readable_on,
)
from topox_core.figures.search import COLOURS

BOTH = pytest.mark.parametrize("theme", [LIGHT, DARK_THEME], ids=lambda theme: theme.name)
READABLE = 4.5  # WCAG 2.2, success criterion 1.4.3, for text of ordinary size
# What Machado et al. (2009) make of linear RGB for somebody without green cones, and sRGB in XYZ (D65).
DEUTERANOPE = np.array(
    [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
)
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, seen_by: np.ndarray) -> np.ndarray:
    ratio = XYZ @ np.clip(seen_by @ linear(colour), 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@BOTH
def test_text_is_readable_on_page_bars_cells_and_switches(theme: Theme) -> None:
    pairs = [
        (text, ground)
        for text in (theme.ink, theme.muted, theme.primary, theme.good, theme.bad)
        for ground in (theme.page, theme.panel)
    ]
    pairs += [(theme.muted, ground) for ground in (theme.grid, theme.cell, theme.cell_diagonal)]
    pairs += [(text, CATEGORY_COLOURS[kind]) for kind, text in CATEGORY_TEXT.items()]
    pairs += [(theme.switch_text(k), theme.switch_colour(k)) for k in range(8)]
    names = (*FABRICS, "of a package that is gone")
    pairs += [(theme.fabric_text(name), theme.fabric_colour(name)) for name in names]
    pairs += [(readable_on(colour), colour) for colour in _colours(theme)]
    assert not [pair for pair in pairs if contrast(*pair) < READABLE]


@BOTH
def test_switches_engines_and_fabrics_stay_apart_from_one_another_and_from_the_page(
    theme: Theme,
) -> None:
    switches = [*(theme.switch_colour(k) for k in range(4)), VERMILION]
    fabrics = [theme.fabric_colour(name) for name in FABRICS if name != "ideal"]
    for colours, seen_by, least in (
        (switches, DEUTERANOPE, 15),
        ([*COLOURS[theme.name].values()], DEUTERANOPE, 15),
        (fabrics, np.eye(3), 20),
    ):
        for pair in combinations([*colours, theme.page], 2):
            one, other = (lab(colour, seen_by) for colour in pair)
            assert np.linalg.norm(one - other) > least, pair
