"""Figures as files, at a size for print: pages that open anywhere and save their figures as pictures, and pictures by kaleido."""

import json
from collections.abc import Mapping
from html import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from topox_core.errors import InputError, refuse_if
from topox_core.figures.palette import LIGHT, Theme

# Print is on white. A figure is drawn this wide; a pixel becomes three by three in a PNG, which is
# 25 cm at 300 dots an inch.
PRINT: Theme = LIGHT
WIDTH, DOTS = 1000, 3
USUAL_HEIGHT = 450
PAGE, PICTURES = "html", ("png", "svg", "pdf")
_NEEDS = (
    "pictures need the package kaleido (pip install kaleido) and a Chrome or Chromium; "
    "a name that ends in .html needs neither"
)
_STYLE = """body { font: 15px sans-serif; color: #1b2430; background: #fff; max-width: 1000px; margin: 1.5rem auto; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .2rem; } button { margin-right: .5rem; }"""
_SAVE = """document.querySelectorAll("button").forEach(button => button.addEventListener("click", () =>
  Plotly.downloadImage(button.dataset.figure, JSON.parse(button.dataset.how))));"""


def picture_options(figure: go.Figure, form: str, name: str) -> dict[str, Any]:
    """Return how plotly in a browser saves a figure as ``png`` or ``svg``: its size for print, and what the file is called."""
    return {
        "format": form,
        "filename": name,
        "width": WIDTH,
        "height": picture_height(figure),
        "scale": DOTS if form == "png" else 1,
    }


def figures_page(title: str, figures: Mapping[str, go.Figure]) -> bytes:
    """Return one HTML file with figures by name, which opens without a network connection.

    All share one copy of plotly's library, by far the largest part; each has buttons that save it
    as PNG and as SVG.
    """
    parts = []
    for number, (name, figure) in enumerate(figures.items()):
        printed, mark = on_paper(figure), f"figure-{number}"
        letters = (c if c.isalnum() and c.isascii() else " " for c in f"{title} {name}".lower())
        stem = "-".join("".join(letters).split())
        body = printed.to_html(
            full_html=False,
            include_plotlyjs=False,
            div_id=mark,
            default_height=picture_height(figure),
            config={"displaylogo": False, "displayModeBar": False, "responsive": True},
        )
        parts.append(f"<h2>{escape(name)}</h2>{body}<p>")
        for form in PICTURES[:2]:
            how = escape(json.dumps(picture_options(figure, form, stem)), quote=True)
            parts.append(
                f'<button data-figure="{mark}" data-how="{how}">Save as {form.upper()}</button>'
            )
        parts.append("</p>")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><script>{get_plotlyjs()}</script></head><body><h1>{escape(title)}</h1>"
        f"{''.join(parts)}<script>{_SAVE}</script></body></html>"
    ).encode()


def on_paper(figure: go.Figure) -> go.Figure:
    """Return a figure on the colour of the page in place of none, in a typeface that every machine has.

    A picture knows no typeface of the page: words measured in that one would be cut.
    """
    copy = go.Figure(figure)
    copy.update_layout(
        paper_bgcolor=PRINT.page, plot_bgcolor=PRINT.page, font_family="Arial, sans-serif"
    )
    return copy


def check_figure_file(path: str) -> None:
    """Refuse, before anything is computed for it, a file that no figure can be written to.

    Raises
    ------
    InputError
        If the end of its name is none of a page or a picture, or pictures cannot be made here.
    """
    form = _form(path)
    known = ", ".join(f".{one}" for one in (PAGE, *PICTURES))
    refuse_if((form not in (PAGE, *PICTURES), f"must end in one of {known}"), file=path)
    refuse_if((form != PAGE and find_spec("kaleido") is None, _NEEDS), file=path)


def figure_file(figure: go.Figure, path: str, title: str) -> bytes:
    """Return what a file of that name holds: a page, or a picture that a Chrome on this machine draws.

    Raises
    ------
    InputError
        As :func:`check_figure_file`, and if there is no Chrome.
    """
    check_figure_file(path)
    form = _form(path)
    if form == PAGE:
        return figures_page(title, {title: figure})
    options = picture_options(figure, form, "")
    del options["filename"]
    kaleido, no_chrome = import_module("kaleido"), import_module("kaleido.errors")
    try:
        # Asked itself, and not through plotly, it can be told to load no formula setter from a network.
        picture: bytes = kaleido.calc_fig_sync(
            on_paper(figure).to_dict(), opts=options, kopts={"mathjax": False}
        )
    except (no_chrome.ChromeNotFoundError, RuntimeError, OSError):
        raise InputError(_NEEDS, file=path) from None
    return picture


def _form(path: str) -> str:
    return Path(path).suffix.removeprefix(".").lower()


def picture_height(figure: go.Figure) -> int:
    """Return how high a figure is as a picture, in px."""
    return round(figure.layout.height or USUAL_HEIGHT)
