"""Figures on paper: of what is given alone, well-formed, the same for everybody where an answer could be read off."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.labs_answered import LABS
from topox_core.labs.keys import instance_of
from topox_core.labs.paper_figures import answer_grid, given_figure

SCREENS = [(lab, screen) for lab in LABS.values() for screen in lab.screens if screen.questions]


def drawn(lab, screen, seed: int) -> list[str]:
    return [svg for svg in (given_figure(lab, screen, seed), answer_grid(lab, screen, seed)) if svg]


@pytest.mark.parametrize("lab", LABS.values(), ids=lambda lab: lab.id)
def test_every_figure_is_well_formed_and_within_its_frame(lab) -> None:
    for screen in (screen for owner, screen in SCREENS if owner is lab):
        for seed in (0, 1, 2, 58157343):
            for svg in drawn(lab, screen, seed):
                root = ElementTree.fromstring(svg)
                _, _, width, height = map(float, root.attrib["viewBox"].split())
                assert root.attrib["aria-label"]
                for one in root:
                    at = one.attrib
                    for name in {"x", "x1", "x2", "cx"} & set(at):
                        assert 0 <= float(at[name]) <= width, at
                    for name in {"y", "y1", "y2", "cy"} & set(at):
                        assert 0 <= float(at[name]) <= height, at


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
        numbers = [
            int(text) for text in re.findall(r">(\d+)</text>", answer_grid(lab, screen, seed))
        ]
        assert board.sum_ms - 5 < max(numbers) <= board.sum_ms
        assert board.optimum_ms < board.sum_ms
