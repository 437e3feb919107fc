"""The one binding of controls to page states, or other values: a control shows what its state says, and a change of it goes there.

A control is made with its state's value and is never written to afterwards. Whenever the state says
something else than what the browser was last given or sent, or the options differ, a new control
takes its place; a change by the reader keeps the control. A value that is none of the options, or
that the state refuses, is not taken, and the control is drawn anew from the state.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from topox_core.figures.iteration.lanes import Lanes
from topox_core.schema.fields import Field, field_of, fields_of
from topox_core.text.glossary import label_help
from topox_core.text.numbers import capitalised, delay_label
from topox_ui.state.address import keep_address
from topox_ui.state.loading import choose_what_if
from topox_ui.state.scenario import Scenario
from topox_ui.state.session import PageState, Passing

Take = Callable[[Any], None]
Options = Mapping[Any, str] | Iterable[Any]
# How each kind of control is told what to show at first.
FIRST = {"selectbox": "index", "radio": "index"} | dict.fromkeys(
    ("segmented_control", "pills", "multiselect"), "default"
)


@dataclass
class _Shown:
    """What the browser shows of one control: ``value``, in the ``turn``-th control made for it."""

    turn: int
    value: Any
    options: tuple[Any, ...]
    labels: tuple[str, ...]


_SHOWN = Passing[dict[str, _Shown]]("controls")


def control(
    kind: str,
    model: type[PageState],
    field: str,
    options: Options | None = None,
    *,
    label: str = "",
    value: Any = None,
    take: Take | None = None,
    **more: Any,
) -> Any:
    """Draw a control of one field of a page's state, by default what takes the reader's choice; else as :func:`bound`.

    Parameters
    ----------
    label, help, options
        By default the field's title, its description, and the words that it may be.
    value
        What to show in place of the field: where that is None the value of the file, say. Where it
        is none of the options, the first of them is shown.
    """
    if take is None:
        chosen = choose_what_if if model is Scenario else model.choose
        take = lambda value: chosen(**{field: value})  # noqa: E731
    shown = getattr(model.now(), field) if value is None else value
    # A control of no field, such as one that only adds something, says all itself.
    said = fields_of(model).get(field) or field_of(str)
    says_more = said.description.lower() not in ("", said.title.lower())
    more = {"help": f"{capitalised(said.description)}." if says_more else ""} | more
    options = options if options is not None else said.choices or None
    if options and not isinstance(shown, tuple) and shown not in options:
        shown = next(iter(options))
    return bound(
        kind, label or said.title, _place(model, field), shown, take, options=options, **more
    )


def bound(
    kind: str,
    label: str,
    place: str,
    value: Any,
    take: Take,
    *,
    options: Options | None = None,
    words: Callable[[Any], str] | None = None,
    **more: Any,
) -> Any:
    """Draw a control of a value, None where nothing is chosen; return what it shows.

    Parameters
    ----------
    kind
        The name of Streamlit's command, such as ``select_slider``.
    place
        Tells it from every other control, and is what its key begins with.
    take
        What to do with the reader's choice.
    options, words
        What can be chosen, and its words: those of a mapping, else its text; no two options may have the same.
    more
        Options of Streamlit's command, and ``at``, where to draw it. What the glossary says of a
        term in the label comes before its ``help``.
    """
    if words is None:
        words = options.__getitem__ if isinstance(options, Mapping) else str
    choices = tuple(options or ())
    labels = tuple(map(words, choices))
    shown = _all_shown().get(place)
    if shown is None or (shown.value, shown.options, shown.labels) != (value, choices, labels):
        shown = _Shown(shown.turn + 1 if shown else 0, value, choices, labels)
    key = f"{place}-{shown.turn}"
    if options is not None:
        more |= {"options": choices, "format_func": words}
    more["help"] = label_help(label, more.get("help"))
    first, draw = FIRST.get(kind, "value"), getattr(more.pop("at", st), kind)
    more[first] = value
    if first == "index":
        more[first] = choices.index(value) if value in choices else None
    callback = {"on_change": _changed, "args": (place, shown.turn, key, take)}
    drawn = _plain(draw(label, key=key, **callback, **more))
    # Only now: the run of a page that is being left has ended at the line above.
    _all_shown()[place] = shown
    if drawn != shown.value:  # A change whose callback was lost with the page before.
        _changed(place, shown.turn, key, take)
        st.rerun()
    return value


def _all_shown() -> dict[str, _Shown]:
    return _SHOWN.get_or(dict)


def _place(model: type[PageState], field: str) -> str:
    """Return which control of which page this is; of the page that this run draws, since two runs may overlap."""
    context = get_script_run_ctx()
    page = context.page_script_hash[:6] if context else ""
    return f"w_{page}_{model.prefix.replace('.', '_')}{field}"


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _changed(place: str, turn: int, key: str, take: Take) -> None:
    """Take what the reader made of a control, unless the control was replaced since."""
    shown = _all_shown()[place]
    if shown.turn != turn or key not in st.session_state:
        return
    value = _plain(st.session_state[key])
    if value == shown.value:
        return
    shown.value = value
    one_by_one = value if isinstance(value, tuple) else (value,)
    if not shown.options or all(one in (*shown.options, None) for one in one_by_one):
        take(value)


# Where a page's own controls go: above what all pages have at the foot of the sidebar.
SIDE = Passing[DeltaGenerator]("sidebar")


def sidebar() -> DeltaGenerator:
    """Return the part of the sidebar that is the page's own."""
    return SIDE.get() or st.sidebar


