"""Studies: many what-ifs at once, built, run, watched and drawn, every point of them among it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.registry import FABRICS
from topox_core.figures.palette import Theme
from topox_core.figures.studies.axes import measure_of_study
from topox_core.figures.studies.points import Upright, drawn_rows, inside, parallel_axes
from topox_core.studies.keys import (
    MEASURES,
    Value,
    axis_label,
    axis_words,
    measure_words,
    value_label,
)
from topox_core.studies.slices import in_unit, records
from topox_core.studies.study import dump_study
from topox_core.studies.study_run import PointRow, StudyRun
from topox_core.text.numbers import count, plural
from topox_ui.runs.owner import run_owner
from topox_ui.shell.charts import (
    chart,
    chart_title,
    csv_of,
    frame,
    quiet,
    show_input_errors,
)
from topox_ui.shell.downloads import Figures, File, stem, take_away
from topox_ui.shell.terms import FOLLOW_S
from topox_ui.state.widgets import control, menu, section, sidebar_part, slide
from topox_ui.studies.builder import builder
from topox_ui.studies.choosing import VIEWS, StudiesState, View, alone, view_of
from topox_ui.studies.first_screen import back_button, first_screen, nothing_chosen, wrong_study
from topox_ui.studies.pictures import (
    figures_of,
    front_section,
    lines_section,
    map_section,
    tornado_section,
)
from topox_ui.studies.planning import POINTS, Asked, asked

MAX_UPRIGHTS = 9
SHOWN_ROWS = 500  # of a table on the page; files have all


def controls(view: View) -> None:
    """Draw the sidebar: the measure, the map's axes, and a value for each other axis."""
    with sidebar_part("Show"):
        names = {name: MEASURES[name].words for name in view.measures}
        menu(StudiesState, "measure", names, label="Measure", value=view.measure)
        if view.rivals:
            rivals = {"": "as it is"} | {
                name: f"against {FABRICS.get(name, name)}" for name in view.rivals
            }
            menu(StudiesState, "against", rivals, label="Compared", value=view.against)
        if alone(view.result):
            return  # each axis stands at its base while another one moves
        used: list[str] = []
        if len(view.map_axes) > 1:
            titles = {key: axis_words(view.key(key)) for key in view.map_axes}
            menu(StudiesState, "across", titles, label="Across", value=view.across)
            rest = {key: words for key, words in titles.items() if key != view.across}
            menu(StudiesState, "up", rest, label="Up", value=view.up)
            used = [view.across, view.up]
        _front_menus(view)
        for key, value in view.at(used).items():
            if len(view.values[key]) > 1:
                _value_slider(view, key, value)


def _front_menus(view: View) -> None:
    """Draw the choice of the two measures of the front."""
    names = view.priced
    if len(names) < 2:
        return
    with st.expander("Measures of the front", key="front_menus", type="compact"):
        words = {name: MEASURES[name].words for name in names}
        menu(StudiesState, "cloud_x", words, label="To the right", value=view.cloud[0])
        rest = {name: text for name, text in words.items() if name != view.cloud[0]}
        menu(StudiesState, "cloud_y", rest, label="Upwards", value=view.cloud[1])


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
            StudiesState,
            field,
            list(positions),
            label=words.words,
            value=now,
            words=positions.__getitem__,
            take=take,
        )
    else:
        menu(StudiesState, field, positions, label=words.words, value=now, take=take)


