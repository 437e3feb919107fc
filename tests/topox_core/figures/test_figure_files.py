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
    assert files.PRINT.page in own
    asked = [json.loads(unescape(how)) for how in re.findall(r'data-how="([^"]*)"', own)]
    assert [one["format"] for one in asked] == ["png", "svg", "png", "svg"]
    assert [one["filename"] for one in asked[::2]] == ["race-co-bars-1", "race-co-bars-2"]
    assert [(one["width"], one["height"], one["scale"]) for one in asked[:2]] == [
        (1000, 201, 3),
        (1000, 201, 1),
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
