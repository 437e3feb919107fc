"""Figures as files: one library a page, sizes for print; text is readable on every colour, colours that mean something differ."""

import json
import re
from html import unescape
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

from tests.refusal import refusal
from topox_core.cli.main import main
from topox_core.fabrics.registry import FABRICS
from topox_core.figures import files
from topox_core.figures.iteration.search import COLOURS
from topox_core.figures.palette import (
    CATEGORY_COLOURS,
    CATEGORY_TEXT,
    DARK_THEME,
    LIGHT,
    VERMILION,
    Theme,
    readable_on,
)
from topox_core.figures.studies.cells import _colours
from topox_core.figures.template import frame

JOB = [f"sample_data/blackboard.{kind}.json" for kind in ("taskgraph", "cluster")]
BARS = {f"Bars <{k}>": go.Figure(go.Bar(y=[k]), layout={"height": 200 + k}) for k in (1, 2)}


def test_a_page_of_figures_loads_nothing_has_the_library_once_and_saves_each_for_print() -> None:
    page = files.figures_page("race & co", BARS).decode()
    assert page.count(get_plotlyjs()) == 1
    own = page.replace(get_plotlyjs(), "")
    assert not re.search(r'(src|href)="', own), "nothing comes from elsewhere"
    assert len(own) < 20_000
    assert "<h1>race &amp; co</h1>" in own and "<h2>Bars &lt;2&gt;</h2>" in own
    assert own.count("Plotly.newPlot") == 2
    asked = [json.loads(unescape(how)) for how in re.findall(r'data-how="([^"]*)"', own)]
    assert [(one["filename"], one["format"], one["height"]) for one in asked] == [
        (f"race-co-bars-{k}", form, 200 + k) for k in (1, 2) for form in ("png", "svg")
    ]


def test_without_kaleido_a_picture_is_refused_in_a_line_before_anything_is_solved(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    picture = tmp_path / "plan.png"
    assert main(["schedule", *JOB, "--engine", "list", "--figure", str(picture)]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    assert "pip install kaleido" in told.err and "Chrome" in told.err
    assert "must end in one of .html" in refusal(files.check_figure_file, "plan.bmp")


@pytest.mark.parametrize(
    ("command", "options"), [("schedule", "--engine list"), ("compare", "--fabrics ideal")]
)
def test_a_schedule_and_a_comparison_are_drawn_into_a_page(command, options, tmp_path) -> None:
    page = tmp_path / "page.html"
    assert main([command, *JOB, *options.split(), "--figure", str(page)]) == 0
    assert "Plotly.newPlot" in page.read_text(encoding="utf-8")[-200_000:]


class NoChrome(Exception):
    """What kaleido raises where it finds no Chrome."""


def test_where_there_is_no_chrome_the_same_line_is_said(monkeypatch) -> None:
    def no_chrome(*_arguments, **_options):
        raise NoChrome

    package = SimpleNamespace(ChromeNotFoundError=NoChrome, calc_fig_sync=no_chrome)
    monkeypatch.setattr(files, "find_spec", lambda name: package)
    monkeypatch.setattr(files, "import_module", lambda name: package)
    assert "and a Chrome or Chromium" in refusal(
        files.figure_file, BARS["Bars <1>"], "plan.svg", "plan"
    )


def test_a_copy_of_a_figure_is_the_same_figure_for_plotly() -> None:
    """Streamlit draws a figure and then a copy of it; what plotly would take for a change is drawn twice."""
    lengths = np.array([1.0, 2.0, 3.0])
    sent = json.loads(frame([go.Bar(x=lengths, base=lengths)], LIGHT, 100).to_json())
    assert "template" not in sent["layout"] and sent["layout"]["datarevision"]
    assert sent["data"][0]["x"] == sent["data"][0]["base"] == [1, 2, 3]


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
