"""Which switch: which optical switch is worth buying for a job, in words, figures and on paper."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from topox_core.fabrics.crossover.verdict import Bracket
from topox_core.fabrics.run import JobRequest
from topox_core.figures.networks.buying import Drawn, Swinging, buying_figure, swings_words, tornado
from topox_core.figures.palette import Theme
from topox_core.figures.studies.axes import MeasureWords
from topox_core.studies.buying.answer import prices_of
from topox_core.studies.buying.offers import sources_of
from topox_core.studies.buying.question import Row, buying_study, levels_of
from topox_core.studies.buying.run import Answer
from topox_core.studies.buying.words import (
    Lines,
    as_record,
    caveats,
    details,
    finding,
    network_rows,
    offer_rows,
    questions_turned,
    short_usd,
    swing_rows,
    unfit_words,
)
from topox_core.studies.slices import steps_of
from topox_core.studies.study import dump_study
from topox_core.text.numbers import NBSP, money, percent, plural, short, time
from topox_ui.answers.verdicts import priced_verdict
from topox_ui.cost.question import answered, job_now, question_now
from topox_ui.cost.switches import chosen_offers, controls, offers_table
from topox_ui.shell.charts import (
    chart,
    chart_title,
    csv_of,
    escape,
    headline,
    html_table,
    quiet,
    show_input_errors,
    write_html,
)
from topox_ui.shell.downloads import download_menu, graph_kept_here, link_menu, result_json, stem
from topox_ui.shell.menu import page_link
from topox_ui.state.loading import Loaded, scenario

# What the verdict calls the rivals.
IN_VERDICT = {"fixed": "fixed", "fat_tree": "fat_tree_full", "same_cost": "fat_tree_same_cost"}
PRICE = MeasureWords("price of the network", money)
TIME = MeasureWords("iteration time", time)
SO_FAR = "So far: "


def bold(words: str) -> str:
    """Return words with their marked parts in bold, as HTML."""
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(words)).replace("\u00a0", "&nbsp;")


def buying_headline(answer: Answer) -> None:
    """Write what to buy."""
    question = answer.question
    cluster = question.cluster
    kicker = (
        f"Which switch · {escape(question.resolved.title)} · {plural(cluster.servers, 'server')}, "
        f"{plural(question.gpus, 'GPU')}, {cluster.port_gbps:g}G ports"
    )
    words = finding(answer)
    if not answer.rows:
        words = (
            "Which **optical switch** is worth buying for this job, and when would it no longer be?"
        )
    elif not answer.complete:
        words = SO_FAR + words[0].lower() + words[1:]
    headline(kicker, bold(words))
    _pairs("buying-details", details(answer))


def _pairs(look: str, lines: Lines) -> None:
    """Write names, or questions, with what is said of each."""
    if lines:
        pairs = "".join(f"<dt>{escape(name)}</dt><dd>{bold(words)}</dd>" for name, words in lines)
        write_html(f'<dl class="{look}">{pairs}</dl>')


def networks(answer: Answer, theme: Theme) -> None:
    """Draw every network by price and time, with its table."""
    usual = [row for row in answer.rows if row.choice.level == "usual" and row.known]
    if not usual:
        return
    choices = [row.choice for row in answer.verdict.best] if answer.verdict else []
    best = [k for k, row in enumerate(usual) if row.choice in choices]
    steps = steps_of([row.network_usd for row in usual], [row.iteration_ms for row in usual])
    drawn = [_drawn(answer, row, k in steps) for k, row in enumerate(usual)]
    alt = "; ".join(f"{one.name}: {time(one.time[1])}, {short_usd(one.price[1])}" for one in drawn)
    chart(
        buying_figure(drawn, PRICE, TIME, theme, best, steps),
        "buying_networks",
        f"Iteration time against price of the network. {alt}.",
        lambda: network_rows(answer),
        "Every network",
        title=(
            "Time against price",
            "each network at its usual figures, with the ends of their ranges; step line: no network is both faster and cheaper",
        ),
    )
    for line in unfit_words(answer.question):
        quiet(escape(line))
    quiet(
        "Counted for the job's own cluster, NICs included. Parts other than the switches on offer have the prices of "
        f"{escape(prices_of(answer.question).name)}, the list of all pages. <em>Per iteration</em> says why <em>Network</em> has "
        "other prices."
    )


def _drawn(answer: Answer, row: Row, on_step: bool) -> Drawn:
    several, choice = len(answer.question.degrees) > 1, row.choice
    ends = [one for one in levels_of(answer.rows, row).values() if one.known]
    prices, times = [one.network_usd for one in ends], [one.iteration_ms for one in ends]
    spent = short_usd(answer.question.cost(row, "dollars"))
    return Drawn(
        escape(f"{choice.short}{f', {choice.degree}' * several}"),
        (min(prices), row.network_usd, max(prices)),
        (min(times), row.iteration_ms, max(times)),
        choice.rival,
        on_step,
        f"{escape(choice.name)}: {spent} per iteration, {short(row.network_w)} W",
    )


LEAD = Swinging(
    "saving", 100.0, f"{NBSP}%", lambda share: f"{100 * share:.1f}{NBSP}%", percent, 2.0, True
)


def questions(answer: Answer, job: JobRequest) -> None:
    """Write the break-even points; what the verdict says of the same rival, which counts less, once it is known."""
    same = _by_verdict(answer, job)
    by_time_ms = None if same is None or same.always else same.pays_up_to_ms
    lines = questions_turned(answer, by_time_ms, same and same.cheaper_up_to_usd)
    if not lines:
        return
    chart_title(
        "Break-even points", "the best switch on offer against the best network without one"
    )
    _pairs("asked-back", lines)
    page_link("Cost", "The same by the purchase price alone: Per iteration")


def _by_verdict(answer: Answer, job: JobRequest) -> Bracket | None:
    """Return what the verdict on the job says of the best rival; None where it says nothing.

    It knows the cluster's own ports alone.
    """
    found, known = answer.verdict, priced_verdict(job)
    if known is None or found is None or not found.compared:
        return None
    if found.offer.choice.degree != job.cluster.ports_per_server:
        return None
    return next(
        (one for one in known.brackets if one.name == IN_VERDICT[found.rival.choice.key]), None
    )


def hangs_on(answer: Answer, theme: Theme) -> None:
    """Draw how far the lead of the best switch swings with each figure."""
    found = answer.verdict
    if not answer.swings or found is None or not found.compared:
        return
    base = found.lead
    rival = found.rival.choice.name
    chart(
        tornado(answer.swings, base, theme, LEAD),
        "buying_tornado",
        f"Saving of the best switch, now {percent(base)}: {swings_words(answer.swings)}",
        lambda: swing_rows(answer),
        "In numbers",
        title=(
            "What the answer depends on",
            f"what {escape(found.offer.choice.name)} saves against {escape(rival[0].lower() + rival[1:])} when one figure goes "
            f"from low to high; now {percent(base).replace('-', '−')}",
        ),
    )


def notes(answer: Answer) -> None:
    """Write what every answer depends on and what is not counted."""
    with st.container(key="buying_notes"):
        chart_title("What this rests on")
        quiet("<br>".join(escape(line) for line in caveats(answer.question)))


def files_menu(answer: Answer) -> None:
    """Offer the networks as a study file, the tables as CSV, the whole answer as JSON, and a link."""
    question = answer.question
    name = stem(f"buy-{question.resolved.title}")
    with st.container(horizontal=True, key="buying_files"):
        download_menu(
            name,
            [
                ("Study (JSON)", ".study.json", lambda: dump_study(buying_study(question))),
                (
                    "Networks (CSV)",
                    ".networks.csv",
                    lambda: csv_of(network_rows(answer)),
                ),
                (
                    "What it depends on (CSV)",
                    ".tornado.csv",
                    lambda: csv_of(swing_rows(answer)),
                ),
                (
                    "Answer (JSON)",
                    ".buying.json",
                    result_json(
                        lambda: as_record(answer),
                        {"subject": question.resolved.digest},
                        sources_of(prices=prices_of(question), offers=question.offers),
                    ),
                ),
            ],
        )
        link_menu(graph_kept_here())


# The page is as wide as the paper, so that no figure is cut: plotly does not draw anew to print.
PAPER_PX = 1_045


def print_style(theme: Theme) -> None:
    """Write the style sheet of the page on paper."""
    # A figure of the dark theme has light letters; turned round they are dark and colours stay.
    turned = "" if theme.name == "light" else "filter: invert(1) hue-rotate(180deg);"
    st.html(f"""<style>
