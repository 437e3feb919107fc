"""An open card: its settings, its run beside the page, theirs against ours, the reasons; and every card's last answer."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, ClassVar, cast

import streamlit as st

from topox_core.errors import InputError
from topox_core.figures.palette import Theme
from topox_core.figures.papers import paired
from topox_core.papers.card import Card, Settings, Value
from topox_core.papers.catalogue import (
    CARDS,
    PAPERS,
    CardStep,
    KeptAnswer,
    keep,
    kept,
    measured,
    run_cards,
    shipped_answers,
)
from topox_core.papers.rows import APART, VERDICTS, Answer, Row, counted_verdicts, same_rows
from topox_core.runs.executor import call_in_worker
from topox_core.runs.pace import slowness
from topox_core.runs.run import FunctionRun, Stop
from topox_core.schema.fields import setting
from topox_core.text.numbers import about_seconds, short
from topox_ui.answers.keeping import existing_library, keeps_runs, open_library
from topox_ui.gallery.accuracy import TITLE as MEASURED_TITLE
from topox_ui.runs.owner import Kept, RunKind, run_owner
from topox_ui.shell.charts import (
    Content,
    as_label,
    button,
    chart,
    chart_title,
    escape,
    frame,
    kpis,
    quiet,
    write_html,
)
from topox_ui.shell.panel import watched
from topox_ui.state.session import PageState, word_of
from topox_ui.state.widgets import menu, sidebar

# The card of measured iterations, which has no switches and needs no run.
MEASURED = "measured"
# Which cards the wall shows, besides those of one paper.
ALL, DIFFERS = "all", "differs"
_PLAIN = ("card", "paper")


class GalleryState(PageState):
    """The card that is open, the wall if empty, whose cards it shows, and switches that are not in their first position."""

    prefix = "gallery."
    resets: ClassVar = {"card": ("switches",)}

    card: str = ""
    paper: Annotated[str, setting(choices=(ALL, *PAPERS, DIFFERS))] = ALL
    switches: tuple[tuple[Value, ...], ...] = ()

    @classmethod
    def owns(cls, key: str) -> bool:
        """Return True for the card and any switch."""
        return key.startswith(cls.prefix)

    def to_query(self) -> dict[str, str]:
        """Return the card with its switches, or whose cards the wall shows, as parameters of a link."""
        switches = {self.prefix + key: word_of(value) for key, value in self.switches}
        if self.card:
            return {self.prefix + "card": self.card, **switches}
        return {self.prefix + "paper": self.paper} if self.paper != ALL else switches

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> "tuple[GalleryState, dict[str, str]]":
        """Return the state that a link describes, and why not by the keys whose values it cannot have."""
        begin, wrong = super().of_query(
            {key: text for key, text in query.items() if key.removeprefix(cls.prefix) in _PLAIN}
        )
        if begin.card not in ("", *CARDS, MEASURED):
            begin, wrong = begin.changed(card=None), {**wrong, cls.prefix + "card": ""}
        card = CARDS.get(begin.card) or next(iter(CARDS.values()))
        known = {choice.key: choice for choice in card.choices}
        switches = []
        for key in query.keys() - {cls.prefix + name for name in _PLAIN}:
            name = key.removeprefix(cls.prefix)
            words = (
                {word_of(value): value for value, _ in known[name].options} if name in known else {}
            )
            if query[key] in words:
                switches.append((name, words[query[key]]))
            else:
                wrong[key] = ""
        # Links of earlier versions name the first card by its switches alone.
        opened = begin.changed(card=card.name) if switches else begin
        return opened.changed(switches=tuple(sorted(switches))), wrong


def turn(card: Card, key: str, value: Value) -> None:
    """Take the position of one switch of a card."""
    default = {choice.key: choice.default for choice in card.choices}
    positions = {**dict(GalleryState.now().switches), key: value}
    changed = {key: value for key, value in positions.items() if value != default[key]}
    GalleryState.choose(switches=tuple(sorted(changed.items())))


def chosen_card() -> str:
    """Draw the list of cards in the sidebar and return the name of the one that is open, empty for the wall."""
    with sidebar():
        titles = {"": "All cards"} | {name: card.title for name, card in CARDS.items()}
        name: str = menu(GalleryState, "card", titles | {MEASURED: MEASURED_TITLE}, label="Card")
        if name in CARDS:
            quiet(escape(CARDS[name].source))
    return name


def switches(card: Card) -> Settings:
    """Draw the switches of a card in the sidebar and return their positions."""
    positions = dict(GalleryState.now().switches)
    with (
        sidebar(),
        st.expander(
            "Settings of this card",
            key="gallery_switches",
            expanded=True,
            type="compact",
        ),
    ):
        for choice in card.choices:
            menu(
                GalleryState,
                f"{card.name}_{choice.key}",
                [value for value, _ in choice.options],
                label=choice.name,
                words=choice.words,
                value=positions.get(choice.key, choice.default),
                take=partial(turn, card, choice.key),
                help=choice.meaning,
            )
        if not card.choices:
            quiet("This card has none.")
    return card.settings(positions)


MAX_KEPT = 48
CARD = RunKind(
    "card", MAX_KEPT, cancel_help="Stops within a second or two; the rows computed so far are kept."
)


Key = tuple[str, frozenset[tuple[str, Value]]]


def key_of(card: Card, settings: Settings) -> Key:
    """Return the key of an answer: the card and every switch."""
    return card.name, frozenset(settings.items())


@st.cache_resource(show_spinner=False)
def complete_answers() -> Kept[Answer]:
    """Return the complete answers of this server, which are the same on every run: all sessions share them."""
    return Kept(MAX_KEPT)


@st.cache_resource(show_spinner=False)
def repeated() -> dict[Key, bool]:
    """Return whether the last run of a card brought the rows of the one before, where there were two."""
    return {}


def answer_of(card: Card, settings: Settings) -> Answer | None:
    """Return what is known of a card under these switches, of this version of the code."""
    key = key_of(card, settings)
    answer = complete_answers().get(key) or run_owner().results(CARD).get(key)
    if answer is None and dict(settings) == card.settings():
        last = last_runs().get(card.name)
        return None if last is None else last.answer
    return answer


def shipped(card: Card, answer: Answer | None) -> bool:
    """Return whether an answer comes with the release, so that it was not computed here."""
    last = shipped_answers().get(card.name)
    return last is not None and answer is last.answer


def start(card: Card, settings: Settings) -> None:
    """Run a card beside the page; one that runs already is ended first."""
    key, complete, partial = key_of(card, settings), complete_answers(), run_owner().results(CARD)
    before, began, same = answer_of(card, settings), time.monotonic(), repeated()

    def keep(answer: Answer) -> None:
        (complete if answer.complete else partial)[key] = answer
        if answer.complete:
            took(card.name, answer, time.monotonic() - began)
            if before is not None and before.complete:
                same[key] = same_rows(answer.rows, before.rows)

    run_owner().start(CARD, key, lambda _slots: card.start(settings), keep)


def run_controls(card: Card, settings: Settings, answer: Answer | None) -> None:
    """Draw the Run button with how long a run takes, or the run's progress with its Cancel button."""
    running = cast("Key | None", run_owner().key(CARD))
    if watched(CARD, CARDS[running[0]].title if running else ""):
        return
    last = last_runs().get(card.name)
    takes_s = card.takes_s * slowness() if last is None else last.wall_s
    not_here = answer is None or shipped(card, answer)
    button(
        "Run it here" if not_here else "Run it again",
        "gallery_run",
        "play_arrow" if not_here else "replay",
        start,
        card,
        settings,
        primary=answer is None,
        help=f"About {about_seconds(takes_s)} on this machine. The same version gives the same rows.",
    )
    if answer is not None and not_here:
        quiet("Computed for this release.")
    same = repeated().get(key_of(card, settings))
    if same is not None:
        quiet("The same rows as before." if same else "✗ Other rows than before: a defect.")


