"""Papers: published tables and figures, run here, on a wall of cards with a verdict on every number, and the claims a line each."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.figures.papers import thumbnail
from topox_core.papers.card import Card
from topox_core.papers.catalogue import (
    CARDS,
    CLAIMS,
    PAPERS,
    KeptAnswer,
    answer_words,
    complete_answers,
    kind_of,
    shipped_answers,
)
from topox_core.papers.rows import (
    APART,
    APART_NAMES,
    FALLS_BACK,
    KINDS,
    MATCH,
    TREND,
    VERDICTS,
    Answer,
    CardClaim,
    Row,
    Verdict,
    counts_of,
)
from topox_core.runs.pace import slowness
from topox_core.text.numbers import about_seconds, percent, plural, seconds, short
from topox_ui.gallery.accuracy import measured_card
from topox_ui.gallery.card import (
    ALL,
    DIFFERS,
    EVERY,
    MEASURED,
    GalleryState,
    answer_of,
    chosen_card,
    draw_answer,
    finding,
    kicker,
    last_runs,
    run_controls,
    shipped,
    start_every,
    switches,
)
from topox_ui.shell.charts import button, escape, headline, quiet, write_html
from topox_ui.shell.panel import watched
from topox_ui.state.widgets import pick, sidebar

JUDGED = ("match", "trend", "differs")
WORDS = {
    "match": "match",
    "trend": "show the same trend",
    "differs": "differ",
    "not printed": "not printed",
    **APART_NAMES,
}
# A source that its cards call by its title; links keep the short name.
CALLED = {"Opus": "Photonic Rails"}
# Why a row has no verdict, after its count.
APART_WORDS = {
    "arithmetic": "apply a printed formula to printed numbers",
    "identity": "are true by construction, so that they could not come out otherwise",
    "quoted": "compare printed numbers with each other",
    FALLS_BACK: "repeat the number of another row, because the plan keeps to fixed circuits there",
}
KINDS_OF_JUDGEMENT = (
    f"<b>✓</b> ours is within {percent(MATCH)} of the printed number, or exceeds what is printed as “more than”. <b>≈</b> it is "
    f"within {percent(TREND)}, or goes in the direction of the paper’s line or sentence. "
    f"<b>✗</b> it is further off, or goes in the other direction, or is a "
    "mean of draws whose spread hides on which side of 1 it lies. <b>–</b> the paper prints nothing to compare with. Of a "
    "bandwidth tax what is above 1 is compared: it is what forwarding adds."
)
CLASSES = {"match": "good", "trend": "even", "differs": "bad"}
SIGNS: Mapping[str, str] = {name: sign for name, (sign, _) in VERDICTS.items()}


def wall(theme: Theme) -> None:
    """Draw the headline, the totals as one bar, the choice of papers and the cards."""
    _sidebar()
    if not watched(EVERY, "Running cards", lambda _run: _drawn(theme)):
        _drawn(theme)


def _drawn(theme: Theme) -> None:
    known = dict(last_runs())
    # Of all cards, whatever was run here: runs of the same version give the same rows.
    release = [one for name, one in shipped_answers().items() if name in CARDS]
    every = [row for one in release for row in one.answer.rows]
    totals = counts_of(every)
    headline(
        f"Papers · {plural(len(CARDS), 'table or figure', 'tables and figures')} of {len(PAPERS)} sources",
        _finding(every),
    )
    if any(totals.values()):
        write_html(_bar(totals))
        quiet(KINDS_OF_JUDGEMENT)
        if without := sum(totals[name] for name in APART):
            reasons = "; ".join(
                f"{totals[k]} {words}" for k, words in APART_WORDS.items() if totals[k]
            )
            quiet(f"<b>{without}</b> further rows have no verdict of their own: {reasons}.")
    quiet(
        "Each picture shows the first series of a card; hollow: printed, filled: ours. Click a card for every row, the reasons "
        "and the settings that change its reading."
    )
    off = [name for name in known if counts_of(known[name].answer.rows)["differs"]]
    count = Counter(card.paper for card in CARDS.values())
    options = {
        ALL: f"All {len(CARDS)}",
        **{paper: f"{CALLED.get(paper, paper)} {count[paper]}" for paper in PAPERS if count[paper]},
        DIFFERS: f"with rows that differ {len(off)}",
    }
    chosen = pick(GalleryState, "paper", options, label="Which cards", label_visibility="collapsed")
    shown = [
        card
        for name, card in CARDS.items()
        if chosen in (ALL, card.paper) or (chosen == DIFFERS and name in off)
    ]
    with st.container(horizontal=True, key="wall", gap="small"):
        for card in shown:
            _card(card, known.get(card.name), theme)
    quiet(
        "The cards are about all-reduce and all-to-all on fixed and changing circuits, "
        "the bandwidth tax of TopologyFinder’s layouts, fat-trees of the same cost, windows of photonic rails, and time division."
    )
    with st.expander("The sources"):
        links = {name: f"[{of}]({at})" if at else of for name, (of, at) in PAPERS.items()}
        st.markdown(
            "\n".join(f"- **{CALLED.get(name, name)}**: {link}" for name, link in links.items())
        )
    st.button(
        "Measured iterations and their predictions",
        key="to_measured",
        type="tertiary",
        icon=":material/scatter_plot:",
        on_click=GalleryState.choose,
        kwargs={"card": MEASURED},
    )


def _finding(rows: Iterable[Row]) -> str:
    judged = [row for row in rows if row.counted_as in JUDGED]
    if not judged:
        return "Each number that these sources print stands beside ours, with a verdict where ours is simulated."
    numbers = [row.counted_as for row in judged if row.theirs is not None]
    statements = [row.counted_as for row in judged if row.theirs is None]
    match, trend, differ = (
        [which.count(name) for which in (numbers, statements)] for name in JUDGED
    )
    return (
        f"Of <b>{len(numbers)}</b> published numbers, simulated again here, <b>{match[0]}</b> match within {percent(MATCH)} or "
        f"exceed a printed “more than”, <b>{trend[0]}</b> are within {percent(TREND)} and <b>{differ[0]}</b> differ. Of "
        f"<b>{len(statements)}</b> statements and lines without a number <b>{trend[1]}</b> go the same way here and "
        f"<b>{differ[1]}</b> do not."
    )


def _bar(totals: Mapping[str, int]) -> str:
    parts = [
        f'<span class="part {CLASSES.get(name, "none")}" style="flex:{totals[name]} 1 0">'
        f"<b></b><span>{SIGNS[name]} {totals[name]} {WORDS[name]}</span></span>"
        for name in (*JUDGED, "not printed")
        if totals[name]
    ]
    return f'<div class="verdicts">{"".join(parts)}</div>'


def _card(card: Card, known: KeptAnswer | None, theme: Theme) -> None:
    """Draw one card: its title as a button that covers it, where it is from, its picture, its counts."""
    with st.container(border=True, key=f"wall_{card.name}", gap=None):
        st.button(
            card.title,
            key=f"open_{card.name}",
            type="tertiary",
            on_click=GalleryState.choose,
            kwargs={"card": card.name},
        )
        # Words are not explained here: they would be targets inside one.
        source = f'<p class="source">{escape(card.source)}</p>'
        if known is None:
            st.html(f'{source}<p class="quiet">Not run here yet.</p>')
            return
        answer = known.answer
        counts = {name: count for name, count in counts_of(answer.rows).items() if count}
        series = next((key for key in card.series if answer.of(key)), "")
        picture = thumbnail(answer.of(series), theme, card.logarithmic)
        words = ", ".join(f"{count} {WORDS.get(name, name)}" for name, count in counts.items())
        signs = "".join(
            f'<span class="{CLASSES.get(name, "none")}">{SIGNS[name]} {count}</span>'
            for name, count in counts.items()
            if name in SIGNS
        )
        if without := sum(counts.get(name, 0) for name in APART):
            signs += f'<span class="none">{without} without verdict{_off(answer.rows)}</span>'
        st.html(
            f'{source}<img src="{picture}" alt="{escape(card.title)}, first series: {words}">'
            f'<p class="plotted">Vertical: {escape(card.axes[0])}. <br>Horizontal: {escape(card.axes[1])}.</p>'
            f'<p class="signs">{signs}</p>'
        )


def _off(rows: Sequence[Row]) -> str:
    """Return how far ours are at most from what is printed, where no row is judged; else nothing."""
    if any(row.counted_as in JUDGED for row in rows):
        return ""
    off = [abs(row.deviation) for row in rows if row.deviation is not None]
    return f", at most {percent(max(off))} apart" if off else ""


def _sidebar() -> None:
    """Say when cards were last run on this machine, and offer to run all again."""
    known = last_runs()
    with sidebar():
        st.subheader("Last run on this machine")
        here = [one for one in known.values() if not one.shipped]
        if here:
            newest, spent = (max(one.started for one in here), sum(one.wall_s for one in here))
            quiet(
                f"{datetime.fromtimestamp(newest):%d %b %Y, %H:%M} · {len(here)} of {len(CARDS)} cards, "
                f"{seconds(spent)} in all"
            )
        elif known:
            made = max(one.started for one in known.values())
            quiet(
                f"None yet: answers were computed for this release on {datetime.fromtimestamp(made):%d %b %Y}."
            )
        whole = sum(
            known[name].wall_s if name in known else card.takes_s * slowness()
            for name, card in CARDS.items()
        )
        button(
            "Run all again" if len(here) == len(CARDS) else "Run all",
            "run_every_card",
            "replay",
            start_every,
            tuple(CARDS),
            help=f"About {about_seconds(whole)} on this machine, in a process of its own, the quickest cards first. "
            "The same version gives the same rows.",
        )


WIDTHS = (5.6, 1, 1.35, 2.2)
CLAIM_WORDS: dict[Verdict, str] = {
    "match": "holds within 10\u00a0%",
    "trend": "holds within 25\u00a0%",
    "differs": "does not hold",
    "not printed": "not printed",
}


def claims_table() -> None:
    """Draw what the claims come to, and their table."""
    answers = complete_answers(
        {card.name: answer_of(card, card.settings()) for card in CARDS.values()}
    )
    write_html(f'<p class="by-itself">{answer_words(answers)}</p>')
    with st.container(key="claims"):
        _line("<b>Claim</b>", "<b>Printed</b>", "<b>Recomputed</b>", "<b>Verdict</b>", "head")
        for place, claim in enumerate(CLAIMS):
            _row(place, claim, answers[claim.card])
    apart = ", ".join(
        f"{APART_NAMES[kind]}: {KINDS[kind]}" for kind in KINDS if kind != "simulated"
    )
    quiet(
        f"No simulation and no verdict: {apart}. Not judged: the paper's setting is not public. "
        "A click on a claim opens its card, which computes every number again on "
        "this machine. Numbers marked ° were computed for this release; a run of the card replaces them."
    )


def _row(place: int, claim: CardClaim, answer: Answer) -> None:
    verdict = claim.verdict(answer)
    sign, colour = VERDICTS[verdict][0], {"match": "good", "differs": "bad"}.get(verdict, "")
    words = "holds" if claim.least and verdict == "match" else CLAIM_WORDS[verdict]
    if claim.printed is None and verdict == "trend":
        words = "same direction"
    if not claim.comparable:
        words = "not judged"
    kind = kind_of(claim)
    told = f'<b class="{colour}">{sign}</b> {words}' if kind == "simulated" else APART_NAMES[kind]
    printed = "no number" if claim.printed is None else _number(claim, claim.printed)
    _line(
        place,
        printed,
        f"<b>{_number(claim, claim.reading.value(answer))}</b>{'°' if shipped(CARDS[claim.card], answer) else ''}",
        told,
        claim.card,
        claim.words,
    )
    if claim.other is not None:
        other = _number(claim, claim.other.value(answer))
        write_html(f'<p class="quiet other">{claim.condition}; {other} {claim.other_words}.</p>')


def _number(claim: CardClaim, value: float) -> str:
    """Return a number with its unit."""
    return short(value) + claim.unit.replace("%", "\u00a0%")


def _line(key: object, printed: str, value: str, verdict: str, card: str, words: str = "") -> None:
    """Draw one line of the table: the claim as a button that opens its card, or the heads of the columns."""
    name, *cells = st.columns(WIDTHS, vertical_alignment="center", gap="small")
    with name:
        if words:
            st.button(
                words,
                key=f"claim_{key}",
                type="tertiary",
                on_click=GalleryState.choose,
                kwargs={"card": card},
            )
        else:
            st.html(f'<p class="claim">{key}</p>')
    for cell, text in zip(cells, (printed, value, verdict), strict=True):
        with cell:
            st.html(f'<p class="claim">{text}</p>')


def draw(theme: Theme) -> None:
    """Draw the view Tables and figures."""
    name = chosen_card()
    if name == MEASURED:
        measured_card(theme)
    elif name:
        _open_card(CARDS[name], theme)
    else:
        wall(theme)
        with st.expander("Claims of the papers, one per line"):
            claims_table()


def _open_card(card: Card, theme: Theme) -> None:
    settings = switches(card)
    answer = answer_of(card, settings)
    headline(kicker(card), finding(card, answer))
    with st.container(horizontal=True, vertical_alignment="center"):
        run_controls(card, settings, answer)
        st.button(
            "All cards",
            key="all_cards",
            icon=":material/grid_view:",
            on_click=GalleryState.choose,
            kwargs={"card": ""},
        )
    if answer is not None:
        quiet(card.shows)
        draw_answer(card, answer, theme)
    else:
        quiet(
            "Every number of this card is computed on this machine when you run it, and is the same on every run "
            "with the same settings."
        )
