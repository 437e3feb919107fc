"""Figures as files: one library for all of a page, sizes for print, and one line where pictures cannot be made."""

import json
import re
from html import unescape
from types import SimpleNamespace

import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

from topox_core.cli.main import main
from topox_core.errors import InputError
from topox_core.figures import files

BARS = {f"Bars <{k}>": go.Figure(go.Bar(y=[k]), layout={"height": 200 + k}) for k in (1, 2)}


def test_a_page_of_figures_loads_nothing_and_has_the_library_once() -> None:
    page = files.figures_page("race & co", BARS).decode()
    assert page.count(get_plotlyjs()) == 1
    own = page.replace(get_plotlyjs(), "")
    assert not re.search(r'(src|href)="', own), "nothing comes from elsewhere"
    assert len(own) < 20_000
    assert "<h1>race &amp; co</h1>" in own and "<h2>Bars &lt;2&gt;</h2>" in own
    assert own.count("Plotly.newPlot") == 2
    assert files.PRINT.page in own


def test_each_figure_saves_itself_at_a_size_for_print() -> None:
    page = files.figures_page("race", BARS).decode()
    asked = [json.loads(unescape(how)) for how in re.findall(r'data-how="([^"]*)"', page)]
    assert [one["format"] for one in asked] == ["png", "svg", "png", "svg"]
    assert [one["filename"] for one in asked[::2]] == ["race-bars-1", "race-bars-2"]
    assert [(one["width"], one["height"], one["scale"]) for one in asked[:2]] == [
        (1000, 201, 3),
        (1000, 201, 1),
    ]


def test_without_kaleido_a_picture_is_refused_in_a_line_before_anything_is_solved(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    job = [f"sample_data/blackboard.{kind}.json" for kind in ("taskgraph", "cluster")]
    picture = tmp_path / "plan.png"
    assert main(["schedule", *job, "--engine", "list", "--figure", str(picture)]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    assert "pip install kaleido" in told.err and "Chrome" in told.err
    with pytest.raises(InputError, match=r"must end in one of \.html"):
        files.check_figure_file("plan.bmp")


def test_a_schedule_and_a_comparison_are_drawn_into_a_page(tmp_path, capsys) -> None:
    job = [f"sample_data/blackboard.{kind}.json" for kind in ("taskgraph", "cluster")]
    for command in (
        ["schedule", *job, "--engine", "list"],
        ["compare", *job, "--fabrics", "ideal"],
    ):
        page = tmp_path / f"{command[0]}.html"
        assert main([*command, "--figure", str(page)]) == 0
        assert "Plotly.newPlot" in page.read_text(encoding="utf-8")[-200_000:]


class NoChrome(Exception):
    """What kaleido raises where it finds no Chrome."""


@pytest.fixture
def kaleido(monkeypatch):
    """Stand in for the package, whether or not it is installed; what it draws, or raises, is set."""
    package = SimpleNamespace(ChromeNotFoundError=NoChrome)  # both of its modules
    monkeypatch.setattr(files, "find_spec", lambda name: object())
    monkeypatch.setattr(files, "import_module", lambda name: package)
    return package


def test_where_there_is_no_chrome_the_same_line_is_said(kaleido) -> None:
    def no_chrome(*_arguments, **_options):
        raise NoChrome

    kaleido.calc_fig_sync = no_chrome
    with pytest.raises(InputError, match="and a Chrome or Chromium"):
        files.figure_file(BARS["Bars <1>"], "plan.svg", "plan")


def test_a_picture_is_asked_for_at_its_size_on_white_and_without_a_network(kaleido) -> None:
    asked = {}

    def drawn(figure, opts, kopts):
        asked.update(opts, page=figure["layout"]["paper_bgcolor"], **kopts)
        return b"picture"

    kaleido.calc_fig_sync = drawn
    assert files.figure_file(BARS["Bars <1>"], "plan.png", "plan") == b"picture"
    size = {"width": 1000, "height": 201, "scale": 3}
    assert asked == {"format": "png", "page": files.PRINT.page, "mathjax": False, **size}
