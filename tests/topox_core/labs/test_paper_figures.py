"""Figures on paper: of what is given alone, well-formed, the same for everybody where an answer could be read off."""

from __future__ import annotations

import re
from itertools import product
from xml.etree import ElementTree

import pytest

from tests.labs_answered import LABS
from topox_core.labs.keys import instance_of
from topox_core.labs.paper_figures import answer_grid, given_figure


@pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.id)
def test_every_figure_is_well_formed_and_within_its_frame(lab) -> None:
    asked = [screen for screen in lab.screens if screen.questions]
    for draw, screen, seed in product((given_figure, answer_grid), asked, (0, 1, 2, 58157343)):
        if svg := draw(lab, screen, seed):
            root = ElementTree.fromstring(svg)
            assert root.attrib["aria-label"]
            ends = root.attrib["viewBox"].split()[2:]
            for names, end in zip(
                (("x", "x1", "x2", "cx"), ("y", "y1", "y2", "cy")), ends, strict=True
            ):
                at = [
                    float(one.attrib[name]) for one in root for name in names if name in one.attrib
                ]
                assert all(0 <= place <= float(end) for place in at)


def test_axes_to_draw_on_are_the_same_for_every_seed() -> None:
    lab = LABS["crossover"]
    screen = next(one for one in lab.screens if one.questions)
    assert given_figure(lab, screen, 1) == given_figure(lab, screen, 2)


def test_a_grid_is_longer_than_any_answer() -> None:
    """It reaches to where everything is done one after another."""
    lab = LABS["six-tasks"]
    screen = lab.screens[lab.screen_of("W1")]
    for seed in range(20):
        board = instance_of(lab, screen, seed)
        numbers = map(int, re.findall(r">(\d+)</text>", answer_grid(lab, screen, seed)))
        assert board.optimum_ms < board.sum_ms < max(numbers) + 5
