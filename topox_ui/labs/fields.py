"""A field for every type of question, a grid of cells too: what stands in it is kept until it is handed in, and locked afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from topox_core.io.limits import is_whole
from topox_core.labs.generators.four_jobs import NAMES
from topox_core.labs.generators.generator import Matrix
from topox_core.labs.hand_schedule import drawn_or_read
from topox_core.labs.keys import matrix_of
from topox_core.labs.lab import Lab, Question, Screen
from topox_ui.labs.state import DRAFTS, say
from topox_ui.shell.charts import as_label
from topox_ui.state.widgets import Take, bound

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
    js=Path(__file__).with_name("matrix_grid.js").read_text(encoding="utf-8"),
)


def _is_grid(given: Any, matrix: Matrix) -> bool:
    """Whether what a browser sent has the shape of the grid; its numbers are read where answers are."""
    return (
        isinstance(given, list)
        and len(given) == len(matrix.rows)
        and all(isinstance(row, list) and len(row) == len(matrix.columns) for row in given)
    )


LATEST_MS = 1_000
_drag = st.components.v2.component(
    "topox_lab_drag", js=Path(__file__).with_name("dragging.js").read_text(encoding="utf-8")
)
MAX_TYPED = 40
STEP_MS = 1.0


@dataclass(frozen=True)
class Field:
    """One field of a screen.

    Attributes
    ----------
    name
        Which one: the question's id, with a suffix for the lock after a discussion.
    value
        What was handed in last: it is locked, or stands in the field until something else is typed.
    """

    lab: Lab
    seed: int
    screen: Screen
    asked: Question
    name: str
    locked: bool = False
    value: Any = None

    @property
    def draft(self) -> Any:
        """What stands in it while it is open."""
        return DRAFTS.get_or(dict).get((self.lab.id, self.seed, self.name), self.value)

    def write(self, value: Any) -> None:
        """Let a value stand in it."""
        DRAFTS.get_or(dict)[self.lab.id, self.seed, self.name] = value

    def write_part(self, part: str, value: Any) -> None:
        """Write a part of it, a number without a needless point; None takes it out."""
        others = {name: one for name, one in (self.draft or {}).items() if name != part}
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        self.write(others if value is None else {**others, part: value})

    @property
    def shown(self) -> Any:
        """What it shows: the locked answer, or what stands in it."""
        return self.value if self.locked else self.draft

    def key(self, part: str = "") -> str:
        """Return what the key of its control, or of a part of it, begins with."""
        return f"lab_{self.lab.id}_{self.seed}_{self.name}{part}"

    def control(
        self,
        kind: str,
        label: str,
        value: Any,
        take: Take | None = None,
        part: str = "",
        **more: Any,
    ) -> Any:
        """Draw its control, or that of a part of it; what is chosen is written unless it is taken otherwise."""
        return bound(
            kind, label, self.key(part), value, take or self.write, disabled=self.locked, **more
        )


def answer_field(field: Field) -> None:
    """Draw the field of a question."""
    _DRAW[field.asked.type](field)


def is_filled(field: Field) -> bool:
    """Return whether something stands in a field that could be handed in."""
    value = field.draft
    match field.asked.type:
        case "grouping":
            return isinstance(value, dict) and len(value) == len(NAMES)
        case "matrix" if value is not None:
            return all(cell is not None for row in value for cell in row)
        case "order":
            return True
    return value not in (None, "", [], {})


def handed_in(field: Field) -> Any:
    """Return what a field hands in."""
    if field.asked.type == "order" and field.draft is None:
        return [option.id for option in field.asked.options]
    return field.draft


def _number(field: Field) -> None:
    asked = field.asked
    name = "field.number" if asked.unit else "field.plain_number"
    field.control(
        "text_input",
        as_label(say(name, id=asked.id, unit=asked.unit)),
        "" if field.shown is None else f"{field.shown}",
        max_chars=MAX_TYPED,
        width=320,
        icon=":material/lock:" if field.locked else None,
    )


def _choice(field: Field) -> None:
    field.control(
        "radio",
        say("field.choice", id=field.asked.id),
        field.shown,
        options={option.id: as_label(option.text) for option in field.asked.options},
        label_visibility="collapsed",
    )


def _multi(field: Field) -> None:
    chosen = field.shown or []
    st.html(f'<p class="quiet">{say("field.multi", id=field.asked.id)}</p>')
    with st.container(horizontal=True, gap="medium"):
        for option in field.asked.options:
            field.control(
                "checkbox",
                as_label(option.text),
                option.id in chosen,
                partial(_ticked, field, option.id),
                f"_{option.id}",
                width="content",
            )


def _ticked(field: Field, option: str, on: bool) -> None:
    others = [one for one in field.draft or [] if one != option]
    field.write([*others, option] if on else others)


def _order(field: Field) -> None:
    words = {option.id: as_label(option.text) for option in field.asked.options}
    ids = field.shown or [*words]
    for place, one in enumerate(ids):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"{place + 1}. {words.get(one, one)}", width=120)
            for step, name, icon in ((-1, "up", "arrow_upward"), (1, "down", "arrow_downward")):
                st.button(
                    say(f"field.{name}", option=words.get(one, one)),
                    key=field.key(f"_{one}_{name}"),
                    icon=f":material/{icon}:",
                    disabled=field.locked or not 0 <= place + step < len(ids),
                    on_click=_moved,
                    args=(field, ids, place, step),
                )


def _moved(field: Field, ids: Sequence[str], place: int, step: int) -> None:
    order = list(ids)
    order[place], order[place + step] = order[place + step], order[place]
    field.write(order)


def _matrix(field: Field) -> None:
    """Draw a grid of cells, which keeps what is in it."""
    matrix = matrix_of(field.lab, field.lab.question(field.asked.id), field.seed)
    # An empty cell of numbers is None until it is filled in.
    empty = [[0 if matrix.marks else None for _ in matrix.columns] for _ in matrix.rows]
    data = {
        **asdict(matrix),
        "cells": field.shown or empty,
        "locked": field.locked,
        "label": say("field.matrix", id=field.asked.id),
    }
    key = f"{field.key()}-grid"

    def changed() -> None:
        given = _sent(key, "cells")
        if _is_grid(given, matrix):
            field.write(given)

    _grid(key=key, data=data, on_cells_change=changed)


def _sent(key: str, name: str) -> Any:
    """Return what a component sent under a name."""
    state: Any = st.session_state.get(key) or {}
    return state.get(name)


def _grouping(field: Field) -> None:
    groups = field.shown or {}
    with st.container(horizontal=True, gap="medium"):
        for job in NAMES:
            field.control(
                "segmented_control",
                say("field.group", job=job),
                groups.get(job),
                partial(field.write_part, job),
                f"_{job}",
                options=("A", "B"),
                width="content",
            )


def _schedule(field: Field) -> None:
    starts = field.shown or {}
    graph = drawn_or_read(field.lab, field.screen, field.seed).graph()
    tasks = [task.id for task in graph.tasks]
    for task in tasks:
        _start(field, task, starts.get(task))
    if not field.locked:
        _let_bars_be_dragged(field, tasks)


def _let_bars_be_dragged(field: Field, tasks: list[str]) -> None:
    """Let bars of the hand Gantt chart on this page be dragged to whole ms."""
    key = f"lab_drag_{field.name}"

    def moved() -> None:
        given = _sent(key, "moved")
        if not isinstance(given, dict):
            return
        task, start = given.get("task"), given.get("start")
        if task in tasks and is_whole(start, 0, LATEST_MS):
            field.write_part(task, start)

    _drag(key=key, data={"tasks": tasks}, on_moved_change=moved)


def _start(field: Field, task: str, start: float | None) -> None:
    """Draw the start of one task with its two steps."""
    name = as_label(task)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        field.control(
            "number_input",
            say("field.start", task=name),
            None if start is None else float(start),
            partial(field.write_part, task),
            f"_{task}",
            step=STEP_MS,
            format="%g",
            width=92,
        )
        for by, word in ((-STEP_MS, "earlier"), (STEP_MS, "later")):
            st.button(
                say(f"field.{word}", task=name),
                key=field.key(f"_{task}_{word}"),
                disabled=field.locked,
                on_click=_stepped,
                args=(field, task, by),
            )


def _stepped(field: Field, task: str, by: float) -> None:
    before = (field.draft or {}).get(task)
    field.write_part(task, 0.0 if before is None else before + by)


def _text(field: Field) -> None:
    asked = field.asked
    written = field.control(
        "text_area",
        say("field.text", id=asked.id),
        field.shown or "",
        max_chars=asked.most,
        height=150,
    )
    length = len(written.strip())
    words = say("field.length", least=asked.least, most=asked.most, now=length)
    st.html(f'<p class="quiet">{words}</p>')


_DRAW: dict[str, Callable[[Field], None]] = {
    "number": _number,
    "choice": _choice,
    "multi": _multi,
    "order": _order,
    "matrix": _matrix,
    "grouping": _grouping,
    "schedule": _schedule,
    "text": _text,
}
