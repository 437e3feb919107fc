"""Drawing: headline, titles, lines, buttons, charts with their alternative text and table, KPIs, errors in one line."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from jinja2 import Environment, StrictUndefined
from streamlit.delta_generator import DeltaGenerator

from topox_core.check.report import CheckReport
from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.io.content import digest_of
from topox_core.io.exports import TASK_COLUMNS, task_rows
from topox_core.io.tables import harmless_on_screen, table_bytes
from topox_core.model.critical_path import CriticalPath
from topox_core.model.execution import Execution
from topox_core.text.foreign import escape_untrusted
from topox_core.text.glossary import label_help
from topox_core.text.numbers import plural
from topox_ui.shell.menu import job_name, page_link, row_of_views, source_name
from topox_ui.shell.terms import Follow, say_first, with_terms
from topox_ui.state.address import ASKED, follow_address
from topox_ui.state.loading import loaded, opened_by_itself, reset_what_ifs
from topox_ui.state.session import ADDRESS_DUE, notify_errors, show_notice

# A table: its rows, or its columns by name.
Content = pd.DataFrame | Mapping[str, Any] | Sequence[Mapping[str, Any]]
Table = Callable[[], Content]
# The camera of plotly is there, unseen: what saves a figure as a picture (pictures.js) presses it.
CAMERA = {"responsive": True, "displayModeBar": True, "modeBarButtons": [["toImage"]]}
PICTURES = ("png", "svg")
MANY = 1_000  # from here on the numbers of a column are written with separators
# A text column is as wide as its longest cell: Streamlit takes one long cell among short ones for an
# outlier, and cuts it.
LONG_TEXT, LETTER_PX, DIGIT_PX, EDGES_PX, MOST_PX = 18, 6, 7, 24, 420


def headline(kicker: str, finding: str, follow: Follow | None = None) -> None:
    """Write the kicker and the finding, HTML made of our own words and escaped names; ``follow`` as of :func:`say_first`."""
    say_first(kicker, finding, follow)
    row_of_views()
    show_notice()
    _ask_first()
    if opened_by_itself():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.html(
                '<p class="by-itself">This is a sample: no job was chosen.</p>', width="content"
            )
            page_link("Home", "Choose another job")


def _ask_first() -> None:
    """Ask whether an address may open what it names in place of the reader's own job."""
    other, own = ASKED.get(), loaded()
    if other is None or own is None:
        return
    name, kind = source_name(other), "sample" if other.source == "sample" else "generated"
    with st.container(horizontal=True, vertical_alignment="center", key="asked"):
        st.html(
            f'<p class="by-itself" role="status">This link opens <b>{name}</b> ({kind}). '
            f"You have <b>{job_name(own)}</b> open.</p>",
            width="content",
        )
        button("Keep mine", "keep_own", "check", ADDRESS_DUE.set, True, primary=True)
        button(f"Open {name}", "open_other", "open_in_new", follow_address)


def emphasised(words: str) -> str:
    """Return a sentence as HTML, its numbers with units in bold."""
    return re.sub(
        r"(?<![\w.,(])(\d[\d.,]*)\s(µs|ms|s|%)(?!\w)", r"<b>\1&nbsp;\2</b>", escape(words)
    )


def chart_title(title: str, note: str = "", beside: bool = False, at: Any = st) -> None:
    """Write a chart's title and its grey line, under the title or beside it, ``at`` a place of the page."""
    gap, place = ("&ensp;", "") if beside else ("", " class=under")
    at.html(with_terms(f'<p class="chart">{title}{gap}<span{place}>{note}</span></p>'))


def title_row(
    widths: Sequence[float], title: str, note: str = "", beside: bool = False
) -> list[DeltaGenerator]:
    """Write a chart's title as the first column of a row; return the others, where its controls go."""
    first, *others = st.columns(widths, vertical_alignment="bottom")
    chart_title(title, note, beside, first)
    return others


def beside(widths: int | Sequence[float], *draws: Callable[[], object]) -> None:
    """Draw parts of a page side by side."""
    for column, draw in zip(st.columns(widths, gap="medium"), draws, strict=True):
        with column:
            draw()


def when_opened(
    label: str, key: str, draw: Callable[[], object], compact: bool = False, icon: str | None = None
) -> bool:
    """Draw a box that opens, and what is in it only where it is open; return whether it is."""
    box = st.expander(
        label,
        key=key,
        on_change="rerun",
        icon=icon and f":material/{icon}:",
        type="compact" if compact else "default",
    )
    if box.open:
        with box:
            draw()
    return bool(box.open)


def quiet(line: str | None) -> None:
    """Write a small grey line, if there is one; it is HTML made of our own words and escaped names."""
    if line:
        write_html(f'<p class="quiet">{line}</p>')