def kicker(card: Card) -> str:
    """Return the line above the headline; its source is a link where it can be read."""
    address = PAPERS[card.paper][1] if card.paper else ""
    source = escape(card.source)
    if address:
        source = f'<a href="{address}">{source}</a>'
    return f"Papers · {source}"


def finding(card: Card, answer: Answer | None) -> str:
    """Return the headline's HTML: what came out, or what the original shows while nothing has been run."""
    return (
        escape(card.shows)
        if answer is None or not answer.rows
        else f"<b>{escape(answer.finding)}</b>"
    )


def draw_answer(card: Card, answer: Answer, theme: Theme) -> None:
    """Draw facts, one chart a series, its table with the reasons, and the remarks."""
    if answer.facts:
        kpis(*list(answer.facts))
    for line in answer.lost:
        st.warning(f"Rows are missing: {as_label(line)}")
    present = [key for key in card.series if answer.of(key)]
    if not present:
        return
    series = present[0]
    if len(present) > 1:
        series = (
            st.segmented_control(
                "Series",
                present,
                default=present[0],
                format_func=lambda key: card.series[key],
                key=f"gallery_series_{card.name}",
                label_visibility="collapsed",
            )
            or present[0]
        )
    rows = answer.of(series)
    chart_title(escape(card.series[series]), counted_verdicts(rows), beside=True)
    chart(
        paired(rows, theme, card.logarithmic),
        f"gallery_{card.name}",
        _alt(card, series, rows),
        lambda: table(rows),
    )
    reasons(rows)
    frame(table(rows), column_config={"why": st.column_config.TextColumn(width="large")})
    if answer.remarks:
        off = any(row.verdict in ("trend", "differs") for row in answer.rows)
        chart_title("Why the results differ" if off else "What the results rest on")
        write_html("".join(f'<p class="note">{escape(line)}</p>' for line in answer.remarks))