[data-testid="stMainBlockContainer"] {{ max-width: calc({PAPER_PX}px + 3.5rem); }}
.asked-back {{ margin: 0 !important; padding: 0 !important; }}
.asked-back dt {{ font-weight: 600; font-size: .95rem; color: {theme.ink}; }}
.asked-back dd {{ margin: 0 0 .55rem !important; color: {theme.ink}; }}
.buying-details {{ display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0 !important;
  padding: 0 !important; font-size: .9rem; }}
.buying-details dt {{ color: {theme.muted}; }} .buying-details dd {{ margin: 0 !important; color: {theme.ink}; }}
@media (max-width: 640px) {{ .buying-details {{ grid-template-columns: 1fr; }}
  .buying-details dd {{ margin-bottom: .3rem !important; }} }}
.only-print {{ display: none; }}
@page {{ size: A4 landscape; margin: 9mm; }}
@media print {{
  html, body, .stApp, [data-testid="stAppViewContainer"], [data-testid="stMain"] {{ background: #fff !important;
    color: #000 !important; height: auto !important; overflow: visible !important; position: static !important; }}
  [data-testid="stHeader"], [data-testid="stSidebar"], [data-testid="stExpandSidebarButton"], [data-testid="stStatusWidget"],
  [data-testid="stToolbar"], .stButton, .stDownloadButton, [data-testid="stPopover"], [data-testid="stExpander"],
  [data-testid="stProgress"], [data-testid="stFileUploader"], [data-testid="stElementToolbar"], .st-key-buying_switches,
  .st-key-buying_files, .st-key-views, .ask, .by-itself, iframe {{ display: none !important; }}
  .stApp *:not(svg):not(svg *) {{ color: #000 !important; }}
  [data-testid="stMainBlockContainer"] {{ padding: 0 !important; max-width: none !important; }}
  [data-testid="stPlotlyChart"] {{ break-inside: avoid; {turned} }}
  .asked-back dt {{ break-after: avoid; }} .asked-back dd {{ break-inside: avoid; }}
  .term {{ border: 0 !important; }}
  .only-print {{ display: block; break-before: page; }}
  .only-print table {{ border-collapse: collapse; width: 100%; font-size: 8.5pt; }}
  .only-print th, .only-print td {{ border: 0 !important; border-bottom: 1px solid #999 !important; padding: 1.5pt 4pt !important;
    text-align: left; }}
  .only-print tr {{ break-inside: avoid; }} .only-print thead {{ display: table-header-group; }}
}}
</style>""")


def tables_for_print(answer: Answer) -> None:
    """Write the tables that the screen shows when they are opened, for paper only."""
    networks = [
        {name: value for name, value in row.items() if name != "note"}
        for row in network_rows(answer)
    ]
    tables = {"Every network": networks, "Switches on offer": offer_rows(chosen_offers())}
    html = "".join(_table(title, rows) for title, rows in tables.items() if rows)
    st.html(f'<div class="only-print">{html}</div>')


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    cells = ([_cell(value) for value in row.values()] for row in rows)
    return f"<p><b>{title}</b></p>{html_table(map(escape, rows[0]), cells)}"


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        if 0 < abs(value) < 1e-3:
            return f"{value:.3g}"
        return f"{value:,.0f}" if abs(value) >= 1000 else short(value)
    return escape(str(value))


def draw(theme: Theme, opened: Loaded) -> None:
    """Draw the view Which switch."""
    print_style(theme)
    with show_input_errors(
        f"Which switch · {opened.title}", "For this setting <b>nothing can be compared</b>."
    ):
        controls(scenario().cluster(opened.cluster))
        job = job_now(opened)
        question = question_now(opened, job)

    def show(answer: Answer) -> None:
        """Draw what is there of the answer."""
        buying_headline(answer)
        networks(answer, theme)
        questions(answer, job)
        hangs_on(answer, theme)

    answer = answered(question, job, show)
    if answer is not None:
        show(answer)
        notes(answer)
        tables_for_print(answer)
        files_menu(answer)
    with st.container(key="buying_switches"):
        offers_table()