def parallel_section(view: View, held: Mapping[str, Any], theme: Theme) -> None:
    """Draw every point as a line through its axes and measures; sliders say which are left in, a table lists them."""
    rows = [row for row in view.result.rows if row.done and not row.failed]
    by_name = _uprights(view, rows)
    uprights = [*by_name.values()]
    if len(uprights) < 2:
        quiet("No point that can be drawn is computed yet.")
        return
    ranges, drawn = _ranges(uprights), drawn_rows(uprights)
    chart(
        parallel_axes(uprights, ranges, theme),
        "study_parallel",
        f"{plural(len(drawn), 'point')} as lines through {', '.join(one.title for one in uprights)}.",
        lambda: {
            one.title: [one.names[int(v or 0)] for v in one.values] if one.names else one.values
            for one in uprights
        },
        title=(
            "Every point as a line",
            "through its axes and its measures; points outside a range are faint",
        ),
    )
    left, right = st.columns([1, 1.6], gap="medium")
    with left:
        for number, (name, one) in enumerate(by_name.items()):
            _range_slider(number, one, name, ranges.get(number))
    within = inside(uprights, ranges)
    kept = [row for row, there in zip(rows, within.tolist(), strict=True) if there]
    with right:
        words = f"{count(len(kept))} of {plural(len(rows), 'point')} lie inside all ranges."
        if len(drawn) < len(rows):
            words += f" {count(len(drawn))} are drawn, evenly chosen."
        quiet(words)
        frame(
            [
                {
                    **{
                        axis.key.title: axis_label(
                            axis.key, held.get(axis.key.name, "") if value is None else value
                        )
                        for axis, value in zip(view.result.study.axes, row.point, strict=True)
                    },
                    **{
                        MEASURES[n].title: in_unit(n, row.measure(n))
                        for n in view.result.study.measures
                    },
                    "run": row.run,
                }
                for row in kept[:SHOWN_ROWS]
            ]
        )


def _uprights(view: View, rows: Sequence[PointRow]) -> dict[str, Upright]:
    """Return the upright axes by the key or the measure that each is of."""
    uprights: dict[str, Upright] = {}
    for k, axis in enumerate(view.result.study.axes):
        values = tuple("" if row.point[k] is None else row.point[k] for row in rows)
        different = set(values)
        if len(different) < 2:
            continue
        labels: tuple[str, ...] = ()
        if not (axis.key.numeric and all(isinstance(v, int | float) for v in different)):
            ordered = [v for v in view.values[axis.key.name] if v in different]
            labels = tuple(axis_label(axis.key, v) for v in ordered)
            values = tuple(map(ordered.index, values))
        title = axis_words(axis.key) + (f" ({axis.key.unit})" if axis.key.unit else "")
        uprights[axis.key.name] = Upright(title, values, labels)
    for name in view.result.study.measures:
        found = tuple(in_unit(name, row.measure(name)) for row in rows)
        if len({v for v in found if v is not None}) > 1 and len(uprights) < MAX_UPRIGHTS:
            uprights[name] = Upright(MEASURES[name].title, found)
    return uprights


def _ranges(uprights: Sequence[Upright]) -> dict[int, tuple[float, float]]:
    """Return the ranges that were chosen, by axis."""
    found = {}
    for key, ends in StudiesState.now().items("ranges").items():
        with suppress(ValueError, IndexError):  # a link may say anything
            number, low, high = int(key), float(ends[0]), float(ends[1])
            if 0 <= number < len(uprights):
                found[number] = (low, high)
    return found


def _range_slider(number: int, one: Upright, name: str, chosen: tuple[float, float] | None) -> None:
    places = sorted({float(v) for v in one.values if v is not None})
    words = _words(one, name)
    # A slider of a hundred steps is fine enough for a finger.
    if len(places) > 100:
        places = [places[round(k * (len(places) - 1) / 99)] for k in range(100)]
    steps = list({words(place): place for place in places}.values())
    if len(steps) < 2:
        return
    low, high = chosen or (steps[0], steps[-1])
    within = [step for step in steps if low <= step <= high] or steps

    def take(ends: Any) -> None:
        given = () if ends == (steps[0], steps[-1]) else map(repr, ends)
        StudiesState.choose(ranges=StudiesState.now().with_item("ranges", str(number), *given))

    control(
        "select_slider",
        StudiesState,
        f"range_{number}",
        label=one.title,
        value=(within[0], within[-1]),
        options=steps,
        words=words,
        take=take,
    )


