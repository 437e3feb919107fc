"""Papers: published tables and figures, run here, with a verdict on every number, and the claims a line each."""

import streamlit as st

from topox_core.figures.palette import Theme
from topox_core.papers.card import Answer, Claim
from topox_core.papers.catalogue import CARDS, CLAIMS, answer_words, complete_answers, kind_of
from topox_core.papers.rows import APART_NAMES, KINDS, VERDICTS, Verdict
from topox_core.text.numbers import short
from topox_ui.gallery.card import (
    answer_of,
    chosen_card,
    draw_answer,
    finding,
    kicker,
    run_controls,
    shipped,
    switches,
)
from topox_ui.gallery.measured import measured_card
from topox_ui.gallery.state import MEASURED
from topox_ui.gallery.wall import opened, wall
from topox_ui.shell.charts import headline, quiet, write_html

WIDTHS = (5.6, 1, 1.35, 2.2)
WORDS: dict[Verdict, str] = {
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


def _row(place: int, claim: Claim, answer: Answer) -> None:
    verdict = claim.verdict(answer)
    sign, colour = VERDICTS[verdict][0], {"match": "good", "differs": "bad"}.get(verdict, "")
    words = "holds" if claim.least and verdict == "match" else WORDS[verdict]
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


def _number(claim: Claim, value: float) -> str:
    """Return a number with its unit."""
    return short(value) + claim.unit.replace("%", "\u00a0%")


def _line(key: object, printed: str, value: str, verdict: str, card: str, words: str = "") -> None:
    """Draw one line of the table: the claim as a button that opens its card, or the heads of the columns."""
    name, *cells = st.columns(WIDTHS, vertical_alignment="center", gap="small")
    with name:
        if words:
            st.button(words, key=f"claim_{key}", type="tertiary", on_click=opened, args=(card,))
        else:
            st.html(f'<p class="claim">{key}</p>')
    for cell, text in zip(cells, (printed, value, verdict), strict=True):
        with cell:
            st.html(f'<p class="claim">{text}</p>')


def draw(theme: Theme) -> None:
    """Draw the view Tables and figures."""
    card = chosen_card()
    if isinstance(card, str):
        if card == MEASURED:
            measured_card(theme)
        else:
            wall(theme)
            with st.expander("Claims of the papers, one per line"):
                claims_table()
        return
    settings = switches(card)

    answer = answer_of(card, settings)
    headline(kicker(card), finding(card, answer))
    with st.container(horizontal=True, vertical_alignment="center"):
        run_controls(card, settings, answer)
        st.button(
            "All cards", key="all_cards", icon=":material/grid_view:", on_click=opened, args=("",)
        )
    if answer is not None:
        quiet(f"{card.shows}")
        draw_answer(card, answer, theme)
    else:
        quiet(
            "Every number of this card is computed on this machine when you run it, and is the same on every run "
            "with the same settings."
        )
