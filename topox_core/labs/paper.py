"""Pages of HTML for any printer, from the templates in ``paper/``: without a script, and all that is filled in is escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).with_suffix("")),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def on_paper(template: str, **facts: Any) -> str:
    """Return a template of ``paper/`` with what it names filled in."""
    return _templates().get_template(template).render(facts)