def _words(one: Upright, name: str) -> Callable[[float], str]:
    if one.names:
        return lambda value: one.names[int(value)]
    if name in MEASURES and MEASURES[name].share:
        return lambda value: measure_words(name, value / 100)
    if name in MEASURES:
        return measure_of_study(name).words
    return lambda value: f"{value:.6g}"


def table_section(view: View, held: Mapping[str, Any]) -> None:
    """Draw the table of all points, in the order of the design; a setting that stays as it is has the value that holds."""
    found = records(view.result)
    chart_title("Every point", "in the order of the study; a missing point has no numbers yet")
    if len(found) > SHOWN_ROWS:
        quiet(f"The first {SHOWN_ROWS} of {count(len(found))} points; the file has all.")
    titles = {name: MEASURES[name].title for name in view.result.study.measures}
    titles |= {axis.key.name: axis.key.title for axis in view.result.study.axes}
    frame(
        [
            {
                titles.get(name, name): in_unit(name, value)
                if name in MEASURES
                else held.get(name, value)
                if value is None
                else value
                for name, value in row.items()
            }
            for row in found[:SHOWN_ROWS]
        ]
    )


def files_section(now: Asked, view: View, figures: Figures) -> None:
    """Offer the study, its table and its figures as files, and the link."""
    files: list[File] = [
        ("Study (JSON)", ".study.json", lambda: dump_study(now.plan.study)),
        (
            "Every point (CSV)",
            ".points.csv",
            lambda: csv_of(records(view.result, every_measure=True)),
        ),
    ]
    take_away(stem(now.plan.study.name, "study"), files, figures)


def pictures(now: Asked, theme: Theme) -> None:
    """Draw the main pictures; while points come in, again and again."""
    view = view_of(now.result)
    if now.running or now.result.done:
        controls(view)
    if now.running:
        _following(theme)
    elif now.result.done:
        _main(view, theme, live=False)


@st.fragment(run_every=FOLLOW_S)
def _following(theme: Theme) -> None:
    run = run_owner().run(POINTS)
    if not isinstance(run, StudyRun):
        return  # it waits for its turn, or has ended: the panel draws the page anew
    result = run.result()
    if result.done:
        _main(view_of(result), theme, live=True)


def _main(view: View, theme: Theme, live: bool) -> None:
    if alone(view.result):
        tornado_section(view, theme, live)
        return
    left, right = st.columns(2, gap="medium")
    with left:
        if len(view.map_axes) > 1:
            map_section(view, theme, live)
        else:
            quiet(
                "A map needs two axes of 2 to 60 values each; lines and parallel coordinates need fewer."
            )
    with right:
        front_section(view, theme, live)


def sections(now: Asked, theme: Theme) -> None:
    """Draw what else can be looked at, one at a time, and what can be taken away."""
    view = view_of(now.result)
    usual, begun = StudiesState.now().see, bool(now.result.done or now.running)
    if usual == "lines" and not begun:
        usual = "build"
    elif usual == "lines" and alone(now.result):  # of lines each would have two points
        usual = "table"
    draws: dict[str, Callable[[], None]] = {
        "lines": partial(lines_section, view, theme, now.running),
        "parallel": partial(parallel_section, view, now.plan.held, theme),
        "table": partial(table_section, view, now.plan.held),
        "build": partial(builder, now),
    }
    # A study that has not begun is one that may still be changed.
    fold = partial(st.expander, "Change the study", expanded=StudiesState.now().see != "lines")
    with st.container() if begun else fold(key="change_study"):
        section("Look at", StudiesState, VIEWS, draws, value=usual)
    files_section(now, view, figures_of(view) if begun else {})
    back_button()


def draw(theme: Theme) -> None:
    """Draw the view Ready and own studies."""
    if not StudiesState.now().of:
        with show_input_errors("Studies", "The run library <b>cannot be read</b>.", reset=None):
            nothing_chosen(theme)
        return
    try:
        now = asked()
    except InputError as error:
        wrong_study(error)
        return
    first_screen(now)
    pictures(now, theme)
    sections(now, theme)