def write_html(html: str) -> None:
    """Write a text block, HTML made of our own words and escaped names, with its terms explained."""
    st.html(with_terms(html))


def html_parts(template: Path, *used: Callable[..., str]) -> Any:
    """Return the macros of a template of HTML, which may call ``escape`` and what it uses by its name."""
    known = {one.__name__: one for one in (escape, *used)}
    macros = Environment(undefined=StrictUndefined, trim_blocks=True)
    return macros.from_string(template.read_text(encoding="utf-8"), known).module


def button(
    label: str,
    key: str,
    icon: str,
    on_click: Callable[..., object],
    *args: object,
    primary: bool = False,
    disabled: bool = False,
    help: str | None = None,
    beside: str = "",
) -> None:
    """Draw a button with a Material icon that calls ``on_click`` with ``args``; ``beside``: a line next to it, as of :func:`quiet`."""
    row = st.container(horizontal=True, vertical_alignment="center") if beside else nullcontext()
    with row:
        st.button(
            label,
            key=key,
            icon=f":material/{icon}:",
            on_click=on_click,
            args=args,
            type="primary" if primary else "secondary",
            disabled=disabled,
            help=help,
        )
        quiet(beside)


def file_box(
    label: str,
    key: str,
    take: Callable[[bytes, str], object],
    gone: Callable[[], object] = lambda: None,
    **options: Any,
) -> None:
    """Draw a box for a file; what is wrong with the one that is put into it is one line, and what was there stays.

    Parameters
    ----------
    take
        Is given the content of a file and its name.
    gone
        Is called where the file is taken out of the box.
    """
    st.file_uploader(label, key=key, on_change=_brought, args=(key, take, gone), **options)


@notify_errors()
def _brought(key: str, take: Callable[[bytes, str], object], gone: Callable[[], object]) -> None:
    file = st.session_state.get(key)
    if file is None:
        gone()
    else:
        take(file.getvalue(), file.name)


def escape(text: str) -> str:
    """Return text from a file or the address, safe within our HTML."""
    return escape_untrusted(text, "html")


def as_label(text: object) -> str:
    """Return the same, safe as a label of a control, a caption or a line in a box."""
    return escape_untrusted(text, "markdown")


def show_error(error: object) -> None:
    """Write what is wrong with something given as one line."""
    st.error(as_label(error), icon="⚠️")


@contextmanager
def show_input_errors(
    kicker: str = "",
    advice: str = "This setting <b>cannot be scheduled</b>. Change a what-if on the left, or go back to the file's values.",
    reset: Callable[[], None] | None = reset_what_ifs,
) -> Iterator[None]:
    """Turn bad input into one line on the page, and stop there; everything else is a bug and stays loud.

    Parameters
    ----------
    kicker, advice
        Of the headline in place of the page's; none is written without a kicker.
    reset
        What the button under it does; None draws no button.
    """
    try:
        yield
    except InputError as error:
        if kicker:
            headline(escape(kicker), advice)
        show_error(error)
        if kicker and reset is not None:
            st.button("Reset what-ifs", key="reset_here", on_click=reset)
        st.stop()


def chart(
    figure: go.Figure,
    key: str,
    alt: str,
    table: Table | None = None,
    table_name: str = "Table",
    on_click: Callable[[Any], object] | None = None,
    before_table: str = "",
    title: Sequence[str] = (),
) -> None:
    """Draw a figure and, when it is opened, the table of what it shows, both as files.

    Parameters
    ----------
    table
        None where it cannot be taken away from here: what is drawn again while something runs.
    on_click
        Is given what the mark that was clicked says of itself (its customdata).
    before_table
        A line between the two.
    title
        What stands above it: its title, and its grey line.
    """
    if title:
        chart_title(*title)
    options: dict[str, Any] = {}
    if on_click is not None:
        options = {"on_select": partial(_clicked, key, on_click), "selection_mode": "points"}
    st.plotly_chart(figure, theme=None, config=CAMERA, key=key, alt=alt, **options)
    if before_table:
        st.caption(before_table)
    if table is not None:
        draw = partial(_files_and_table, figure, key, table)
        when_opened(f"{table_name} · download", f"table_{key}", draw, compact=True)


def _files_and_table(figure: go.Figure, key: str, table: Table) -> None:
    content, name = table(), key.replace("_", "-")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        picture_buttons(key, name)
        for form, media_type, build in (
            ("CSV", "text/csv", lambda: csv_of(content)),
            ("JSON", "application/json", lambda: figure.to_json().encode()),
        ):
            st.download_button(
                form,
                data=build,
                file_name=f"{name}.{form.lower()}",
                mime=media_type,
                on_click="ignore",
                key=f"get_{form.lower()}_{key}",
                type="tertiary",
            )
    frame(content)