def reasons(rows: tuple[Row, ...]) -> None:
    """Write why rows do not match or do not count, those with the same reason together."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.counted_as in APART:
            key = (row.verdict_words, row.kind_reason or row.reason)
            grouped.setdefault(key, []).append(row.item)
        elif row.verdict != "match":
            grouped.setdefault((VERDICTS[row.verdict][0], row.reason), []).append(row.item)
    write_html(
        "".join(
            f'<p class="quiet"><b>{sign} {escape(", ".join(items))}</b> {escape(reason)}</p>'
            for (sign, reason), items in grouped.items()
        )
        or '<p class="quiet">Every row matches.</p>'
    )


def table(rows: tuple[Row, ...]) -> Content:
    """Return rows as a table: all digits, the verdict in sign and words or the kind, the reason."""
    unit = f" ({rows[0].unit})" if rows and rows[0].unit else ""
    content: dict[str, list[object]] = {
        "row": [row.item for row in rows],
        "on": [row.about for row in rows],
        f"theirs{unit}": [row.theirs for row in rows],
        f"ours{unit}": [round(row.ours, 6) for row in rows],
        "deviation": ["" if row.deviation is None else f"{row.deviation:+.1%}" for row in rows],
        "verdict": [row.verdict_words for row in rows],
    }
    if any(row.bound is not None for row in rows):
        content[f"bound{unit}"] = [row.bound for row in rows]
    return {**content, "why": [f"{row.reason} {row.kind_reason}".rstrip() for row in rows]}


def _alt(card: Card, series: str, rows: tuple[Row, ...]) -> str:
    worst = max(rows, key=lambda row: abs(row.deviation or 0.0))
    off = ""
    if worst.theirs is not None:
        off = f" Furthest off is {worst.item}: {short(worst.ours)} against {short(worst.theirs)}."
    return f"{card.title}, {card.series[series]}: printed and computed values of {len(rows)} rows. {counted_verdicts(rows)}.{off}"


GRACE_S = 2.0
EVERY = RunKind(
    "every_card",
    most_kept=1,
    most_slots=0,
    cancel_help="Stops within a second or two; the cards run so far are kept.",
    cancelled="Stopped. The cards that were run are kept.",
)
Names = tuple[str, ...]


@st.cache_resource(show_spinner=False)
def last_runs() -> dict[str, KeptAnswer]:
    """Return the last complete answer of each card by name, by this version and with every switch in its first position."""
    known = dict(shipped_answers())
    with suppress(InputError):  # the view Kept runs says what is wrong with the library
        library = existing_library()
        known |= {} if library is None else kept(library, CARDS.values())
    return known


def took(name: str, answer: Answer, wall_s: float) -> None:
    """Keep a complete answer of a card, if its switches are in their first positions."""
    card = CARDS[name]
    if not answer.complete or dict(answer.settings) != card.settings():
        return
    last_runs()[name] = KeptAnswer(answer, time.time() - wall_s, wall_s)
    if keeps_runs():
        with suppress(InputError):
            keep(open_library(), card, answer, wall_s)


def start_every(names: Names) -> None:
    """Run cards beside the page, one after the other in a process of their own."""
    run_owner().start(
        EVERY,
        names,
        lambda _slots: FunctionRun(partial(_work, names), partial(measured, names), "cards"),
        lambda _nothing: "",
    )


def _work(names: Names, stop: Stop, on_step: Callable[[CardStep], None]) -> tuple[()]:
    def take(step: CardStep) -> None:
        if step.answer is not None:
            took(step.card, step.answer, step.wall_s)
        on_step(step)

    call_in_worker(run_cards, names, stop=stop, on_step=take, grace_s=GRACE_S)
    return ()
