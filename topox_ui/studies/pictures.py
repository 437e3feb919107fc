"""The pictures of a study: the map, the front, the tornado, lines over seeds; each with its table and a way into its runs."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from topox_core.fabrics.registry import FABRICS
from topox_core.figures.networks.buying import Swinging, swings_words, tornado
from topox_core.figures.palette import Theme
from topox_core.figures.studies.axes import MAX_LINES, measure_of_study, seed_lines, study_axis
from topox_core.figures.studies.cells import HeatMap, heat_legend, heat_map
from topox_core.figures.studies.points import Cloud, drawn_points, pareto_front
from topox_core.studies.keys import MEASURES, SEED, axis_label, value_label
from topox_core.studies.slices import (
    FABRIC_KEY,
    CloudRows,
    SeedLine,
    Slice,
    best,
    cells,
    cloud,
    in_unit,
    place,
)
from topox_core.studies.study_run import DELAY, PointRow
from topox_core.text.numbers import capitalised, count, plural, uncapitalised
from topox_ui.shell.charts import Content, chart, chart_title, escape, legend_line, quiet
from topox_ui.shell.downloads import Figures
from topox_ui.shell.menu import leave_for
from topox_ui.state.widgets import menu
from topox_ui.studies.choosing import (
    StudiesState,
    View,
    alone,
    point_words,
    swings_of,
)

FEW_SWINGS = 6
MAX_OPENED = 4  # runs that the view Kept runs sets side by side
DENSE = 6  # columns from which a narrow window has no room for numbers


def _clicked(facts: Any) -> None:
    """Open the runs of a mark, the first of what it says of itself, on the view Kept runs."""
    runs = facts[0] if isinstance(facts, list | tuple) and facts else None
    several = runs if isinstance(runs, list | tuple) else [runs]
    found = [str(int(run)) for run in several if isinstance(run, int | float)]
    if found:
        leave_for("Kept runs", **{"runs.chosen": ",".join(found[:MAX_OPENED])})


def map_picture(view: View) -> HeatMap:
    """Return the measure over two axes, as the map draws it."""
    across, up = view.across, view.up
    of = view.slice((across, up))
    x, y = (study_axis(view.key(key), view.values[key]) for key in (across, up))
    found = cells(view.result, of, across, up)
    return HeatMap(x, y, measure_of_study(of.measure, of.against), found, bool(of.against))


def map_section(view: View, theme: Theme, live: bool = False) -> None:
    """Draw the measure over two axes."""
    picture, of = map_picture(view), view.slice((view.across, view.up))
    x, y, title = picture.across.title, picture.up.title, capitalised(picture.measure.title)
    key = "study_map_dense" if len(picture.across.values) > DENSE else "study_map"
    known, every = picture.known(), len(picture.across.values) * len(picture.up.values)
    span = (
        f", from {picture.measure.words(min(known))} to {picture.measure.words(max(known))}"
        if known
        else ""
    )
    chart(
        heat_map(picture, theme),
        f"{key}{'_live' if live else ''}",
        f"{title} by {x} and {y}: {len(known):,} of {every:,} cells are computed{span}.",
        None if live else lambda: _map_table(view, of, picture),
        "Every cell",
        on_click=None if live else _clicked,
        title=(f"{escape(title)} over {escape(x)} and {escape(y)}", escape(at_words(view, of))),
    )
    better, worse = _sides(of)
    legend_line(heat_legend(picture, theme, better, worse), theme)


def _sides(of: Slice) -> tuple[str, str]:
    """Return what the two colours of the map say."""
    if of.against:
        other = uncapitalised(FABRICS.get(of.against, of.against))
        ours = uncapitalised(FABRICS.get(str(of.at.get(FABRIC_KEY, "")), "this one"))
        return f"{ours} better", f"{other} better"
    better = MEASURES[of.measure].better
    if not better:
        return "less", "more"
    return (
        ("more, which is better", "less") if better == "most" else ("less, which is better", "more")
    )


def at_words(view: View, of: Slice) -> str:
    """Return at which values of the other axes something is shown, and over what it is a mean."""
    words = [
        f"{uncapitalised(view.key(key).words)} {value_label(view.key(key), value)}"
        if key != FABRIC_KEY
        else axis_label(view.key(key), value)
        for key, value in of.at.items()
    ]
    seeds = len(view.values.get(SEED, ()))
    if seeds > 1:
        words.append(f"mean of {seeds} seeds")
    return "; ".join(words) or "every point of the study"


def _map_table(view: View, of: Slice, picture: HeatMap) -> Content:
    across, up, shown = view.across, view.up, _in_unit(of)
    return [
        {
            view.key(across).title: axis_label(view.key(across), a),
            view.key(up).title: axis_label(view.key(up), b),
            (MEASURES[of.measure].title if not of.against else "ratio"): shown(one.mean),
            "least": shown(one.least),
            "most": shown(one.most),
            "points": one.values,
            "remark": one.message,
        }
        for (a, b), one in picture.found.items()
    ]


def _in_unit(of: Slice) -> Callable[[float | None], float | None]:
    """Return how a table has what is looked at: in the unit of its title, a ratio as it is."""
    return (lambda ratio: ratio) if of.against else partial(in_unit, of.measure)


def front_picture(view: View) -> tuple[Cloud, int | None]:
    """Return every point by two measures, and the one that gives most for a dollar."""
    x, y = view.cloud
    third = _third(view)
    found = cloud(view.result, x, y, third)
    besides = [row.measure(third) for row in found.rows] if third else []
    picture = Cloud(
        measure_of_study(x),
        measure_of_study(y),
        found,
        tuple(point_words(view.result, row) for row in _over_delays(view, found)),
        tuple(measure_of_study(third).words(v) if v is not None else "" for v in besides),
    )
    chosen = best(view.result, "iterations_per_dollar", found.rows) if x == "dollars" else None
    star = found.rows.index(chosen) if chosen is not None else None
    return picture, star if star is not None and found.on_front[star] else None


def _over_delays(view: View, found: CloudRows) -> list[PointRow]:
    """Return the rows of a cloud, each with all delays next to one another at which its point is the same in place of its own."""
    delays = view.values.get(DELAY, ())
    if len(delays) < 2:
        return list(found.rows)
    k, alike = list(view.values).index(DELAY), defaultdict(list)
    for x, y, row in zip(found.x, found.y, found.rows, strict=True):
        alike[x, y, row.point[:k], row.point[k + 1 :]].append(row)
    named = {}
    for rows in alike.values():
        at = sorted(delays.index(place(row, list(view.values), DELAY)) for row in rows)
        ends = [value_label(view.key(DELAY), delays[one]) for one in (at[0], at[-1])]
        span = "any delay" if len(at) == len(delays) else " to ".join(ends)
        together = 1 < len(at) == at[-1] - at[0] + 1
        for row in rows:
            whole = replace(row, point=(*row.point[:k], span, *row.point[k + 1 :]))
            named[row.number] = whole if together else row
    return [named[row.number] for row in found.rows]


def _third(view: View) -> str:
    """Return the measure that counts beside price and time: power."""
    return "watts" if view.cloud[0] == "dollars" and "watts" in view.priced else ""


def front_section(view: View, theme: Theme, live: bool = False) -> None:
    """Draw every point by two measures, and what nothing beats."""
    if len(view.priced) < 2:
        return
    (x, y), third = view.cloud, _third(view)
    chart_title(
        "Best trade-offs",
        f"{escape(uncapitalised(MEASURES[y].words))} and {escape(uncapitalised(MEASURES[x].words))} of each point. "
        "No point is better in both than a point on the line"
        + ("; marked points off the line use less power" if third else ""),
    )
    picture, star = front_picture(view)
    found = picture.found
    if not found.x:
        quiet("No point with both measures is computed yet.")
        return
    on_line = {(found.x[k], found.y[k]) for k in found.steps}
    chart(
        pareto_front(picture, theme, star),
        f"study_front{'_live' if live else ''}",
        f"{plural(len(found.x), 'point')} by {uncapitalised(MEASURES[x].words)} and "
        f"{uncapitalised(MEASURES[y].words)}; best trade-offs: "
        + "; ".join(
            f"{picture.names[k]} ({picture.up.words(found.y[k])}, {picture.across.words(found.x[k])})"
            for k in found.steps[:8]
        ),
        None
        if live
        else lambda: list(
            {
                (picture.names[k], found.x[k], found.y[k]): {
                    "point": picture.names[k],
                    MEASURES[x].title: in_unit(x, found.x[k]),
                    MEASURES[y].title: in_unit(y, found.y[k]),
                    "on the line": (found.x[k], found.y[k]) in on_line,
                    "run": found.rows[k].run,
                }
                for k in range(len(found.x))
                if found.on_front[k]
            }.values()
        ),
        "The front",
        on_click=None if live else _clicked,
    )
    drawn, lines = len(drawn_points(picture)), []
    if drawn < len(found.x):
        lines.append(f"{count(drawn)} of {count(len(found.x))} points are drawn, all of the front.")
    if found.missing:
        lines.append(f"{plural(found.missing, 'point')} without these measures are left out.")
    if not view.result.complete:
        lines.append("More points appear as they are computed.")
    if not live and any(row.run is not None for row in found.rows):
        lines.append("A click on a point opens its run.")
    quiet(" ".join(lines))


def tornado_section(view: View, theme: Theme, live: bool = False) -> None:
    """Draw how far the measure swings when one axis moves alone."""
    result, measure = view.result, view.measure
    base = result.rows[0].measure(measure) if result.rows else None
    words = measure_of_study(measure)
    chart_title(
        f"Sensitivity: {escape(words.title)}",
        "one setting changes at a time; the largest effect on top",
    )
    if base is None:
        quiet("The point with all axes at their base is not computed yet.")
        return
    swings = swings_of(result, measure, base)
    table = [
        {
            "what moves": axis.key.words,
            "to": value_label(axis.key, row.point[k]),
            MEASURES[measure].title: in_unit(measure, value),
            "base": in_unit(measure, base),
        }
        for k, axis in enumerate(result.study.axes)
        for row in result.rows
        if row.point[k] is not None and (value := row.measure(measure)) is not None
    ]
    share, in_ms = MEASURES[measure].share, MEASURES[measure].unit == "ms"
    unit = "\u00a0%" if share else "\u00a0ms" if in_ms else ""
    few = len(swings) <= FEW_SWINGS  # what moves stands below its name then, and fits a phone
    of = Swinging(
        words.title,
        100.0 if share else 1.0,
        unit,
        words.words,
        words.words,
        ends_below=few,
    )
    chart(
        tornado(swings[:16], base, theme, of),
        f"tornado{'_few' if few else ''}{'_live' if live else ''}",
        f"{capitalised(words.title)}, now {words.words(base)}: {swings_words(swings[:16], of)}",
        None if live else lambda: table,
        "In numbers",
    )


def lines_section(view: View, theme: Theme, running: bool = False) -> None:
    """Draw the measure along one axis, a line for each value of another, with the band of the seeds."""
    axes = [*view.map_axes]
    if not axes:
        quiet(
            "Lines need an axis of at most 60 values. Parallel coordinates and the table show every point."
        )
        return
    numeric = [key for key in axes if view.key(key).numeric] or axes
    titles = {key: view.key(key).words for key in axes}
    along = view.chosen("along", axes, axes.index(numeric[0]))
    usual = [key for key in (FABRIC_KEY, *axes) if key in axes and key != along]
    options = ["none", *usual]
    each = view.chosen("each", options, 1)
    left, right = st.columns(2)
    menu(StudiesState, "along", titles, label="Along", value=along, at=left)
    menu(
        StudiesState,
        "each",
        {"none": "one line"} | {key: titles[key] for key in usual},
        label="A line for each",
        value=each,
        at=right,
    )
    of = view.slice([along] if each == "none" else [along, each])
    axis = study_axis(view.key(along), view.values[along])
    lines = _lines(view, of, along, "" if each == "none" else each)
    if not lines:
        later = "These lines are drawn once the points are computed."
        quiet(later if running else "No point of these lines is computed yet.")
        return
    if len(lines) > MAX_LINES:
        quiet(f"The first {MAX_LINES} of {len(lines)} lines; the table has all.")
    measure, shown = measure_of_study(of.measure, of.against), _in_unit(of)
    seeds = len(view.values.get(SEED, ())) > 1
    chart(
        seed_lines(lines[:MAX_LINES], axis, measure, theme),
        "study_lines",
        "; ".join(
            f"{one.name}: {' to '.join(measure.words(means[at] or 0.0) for at in (0, -1))}"
            for one in lines[:MAX_LINES]
            for means in [[cell.mean for cell in one.cells.values()]]
        ),
        lambda: [
            {
                "line": one.name,
                axis.title: axis.labels[at],
                "ratio" if of.against else MEASURES[of.measure].title: shown(cell.mean),
                "least": shown(cell.least),
                "most": shown(cell.most),
                "seeds": cell.values,
            }
            for one in lines
            for at, cell in one.cells.items()
        ],
        "Every line",
        on_click=_clicked,
        title=(
            f"{escape(capitalised(measure.title))} along {escape(axis.title)}",
            escape(at_words(view, of))
            + ("; band: from the least seed to the most" if seeds else ""),
        ),
    )


def _lines(view: View, of: Slice, along: str, each: str) -> list[SeedLine]:
    """Return a line for each value of another axis that has points; one of all points where ``each`` is empty."""
    found = cells(view.result, of, along, each or along)
    lines = []
    for line in view.values[each] if each else ("",):
        known = {
            k: one
            for k, value in enumerate(view.values[along])
            if (one := found.get((value, line if each else value))) is not None and one.values
        }
        name = value_label(view.key(each), line) if each else "all points"
        fabric = str(line) if each == FABRIC_KEY else ""
        lines += [SeedLine(name, known, fabric)] if known else []
    return lines


def figures_of(view: View) -> Figures:
    """Return the main pictures as files draw them."""
    figures: Figures = {}
    if not alone(view.result) and len(view.map_axes) > 1:
        figures["Map"] = lambda look: heat_map(map_picture(view), look)
    if len(view.priced) > 1 and any(row.done for row in view.result.rows):
        figures["Front"] = lambda look: pareto_front(front_picture(view)[0], look)
    return figures
