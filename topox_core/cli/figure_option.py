"""``--figure FILE``: what a command found, drawn as the pages draw it, for print."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from topox_core.cli.files import must_be_writable, write
from topox_core.cli.options import Option

FIGURE = Option(
    "--figure FILE",
    str,
    "draw the result: .html, or .png, .svg, .pdf where kaleido and a Chrome are installed",
)


def check_figure(options: argparse.Namespace) -> None:
    """Refuse a file that no figure can be written to before anything is computed for it.

    Raises
    ------
    InputError
        Where it is one.
    """
    if options.figure:
        from topox_core.figures.files import check_figure_file

        must_be_writable(options.figure, (options.graph, options.cluster))
        check_figure_file(options.figure)


def write_figure(options: argparse.Namespace, subject: Any) -> None:
    """Draw what was found, where a figure was asked for.

    Raises
    ------
    InputError
        If there is nothing to draw, or no Chrome that draws a picture.
    """
    if options.figure:
        from topox_core.figures.drawing import figure_of
        from topox_core.figures.files import figure_file

        title = f"{options.command} {Path(options.graph).name.partition('.')[0]}"
        write(options.figure, figure_file(figure_of(subject), options.figure, title))