def picture_buttons(key: str, name: str, size: tuple[int, int] | None = None) -> None:
    """Draw the buttons that save a figure of the page as a picture; in px on its own paper, or as it stands there."""
    print_size = 'data-width="{}" data-height="{}"'.format(*size) if size else ""
    buttons = "".join(
        f'<button type="button" class="save" data-picture="{key}" data-form="{form}" data-name="{name}" '
        f"{print_size}>{form.upper()}</button>"
        for form in PICTURES
    )
    st.html(f'<p class="quiet">{buttons}</p>', width="content")


def csv_of(content: Content) -> bytes:
    """Return a table as a CSV file."""
    table = pd.DataFrame(content)
    filled = table.astype(object).where(table.notna(), None)
    return table_bytes([str(column) for column in table.columns], filled.to_numpy().tolist())


def clicked_facts(key: str) -> Any:
    """Return what the mark of a chart that was clicked says of itself, nothing where none was."""
    points = (st.session_state.get(key) or {}).get("selection", {}).get("points", [])
    return points[0].get("customdata") if points else None


def _clicked(key: str, on_click: Callable[[Any], object]) -> None:
    if facts := clicked_facts(key):
        on_click(facts)


def legend_line(keys: Iterable[tuple[str, str]], theme: Theme) -> None:
    """Write what colours and signs mean in a line that wraps; a key is a colour, or what else CSS draws, or nothing."""
    square = "display:inline-block;width:.8em;height:.8em;margin-right:.35em;vertical-align:-.08em"
    items = "".join(
        f'<span style="margin-right:1rem;white-space:nowrap;color:{theme.ink}">'
        + (f'<span style="{square};background:{look}"></span>' if look else "")
        + f"{escape(words)}</span> "
        for look, words in keys
    )
    st.html(f'<p class="quiet">{items}</p>')


def table_under(key: str, table: Table, name: str = "Table") -> None:
    """Offer a table that is built only when it is opened."""
    when_opened(name, f"table_{key}", lambda: frame(table()), compact=True)


def frame(
    content: Content,
    column_config: Mapping[str, Mapping[str, Any]] | None = None,
    css: pd.DataFrame | None = None,
    title: Sequence[str] = (),
) -> None:
    """Draw a table: at its own height while it is short, its headers explained by the glossary.

    Parameters
    ----------
    css
        How each cell is drawn, of the table's own shape.
    title
        As of :func:`chart`.
    """
    if title:
        chart_title(*title)
    table = without_formulas(pd.DataFrame(content))
    st.dataframe(
        table if css is None else table.style.apply(lambda _: css.to_numpy(), axis=None),
        hide_index=True,
        placeholder="",
        height="content" if len(table) <= 16 else 431,  # 12 whole rows under the header
        column_config=_explained(table, column_config or {}),
    )


def task_table(
    execution: Execution,
    path: CriticalPath | None = None,
    window_ms: tuple[float, float] = (-math.inf, math.inf),
) -> pd.DataFrame:
    """Return the tasks of an execution that overlap a stretch of time, a row each."""
    rows = pd.DataFrame(task_rows(execution, path), columns=list(TASK_COLUMNS))
    return rows[(rows["start_ms"] <= window_ms[1]) & (rows["end_ms"] >= window_ms[0])]


def editor(
    rows: Sequence[Mapping[str, Any]],
    name: str,
    take: Callable[[int, Mapping[str, Any]], object],
    **options: Any,
) -> None:
    """Draw a table in which numbers can be changed; its text cannot be a formula, and is not to be changed.

    Parameters
    ----------
    name
        What its key begins with. It is a new table whenever it shows something else: what was edited
        is in a page's choices, not in the widget.
    take
        Is given the number of each row that was edited, and by column what was put there.
    """
    key = f"{name}_{digest_of(rows)[:12]}"
    options = {"height": "content", "on_change": _edited, "args": (key, take)} | options
    table = without_formulas(pd.DataFrame(rows))
    st.data_editor(table, key=key, hide_index=True, num_rows="fixed", **options)


def _edited(key: str, take: Callable[[int, Mapping[str, Any]], object]) -> None:
    for row, cells in st.session_state[key]["edited_rows"].items():
        take(int(row), cells)