@contextmanager
def sidebar_part(title: str) -> Iterator[None]:
    """Draw what follows in the sidebar, under a line and a heading of its own."""
    with sidebar():
        st.divider()
        st.html(f'<p class="side">{title}</p>')
        yield


# How a slider writes a value that is counted in a unit.
UNIT_WORDS: Mapping[str, Callable[[Any], str]] = {
    "Gbit/s": "{:g}G".format,
    "ms": delay_label,
    "us": "{:g} µs".format,
    "%": "{:g} %".format,
}


def slide(
    model: type[PageState],
    field: str,
    steps: Iterable[Any] = (),
    *,
    value: Any = None,
    words: Callable[[Any], str] | None = None,
    at_most: float = math.inf,
    **more: Any,
) -> Any:
    """Draw a slider over steps, the value among them; of steps with the same words one is left.

    Steps up to ``at_most`` and words are by default those of the field and of its unit.
    """
    now = getattr(model.now(), field) if value is None else value
    said = fields_of(model)[field]
    steps = tuple(steps) or [one for one in said.steps if one <= at_most]
    words = words or UNIT_WORDS.get(said.unit, str)
    shown = _all_shown().get(_place(model, field))
    before = shown.options if shown else ()
    # A value between the steps stays one when it is left: a slider with other steps loses the focus.
    between = [one for one in before if one not in steps]
    kept = between if len(between) == 1 and isinstance(between[0], type(now)) else []
    steps = sorted({words(step): step for step in (*kept, *steps, now)}.values())
    return control("select_slider", model, field, value=now, options=steps, words=words, **more)


# A choice of one among a few side by side, of one among many, of yes or no, and a box to tick.
pick = partial(control, "segmented_control", required=True)
menu = partial(control, "selectbox")
switch = partial(control, "toggle")
tick = partial(control, "checkbox")


def section(
    label: str,
    model: type[PageState],
    words: Mapping[str, str],
    draws: Mapping[str, Callable[[], object]],
    **more: Any,
) -> None:
    """Draw the choice of a section, the state's ``see``, and the section; ``draws`` has what draws each that there is."""
    there = {name: title for name, title in words.items() if name in draws}
    draws[pick(model, "see", there, label=label, label_visibility="collapsed", **more)]()


def number(model: type[PageState], field: str, **more: Any) -> Any:
    """Draw a field for a number from the least to the most that the state's field may be, its unit in the label."""
    said = fields_of(model)[field]
    more = {"label": said.label} | number_limits(said) | more
    return control("number_input", model, field, **more)


def number_limits(field: Field) -> dict[str, Any]:
    """Return the least and the most that a number's field may be, as a control takes them."""
    kind, limits = field.alternatives[0]
    least = limits.gt if limits.ge is None else limits.ge
    ends = {"min_value": least, "max_value": limits.le}
    return {name: None if end is None else kind(end) for name, end in ends.items()}


STEPS = 400


def stretch_in_view(
    model: type[PageState],
    whole_ms: float,
    first_ms: tuple[float, float],
    prefix: str = "",
    **more: Any,
) -> tuple[float, float]:
    """Draw the slider of a page whose state has ``from_ms`` and ``to_ms``; return begin and end in ms.

    Parameters
    ----------
    first_ms
        What is in view at first.
    prefix
        What the two fields begin with.
    """
    fields, whole_ms = [f"{prefix}from_ms", f"{prefix}to_ms"], max(whole_ms, 1e-9)
    chosen = [getattr(model.now(), name) for name in fields]
    low, high = (first if now is None else now for now, first in zip(chosen, first_ms, strict=True))
    step = whole_ms / STEPS
    view = (min(low, whole_ms - step), min(max(high, low + step), whole_ms))
    digits = max(0, math.ceil(-math.log10(step)))
    control(
        "slider",
        model,
        fields[0],
        label="Time window",
        value=view,
        min_value=0.0,
        max_value=whole_ms,
        step=step,
        take=lambda ends: model.choose(**dict(zip(fields, ends, strict=True))),
        format=f"%.{digits}f ms",
        label_visibility="collapsed",
        **more,
    )
    keep_address()
    return view


def servers_in_view(
    model: type[PageState], field: str, lanes: Lanes, first: int | None = None, **more: Any
) -> Lanes:
    """Draw the choice of servers where the lanes of all do not fit a screen; return the lanes in view.

    ``first``: a server in view while nothing is chosen.
    """
    servers, most = lanes.servers, lanes.most_servers
    if most >= servers:
        return lanes
    groups = {s: f"servers {s} to {min(s + most, servers) - 1}" for s in range(0, servers, most)}
    now = getattr(model.now(), field)
    shown = (first if now is None else now) // most * most
    chosen = menu(
        model,
        field,
        groups,
        label="Servers in view",
        value=shown,
        label_visibility="collapsed",
        **more,
    )
    return lanes.showing(chosen, chosen + most - 1)
