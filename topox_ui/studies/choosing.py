"""What of a study is looked at: measure, axes of the map, values of the other axes; the sidebar that chooses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from topox_core.fabrics.registry import FABRICS
from topox_core.studies.keys import (
    LABEL,
    MEASURES,
    SEED,
    Key,
    Value,
    axis_words,
    of_runs,
    value_label,
)
from topox_core.studies.slices import FABRIC_KEY, Slice, axis_values, place
from topox_core.studies.study_run import StudyResult
from topox_ui.state.widgets import menu, sidebar_part, slide
from topox_ui.studies.state import StudiesState

MAX_CELLS = 60  # values of an axis that a map still shows as cells
PAYS = ("iteration_ms", "joules_per_iteration")


@dataclass(frozen=True)
class View:
    """A study with what is chosen of it.

    Attributes
    ----------
    values
        Of every axis, by key, in the order in which figures have them.
    map_axes
        Those that a map or lines may span, the usual ones first.
    """

    result: StudyResult
    values: dict[str, tuple[Value, ...]]
    map_axes: tuple[str, ...]

    def key(self, name: str) -> Key:
        """Return an axis's key."""
        return next(axis.key for axis in self.result.study.axes if axis.key.name == name)

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that the study asks for, then the others of its kind."""
        asked = self.result.study.measures
        others = of_runs(self.result.study.subject.runs)
        return tuple(dict.fromkeys((*asked, *others)))

    def chosen(self, field: str, options: Sequence[str], default: int = 0) -> str:
        """Return a choice if it is one of the options, else the usual one; empty where there is none."""
        value = str(getattr(StudiesState.now(), field))
        if value in options:
            return value
        return options[min(default, len(options) - 1)] if options else ""

    @property
    def measure(self) -> str:
        """What the map and the lines show."""
        return self.chosen("measure", self.measures)

    @property
    def against(self) -> str:
        """The fabric that it is divided by; empty for the measure itself."""
        now = StudiesState.now().against
        return now if now in self.rivals else ""

    @property
    def rivals(self) -> tuple[str, ...]:
        """The fabrics that a measure may be divided by."""
        fabrics = tuple(str(v) for v in self.values.get(FABRIC_KEY, ()))
        return fabrics if len(fabrics) > 1 and self.measure in PAYS else ()

    @property
    def across(self) -> str:
        """The axis of the map's columns."""
        return self.chosen("across", self.map_axes)

    @property
    def up(self) -> str:
        """The axis of the map's rows."""
        rest = [key for key in self.map_axes if key != self.across]
        return self.chosen("up", rest)

    @property
    def priced(self) -> tuple[str, ...]:
        """The measures of which one way is better."""
        return tuple(name for name in self.measures if MEASURES[name].better)

    @property
    def cloud(self) -> tuple[str, str]:
        """The two measures of the front: first price and time, where there are both."""
        names = self.priced
        x = self.chosen("cloud_x", names, names.index("dollars") if "dollars" in names else 1)
        return x, self.chosen("cloud_y", [name for name in names if name != x])

    def at(self, used: Sequence[str]) -> dict[str, Value]:
        """Return the one value of each axis that is not used; seeds are averaged over."""
        now, found = StudiesState.now(), {}
        for key, values in self.values.items():
            if key in used or key in (SEED, LABEL):
                continue
            position = now.position(key)
            usual = values.index("scheduled") if "scheduled" in values else 0
            found[key] = values[usual if position is None else min(position, len(values) - 1)]
        return found

    def slice(self, used: Sequence[str]) -> Slice:
        """Return what is looked at, with one value for each axis that is not used."""
        return Slice(self.measure, self.at(used), self.against)


def view_of(result: StudyResult) -> View:
    """Return how a study is looked at."""
    values = {}
    for axis in result.study.axes:
        key = axis.key.name
        found = axis_values(result, key)
        keys = [one.key.name for one in result.study.axes]
        if any(place(row, keys, key) == "" for row in result.rows[:1]):
            found = ("", *found)
        values[key] = found
    few = [key for key, found in values.items() if 1 < len(found) <= MAX_CELLS]
    usual = [key for key in few if key not in (SEED, LABEL, FABRIC_KEY)]
    rest = [key for key in few if key not in usual and key != SEED]
    return View(result, values, (*usual, *rest))


def controls(view: View) -> None:
    """Draw the sidebar: the measure, the map's axes, and a value for each other axis."""
    with sidebar_part("Show"):
        names = {name: MEASURES[name].words for name in view.measures}
        menu("Measure", StudiesState, "measure", names, value=view.measure)
        if view.rivals:
            rivals = {"": "as it is"} | {
                name: f"against {FABRICS.get(name, name)}" for name in view.rivals
            }
            menu("Compared", StudiesState, "against", rivals, value=view.against)
        used: list[str] = []
        if len(view.map_axes) > 1:
            titles = {key: axis_words(view.key(key)) for key in view.map_axes}
            menu("Across", StudiesState, "across", titles, value=view.across)
            rest = {key: words for key, words in titles.items() if key != view.across}
            menu("Up", StudiesState, "up", rest, value=view.up)
            used = [view.across, view.up]
        _front_menus(view)
        for key, value in view.at(used).items():
            values = view.values[key]
            if len(values) < 2:
                continue
            _value_slider(view, key, value)


def _front_menus(view: View) -> None:
    """Draw the choice of the two measures of the front."""
    names = view.priced
    if len(names) < 2:
        return
    with st.expander("Measures of the front", key="front_menus", type="compact"):
        words = {name: MEASURES[name].words for name in names}
        menu("To the right", StudiesState, "cloud_x", words, value=view.cloud[0])
        rest = {name: text for name, text in words.items() if name != view.cloud[0]}
        menu("Upwards", StudiesState, "cloud_y", rest, value=view.cloud[1])


def _value_slider(view: View, key: str, value: Value) -> None:
    """Draw the choice of one value of an axis."""
    words, values = view.key(key), view.values[key]
    positions = {k: value_label(words, one) for k, one in enumerate(values)}

    def take(position: int) -> None:
        StudiesState.choose(at=StudiesState.now().with_item("at", key, position))

    now = values.index(value)
    field = f"at_{key.replace('.', '_')}"
    if words.numeric and len(set(positions.values())) == len(positions):
        slide(
            words.words,
            StudiesState,
            field,
            list(positions),
            value=now,
            words=positions.__getitem__,
            take=take,
        )
    else:
        menu(words.words, StudiesState, field, positions, value=now, take=take)