def _explained(
    table: pd.DataFrame, configured: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """Return how columns are drawn, each term with what the glossary says."""
    columns = dict(configured)
    for place, name in enumerate(map(str, table.columns)):
        own = columns.get(name) or _uncut(name, table.iloc[:, place])
        columns[name] = {**own, "help": own.get("help") or label_help(name)}
    return columns


def _uncut(name: str, column: pd.Series) -> Mapping[str, Any]:
    """Return how a column is drawn that nothing is said of: large numbers with separators, and no cell cut."""
    kinds = pd.api.types
    if not kinds.is_numeric_dtype(column):
        longest = max((len(cell) for cell in column if isinstance(cell, str)), default=0)
        wide = min(MOST_PX, LETTER_PX * longest + EDGES_PX) if longest > LONG_TEXT else None
        return st.column_config.Column(width=wide)
    if kinds.is_bool_dtype(column) or not (column.abs() >= MANY).any():
        return st.column_config.Column()
    # With empty cells whole numbers are floats.
    form, decimals = ("%,d", 0) if (column.dropna() % 1 == 0).all() else ("%,.2f", 3)
    # Streamlit measures a number without its separators, and cuts it.
    digits = len(f"{column.abs().max():,.0f}") + decimals
    wide = DIGIT_PX * max(digits, len(name)) + EDGES_PX
    return st.column_config.NumberColumn(format=form, width=wide)


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose text no spreadsheet calculates: Streamlit saves and copies what it shows."""
    safe = table.rename(columns=_without_formula)
    for place, kind in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            safe.isetitem(place, table.iloc[:, place].map(_without_formula))
    return safe


def _without_formula(cell: Any) -> Any:
    return harmless_on_screen(cell) if isinstance(cell, str) else cell


def checker_card(
    report: CheckReport,
    verdicts: Sequence[tuple[bool, str]],
    write: Callable[[str], None],
    of: str,
    page: str = "",
) -> None:
    """Draw what the independent checker found: in a line, rule by rule, each violation, and what was checked.

    Parameters
    ----------
    verdicts
        Whether each rule, or group of rules, is kept, and its words as HTML.
    write
        Writes HTML.
    of
        What a rule is called.
    page
        What the keys of its boxes begin with.
    """
    words = (
        f'<b class="bad">✗</b> The checker found {plural(report.violated, "violation")}.'
        if report.violated
        else '<b class="good">✓</b> The independent checker confirms every rule.'
    )
    write(f'<p class="quiet" style="margin-top:.5rem">{words}</p>')
    with st.expander("Rule by rule", key=f"{page}rules", type="compact", expanded=not report.ok):
        items = "".join(
            f'<li><b class="{"good" if ok else "bad"}">{"✓" if ok else "✗"}</b> {rule}</li>'
            for ok, rule in verdicts
        )
        write(f'<ul class="checks">{items}</ul>')
    if not report.ok:
        box = st.expander("Violations", key=f"{page}violations", type="compact", expanded=True)
        for line in report.lines(8):
            box.markdown(f":red[✗] {as_label(line)}")
    rows = [
        {of: one.name, "equation": one.label, "checked": one.checked, "violated": one.violated}
        for one in report.constraints
    ]
    when_opened("What was checked", f"{page}checked", lambda: frame(rows), compact=True)


def html_table(
    heads: Iterable[str],
    rows: Iterable[Sequence[str]],
    look: str = "",
    row_heads: bool = False,
    caption: str = "",
) -> str:
    """Return a table whose cells are HTML made of our own words and escaped names; ``row_heads``: the first cell names its row."""
    head = "".join(f'<th scope="col">{one}</th>' for one in heads)
    first = '<th scope="row">{}</th>' if row_heads else "<td>{}</td>"
    body = "".join(
        f"<tr>{first.format(name)}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for name, *cells in rows
    )
    above = f"<caption>{caption}</caption>" if caption else ""
    return (
        f'<table class="{look}">{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def facts(rows: Iterable[tuple[str, str]], wide: Iterable[tuple[str, str]] = ()) -> str:
    """Return facts as a list of names and values in HTML, under them the wide ones, each value below its name."""
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
    below = "".join(
        f'<dt class="wide">{name}</dt><dd class="wide">{value}</dd>'
        for name, value in wide
        if value
    )
    return f'<dl class="facts">{listed}{below}</dl>'


Kpi = tuple[str, str, str] | tuple[str, str, str, str, str]


def kpis(*values: Kpi) -> None:
    """Draw a row of KPIs: name, value, line under it, and where that is a change its arrow (``up``, ``down``) and colour."""
    for column, (name, value, line, *change) in zip(st.columns(len(values)), values, strict=True):
        arrow, colour = change or ("off", "off")
        column.metric(
            name,
            value,
            line,
            delta_arrow=arrow,  # type: ignore[arg-type]
            delta_color=colour,  # type: ignore[arg-type]
            help=label_help(name),
        )
