"""Figures as files: one library for all of a page, sizes for print, and one line where pictures cannot be made."""

import json
import re
from html import unescape
from types import SimpleNamespace

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

from topox_core.cli.main import main
from topox_core.errors import InputError
from topox_core.figures import files
from topox_core.figures.palette import LIGHT
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
    with pytest.raises(InputError, match=r"must end in one of \.html"):
        files.check_figure_file("plan.bmp")


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
    with pytest.raises(InputError, match="and a Chrome or Chromium"):
        files.figure_file(BARS["Bars <1>"], "plan.svg", "plan")


def test_a_copy_of_a_figure_is_the_same_figure_for_plotly() -> None:
    """Streamlit draws a figure and then a copy of it; what plotly would take for a change is drawn twice."""
    lengths = np.array([1.0, 2.0, 3.0])
    sent = json.loads(frame([go.Bar(x=lengths, base=lengths)], LIGHT, 100).to_json())
    assert "template" not in sent["layout"] and sent["layout"]["datarevision"]
    assert sent["data"][0]["x"] == sent["data"][0]["base"] == [1, 2, 3]
