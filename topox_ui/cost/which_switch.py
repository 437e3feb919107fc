"""Which switch: which optical switch is worth buying for a job, how that is worked out beside the page, and the page on paper."""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from topox_core.economics.price_sets import FILE_SET, PRICE_SETS
from topox_core.errors import InputError
from topox_core.fabrics.crossover.passed_plans import KnownPlans, PassedPlan
from topox_core.fabrics.crossover.verdict import Bracket
from topox_core.figures.networks.buying import Drawn, Swinging, buying_figure, tornado
from topox_core.figures.palette import Theme
from topox_core.figures.studies.axes import MeasureWords
from topox_core.io.sample_folder import SAMPLE_FOLDER
from topox_core.runs.pace import slowness
from topox_core.schedule.result import Result
from topox_core.studies.buying import (
    Assumptions,
    Question,
    Row,
    buying_study,
    levels_of,
    planned_at,
)
from topox_core.studies.buying_answer import prices_of
from topox_core.studies.buying_run import Answer, buying_run
from topox_core.studies.buying_words import (
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
from topox_core.studies.keys import Value
from topox_core.studies.offers import sources_of
from topox_core.studies.slices import steps_of
from topox_core.studies.study import dump_study
from topox_core.studies.study_run import PointRow, shipped_rows
from topox_core.studies.subject import digest_of
from topox_core.text.numbers import NBSP, about_seconds, money, percent, plural, short, time
from topox_ui.answers.keeping import kept_of, writable_library
from topox_ui.answers.solving import (
    Case,
    case_of,
    known_first_answer,
    known_plans,
    listing,
    plans_shown,
    prefetch,
    shipped_answer,
)
from topox_ui.answers.verdicts import priced_verdict
from topox_ui.cost.switches import BuyingState, chosen_offers, controls, offers_table
from topox_ui.runs.owner import Kept, RunKind, run_owner
from topox_ui.runs.panel import run_note, watched
from topox_ui.runs.slots import shared_workers
from topox_ui.shell.charts import (
    button,
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
from topox_ui.shell.preparing import prepared
from topox_ui.state.loading import Loaded, scenario
from topox_ui.state.prices import Prices, catalogue

# Larger graphs are worked out at a click.
MAX_TASKS = 20_000
AUTOMATIC = True
BUY = RunKind(
    "buy",
    most_slots=0,
    cancel_help="Stops at once; the networks computed so far are kept.",
    cancelled="Stopped. The networks that were computed are kept; computing goes on from there.",
)
MAX_POINTS = 5_000
# A larger graph is not planned again for other pages.
MAX_HANDED_ON = 5_000
Plans = tuple[PassedPlan, ...]


# The points of the samples as the page opens with them; ``tools/make_answers.py`` writes them.
SHIPPED = SAMPLE_FOLDER / "which-switch.json.gz"


@st.cache_resource(show_spinner=False)
def known_points() -> Kept[PointRow]:
    """Return the points that were computed, for all sessions, and those of the samples: a key says all that a point depends on."""
    known: Kept[PointRow] = Kept(MAX_POINTS)
    known.update(shipped_rows(SHIPPED))
    return known


def _start(question: Question, plans: Plans) -> None:
    library, known, workers = writable_library(), known_points(), shared_workers()
    run_owner().start(
        BUY,
        key_of(question, plans),
        lambda _slots: buying_run(question, library, workers, known, plans),
        note=lambda answer: f"Points are missing. {answer.lost[0]}." if answer.lost else "",
    )


def answered(question: Question, case: Case, draw: Callable[[Answer], None]) -> Answer | None:
    """Return the answer if it is there; else start it, and draw what is there of it while it is worked out.

    The plan that pages show for the case is among those of every switch, and they hear of the plan that is best here.
    """
    plans, free = plans_shown(case), case.at_delay(0.0)
    if free.key != case.key and shipped_answer(free) is not None:
        plans += plans_shown(free)  # a sample's answer is the same at whichever delay it is loaded
    owner, key = run_owner(), key_of(question, plans)
    answer: Answer | None = owner.results(BUY).get(key)
    if answer is not None and answer.complete:
        run_note(BUY)
        hand_on(case, answer)
        return answer
    small = question.resolved.graph is None or len(question.resolved.graph.tasks) <= MAX_TASKS
    if answer is None and AUTOMATIC and prepared() and small and owner.run(BUY, key) is None:
        _start(question, plans)
        owner.wait(BUY, 0.3)
    if watched(BUY, "Computing", lambda run: _so_far(run.result(), draw), key):
        return None
    answer = owner.results(BUY).get(key)
    if answer is None:
        draw(Answer(question))
    if answer is None or not answer.complete:
        button(
            "Compute" if answer is None else "Go on",
            "work_out",
            "play_arrow",
            _start,
            question,
            plans,
            primary=answer is None,
            help="Runs the job on each network beside this page, by list scheduling. Results that exist are not computed again.",
        )
    return answer


FIRST_S = 5.0  # until the first networks of moe are there: workers start, then the rivals run


def _so_far(answer: Answer, draw: Callable[[Answer], None]) -> None:
    """Draw what is there; before that, say when the first will be."""
    draw(answer)
    if not answer.rows:
        quiet(
            f"The first networks stand here after about {about_seconds(FIRST_S * slowness())} on this machine, each of the others as "
            "soon as it is computed. Fixed circuits and fat-trees come first, then the switches."
        )


def hand_on(case: Case, answer: Answer) -> None:
    """Have the plan of the best switch made behind all that somebody waits for, for pages that show a schedule of the case.

    Workers return times alone, which a study of many points needs no more than.
    """
    found = answer.verdict
    small = len(case.graph.tasks) <= MAX_HANDED_ON
    if found is None or not found.wins or not small or not prepared():
        return
    delay_ms = planned_at(answer.rows, found.offer)
    if delay_ms is None or found.offer.choice.degree != case.cluster.ports_per_server:
        return
    planned = case.at_delay(delay_ms)
    there = known_first_answer(planned)
    if there is None:
        prefetch(planned).add_done_callback(partial(_take, known_plans(), case.job_key))
    else:
        known_plans().add(case.job_key, PassedPlan.of(there))


def _take(plans: KnownPlans, job_key: str, made: Future[Result]) -> None:
    if not made.cancelled() and made.exception() is None:
        plans.add(job_key, PassedPlan.of(made.result()))


def case_now(opened: Loaded) -> Case:
    """Return the case of what is loaded and chosen, planned by list scheduling; raises InputError."""
    case = case_of(opened, scenario())
    return replace(case, settings=listing(case.settings))


def question_now(opened: Loaded, case: Case) -> Question:
    """Return the question of what is loaded and chosen; raises InputError where it cannot be asked."""
    if case.settings.circuits == "per-slot":
        raise InputError(
            "circuits that may change between slots pay no delay; on the page Schedule let a transfer keep one",
            field="circuits",
        )
    now, usual = BuyingState.now(), Assumptions()
    kept = kept_of(opened, case)
    return Question(
        kept.resolved,
        chosen_offers(),
        now.ports,
        now.rivals,
        {**kept.values("scheduled"), **_prices(), "settings.effort": "first"},
        Assumptions(
            usual.usd_per_gpu_hour.moved(now.usd_per_gpu_hour),
            usual.usd_per_kwh.moved(now.usd_per_kwh),
            usual.years.moved(now.years),
            gpus_per_server=now.gpus_per_server,
        ),
        now.by,
    )


def _prices() -> dict[str, Value]:
    """Return the prices that hold, as a study names them: a price set, and the figures that differ from it."""
    now = catalogue()
    base = PRICE_SETS.get(Prices.now().prices) or PRICE_SETS[now.based_on or FILE_SET]
    values: dict[str, Value] = {"prices": base.based_on}
    for part in now.parts:
        listed = base.part(part.id)
        for field in ("price_usd", "power_w"):
            if getattr(part, field) != getattr(listed, field):
                values[f"prices.{part.id}.{field}"] = getattr(part, field)
    if base.port_gbps != now.port_gbps or base.switch_transceivers != now.switch_transceivers:
        raise InputError(
            "has prices of another port speed than its price set; a study cannot count with them",
            file="prices",
        )
    return values


def key_of(question: Question, plans: Plans = ()) -> str:
    """Return what an answer depends on, as a digest."""
    return digest_of(
        [
            question.resolved.digest,
            question.resolved.title,
            repr(question.offers),
            repr((question.degrees, question.rivals, sorted(question.fixed.items()))),
            repr(question.assumed),
            question.by,
            [(one.cluster.digest, float(one.end_ms.max(initial=0))) for one in plans],
        ]
    )


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
    chart_title(
        "Time against price",
        "each network at its usual figures, with the ends of their ranges; step line: no network is both faster and cheaper",
    )
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


def questions(answer: Answer, case: Case) -> None:
    """Write the break-even points; what the verdict says of the same rival, which counts less, once it is known."""
    same = _by_verdict(answer, case)
    by_time_ms = None if same is None or same.always else same.pays_up_to_ms
    lines = questions_turned(answer, by_time_ms, same and same.cheaper_up_to_usd)
    if not lines:
        return
    chart_title(
        "Break-even points", "the best switch on offer against the best network without one"
    )
    _pairs("asked-back", lines)
    page_link("Cost", "The same by the purchase price alone: Per iteration")


def _by_verdict(answer: Answer, case: Case) -> Bracket | None:
    """Return what the verdict on the job says of the best rival; None where it says nothing.

    It knows the cluster's own ports alone.
    """
    found, known = answer.verdict, priced_verdict(case)
    if known is None or found is None or not found.compared:
        return None
    if found.offer.choice.degree != case.cluster.ports_per_server:
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
        f"Saving of the best switch, now {percent(base)}: "
        + "; ".join(
            f"{one.name} "
            + ", ".join(f"{end[0]} gives {percent(end[1])}" for end in (one.low, one.high) if end)
            for one in answer.swings
        ),
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
    rows = [
        {name: value for name, value in row.items() if name not in ("note",)}
        for row in network_rows(answer)
    ]
    parts = [_table("Every network", rows)] if rows else []
    parts.append(_table("Switches on offer", offer_rows(chosen_offers())))
    st.html(f'<div class="only-print">{"".join(parts)}</div>')


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
        case = case_now(opened)
        question = question_now(opened, case)

    def show(answer: Answer) -> None:
        """Draw what is there of the answer."""
        buying_headline(answer)
        networks(answer, theme)
        questions(answer, case)
        hangs_on(answer, theme)

    answer = answered(question, case, show)
    if answer is not None:
        show(answer)
        notes(answer)
        tables_for_print(answer)
        files_menu(answer)
    with st.container(key="buying_switches"):
        offers_table()
