"""Accuracy: what is predicted here against what was measured, published or simulated elsewhere, and what is not modelled."""

from functools import cache

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.figures.predictions import error_dots, names_of
from topox_core.papers.accuracy import NOT_MODELLED, Kind, as_record, kinds
from topox_core.text.numbers import percent, plural
from topox_ui.shell.charts import chart, chart_title, escape, headline, quiet, write_html
from topox_ui.shell.downloads import link_menu

# Which kinds the headline speaks of: nothing was fitted to them.
ITERATIONS, COLLECTIVES = (
    ("megatron", "uncalibrated"),
    ("collectives-astra-sim", "collectives-loggopsim"),
)

COLUMNS = ("prediction, against what", "median", "90 %", "worst")


@cache
def _kinds() -> tuple[Kind, ...]:
    return tuple(kinds())


def draw(theme: Theme) -> None:
    """Draw the finding, a dot for each comparison, a row for each kind, every comparison, and what is not modelled."""
    with st.spinner("Computing some 300 predictions: a few seconds, once on this server"):
        found = _kinds()
    by_name = {one.name: one for one in found}
    iterations, others = (by_name[one] for one in ITERATIONS)
    collectives = max((by_name[one] for one in COLLECTIVES), key=lambda kind: kind.most)
    headline(
        "Papers · accuracy",
        f"Nothing was fitted to {iterations.count} iterations of Megatron-LM on A100: <b>{_off(iterations.share(50))}</b> off in the "
        f"median; nor to {others.count} on H100: {_off(others.share(50))}. Collectives are at most {_off(collectives.most)} off two "
        "simulators. No measured run on optical switches was at hand.",
    )
    chart_title(
        "How far off", "a dot is one comparison, the bar their median; hollow: held by a test"
    )
    worst = max((one for one in found if one.worst), key=lambda one: one.most)
    chart(
        error_dots(found, theme),
        "accuracy_dots",
        f"{sum(one.count for one in found)} comparisons in {len(found)} kinds: {', '.join(names_of(found))}. "
        f"Furthest off is {worst.worst and worst.worst.subject}: {_off(worst.most)}.",
        lambda: [{"kind": one.name, **row} for one in found for row in as_record(one)["rows"]],
        "Every comparison",
    )
    rows = "".join(map(_row, names_of(found), found))
    heads = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    write_html(f'<table class="fits"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>')
    quiet(
        "The largest errors are of published tables whose set-up is printed in part; Tables and figures gives the reason of each row. "
        "Simulators differ from a packet network here where one message at a time goes first: the order is theirs."
    )
    chart_title("What is not modelled", "no figure here says anything about it")
    write_html(
        "<ul>"
        + "".join(
            f"<li><b>{escape(what)}</b>: {escape(words)}.</li>"
            for what, words in NOT_MODELLED.items()
        )
        + "</ul>"
    )
    link_menu()


def _row(name: str, kind: Kind) -> str:
    """Return a kind as a row in HTML: its name wraps, so that a narrow window has room for the numbers."""
    errors = (kind.share(50), kind.share(90), kind.most)
    cells = "".join(f"<td>{_off(one)}</td>" for one in errors)
    said = f"{plural(kind.count, 'comparison')}; {escape(kind.fitted)}"
    return f'<tr><th scope="row">{escape(name)} <small>{said}</small></th>{cells}</tr>'


def _off(share: float | None) -> str:
    return "–" if share is None else percent(share)
