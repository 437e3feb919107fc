"""A grid of marks or whole numbers as one control, by mouse, touch and keyboard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from topox_core.labs.generators.generator import Matrix

_CSS = """
.grid { overflow-x: auto; padding: 3px; font-family: var(--st-font); color: var(--st-text-color); }
table { border-collapse: collapse; } th { font-weight: 600; font-size: .85rem; padding: 2px 6px; text-align: center; }
tbody th { text-align: right; white-space: nowrap; } td { padding: 1px; }
[data-cell] { width: 2.2rem; height: 2.2rem; box-sizing: border-box; text-align: center; font: inherit; font-weight: 600;
  color: inherit; background: var(--st-background-color); border: 1px solid var(--st-text-color); border-radius: 4px; padding: 0; }
[data-cell][aria-checked="true"] { background: var(--st-primary-color); color: var(--st-background-color); }
[data-cell][aria-disabled="true"] { opacity: .55; border-style: dashed; }
[data-cell]:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 1px; }
"""
_grid = st.components.v2.component(
    "topox_lab_grid",
    html='<div class="grid"></div>',
    css=_CSS,
    js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8"),
)
# An empty cell of a grid of numbers is None until it is filled in.
Cells = list[list[int | None]]


def blank(matrix: Matrix) -> Cells:
    """Return a grid that nothing is written in: marks are 0, numbers are missing."""
    return [[0 if matrix.marks else None for _ in matrix.columns] for _ in matrix.rows]


def matrix_grid(
    key: str,
    matrix: Matrix,
    cells: Cells,
    turn: int,
    locked: bool,
    label: str,
    take: Callable[[Cells], None],
) -> None:
    """Draw the grid; ``take`` gets what a reader made of it.

    Parameters
    ----------
    turn
        A grid with another one is drawn anew from ``cells``; with the same one it keeps what is in it.
    """
    data = {
        "rows": list(matrix.rows),
        "columns": list(matrix.columns),
        "marks": matrix.marks,
        "symmetric": matrix.symmetric,
        "cells": cells,
        "turn": turn,
        "locked": locked,
        "label": label,
    }

    def changed() -> None:
        state: Any = st.session_state.get(key) or {}
        given = state.get("cells")
        if _is_grid(given, matrix):
            take(given)

    _grid(key=key, data=data, on_cells_change=changed)


def _is_grid(given: Any, matrix: Matrix) -> bool:
    """Whether what a browser sent has the shape of the grid; its numbers are read where answers are."""
    return (
        isinstance(given, list)
        and len(given) == len(matrix.rows)
        and all(isinstance(row, list) and len(row) == len(matrix.columns) for row in given)
    )
