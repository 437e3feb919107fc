"""The slide that is chosen on Present; and what a class answered: files, votes and predictions counted, each question's tally."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import streamlit as st
from plotly.graph_objects import Figure

from topox_core.figures.labs.predictions import numbers_as_dots, numbers_histogram, options_chosen
from topox_core.figures.palette import Theme
from topox_core.labs.classroom.answers import Answers, load_answers
from topox_core.labs.classroom.folder import Unreadable, latest_of_each, load_each
from topox_core.labs.classroom.leaderboard import BOARDS, load_entry
from topox_core.labs.classroom.statistics import (
    COUNTED,
    EXPLAIN_BELOW,
    GO_ON_ABOVE,
    MAX_VOTES,
    START,
    QuestionStatistics,
    Slide,
    Votes,
    each_vote,
    given_to,
    question_statistics,
    read_called_out,
    share_words,
    spread_of,
)
from topox_core.labs.keys import in_words, key_of, option_texts
from topox_core.labs.lab import CLASS_SEED, Lab, Question, Texts, texts_in
from topox_core.labs.lab_file import ORDER
from topox_core.schema.fields import setting
from topox_ui.classroom.held import class_profile, labs_offered
from topox_ui.shell.charts import chart, escape
from topox_ui.state.session import Lasting, PageState, notify, notify_errors
from topox_ui.state.widgets import bound, pick

SEES = ("labs", "statistics", "leaderboards")
SOURCES = ("folder", "files", "hands")


class PresentState(PageState):
    """The lab on the projector and its slide; without a lab, which part of the page is in view.

    Attributes
    ----------
    q, show
        The question or screen, and what of it is shown.
    source
        Where answers are counted from; empty: from the class folder, from files, else from hands.
    about, board
        The lab of the statistics, and the leaderboard.
    """

    prefix = "present."

    lab: Annotated[str, setting(max_length=40)] = ""
    q: Annotated[str, setting(max_length=30)] = START
    show: Annotated[str, setting(choices=["ask", "tally", "reveal"])] = "ask"
    source: Annotated[str, setting(choices=[*SOURCES, ""])] = ""
    see: Annotated[str, setting(choices=SEES)] = "labs"
    about: Annotated[str, setting(max_length=40)] = ORDER[0]
    board: Annotated[str, setting(choices=BOARDS)] = next(iter(BOARDS))


def say(key: str, **facts: object) -> str:
    """Return a sentence of the page."""
    return texts_in("en").say(key, **facts)


def title_of(lab: Lab) -> str:
    """Return a lab's title in its own language."""
    return texts_in(lab.language).resolved(lab.title)


def chosen_lab() -> Lab | None:
    """Return the lab on the projector, None before one is chosen; an unknown one is named in a line."""
    name = PresentState.now().lab
    with notify_errors():
        labs = labs_offered() if name else {}
        if name and name not in labs:
            notify("warning", say("present.unknown", lab=name[:40]))
        return labs.get(name)
    return None


def go(slide: Slide) -> None:
    """Show a slide."""
    PresentState.choose(q=slide.place, show=slide.show)


def source() -> str:
    """Return where answers are counted from when nothing was chosen."""
    return PresentState.now().source or ("folder" if class_profile() is not None else "files")


def see_switch() -> None:
    """Offer the parts of the page."""
    labels = {name: say(f"present.see.{name}") for name in SEES}
    pick(PresentState, "see", labels, label=say("present.see.label"), label_visibility="collapsed")


MAX_FILES = 200
# What reads the files of a box.
LOADERS: dict[str, Callable[[bytes, str], Any]] = {"answers": load_answers, "entries": load_entry}


@dataclass
class Handed:
    """Files of one kind that were given to the page: what they hold, and what was none."""

    found: tuple[Any, ...] = ()
    refused: list[Unreadable] = field(default_factory=list)


_HANDED = Lasting[dict[str, Handed]]("present_handed")
# By lab, question and vote (1, 2): how many gave each answer, and numbers called out as they were typed.
_HANDS = Lasting[dict[tuple[str, str, int], tuple[Votes, str]]]("present_hands")


def handed(kind: str) -> Handed:
    """Return the files of a kind that were given."""
    return _HANDED.get_or(dict).get(kind, Handed())


def answers_to(lab: Lab) -> tuple[Answers, ...]:
    """Return the answers to a lab: of the class folder, or of the files that were given; one a student."""
    profile = class_profile()
    if profile is not None and source() == "folder":
        return profile.folder.answers_to(lab.id)
    given = (file.answers for file in handed("answers").found)
    return latest_of_each(one for one in given if one.lab == lab.id)


def hands(lab: Lab, question: Question, vote: int) -> tuple[Votes, str]:
    """Return the votes that were counted by hand, and the numbers called out, as they were typed."""
    return _HANDS.get_or(dict).get((lab.id, question.id, vote), ({}, ""))


def count_hands(lab: Lab, question: Question, vote: int, votes: Votes, text: str = "") -> None:
    """Take votes counted by hand in place of those before; of numbers called out also as they were typed."""
    counted = {k: n for k, n in votes.items() if n}
    _HANDS.get_or(dict)[lab.id, question.id, vote] = (counted, text)


def by_hand(lab: Lab, question: Question) -> bool:
    """Return whether a question is counted by hand: that was chosen, or there are hands and no answers."""
    only_hands = bool(hands(lab, question, 1)[0]) and not answers_to(lab)
    return question.type in COUNTED and (source() == "hands" or only_hands)


def statistics_of(lab: Lab, question: Question) -> QuestionStatistics:
    """Return what the class answered to one question, before and after the discussion: counted by hand, or of files."""
    if by_hand(lab, question):
        first, second = (each_vote(hands(lab, question, vote)[0]) for vote in (1, 2))
    else:
        first, second = given_to(question, answers_to(lab))
    return question_statistics(lab, question, first, second)


LOOKED_EVERY_S = 5
MAX_MB = 1  # of one file, in the browser; what is read is less
# Of which questions the spread was asked for before the discussion.
_ASKED_FOR = Lasting[set[tuple[str, str]]]("present_spread")


def count_words(count: int) -> str:
    """Return how many answers there are, in words."""
    form = {0: "none", 1: "one"}.get(count, "many")
    return say(f"present.count.{form}", count=count)


def tally(lab: Lab, question: Question, theme: Theme) -> None:
    """Draw the answers before the reveal; those of a class folder are looked for again and again."""
    live = class_profile() is not None and source() == "folder"
    draw = st.fragment(_tally, run_every=LOOKED_EVERY_S if live else None)
    draw(lab, question, theme)


def _tally(lab: Lab, question: Question, theme: Theme) -> None:
    one = statistics_of(lab, question)
    if not one.count:
        what = "no_answers" if question.type in COUNTED else "not_counted"
        st.html(
            f'<p class="said"><b>{count_words(0)}</b></p><p class="said">{say(f"present.{what}")}</p>'
        )
        return
    if _hides(lab, question, one):
        st.html(f'{advice(question, one)}<p class="said">{say("present.hidden")}</p>')
        st.button(
            say("present.spread"),
            key="show_spread",
            on_click=_ASKED_FOR.get_or(set).add,
            args=((lab.id, question.id),),
        )
        return
    st.html(advice(question, one))
    draw_spread(lab, question, one, theme)


def _hides(lab: Lab, question: Question, one: QuestionStatistics) -> bool:
    """Return whether neighbours are still to discuss: nobody should see what the others chose."""
    if not question.vote or one.right is None or one.right_again is not None:
        return False
    asked = (lab.id, question.id) in _ASKED_FOR.get_or(set)
    return EXPLAIN_BELOW <= one.right <= GO_ON_ABOVE and not asked


def advice(question: Question, one: QuestionStatistics) -> str:
    """Return the share that is right, what may be done now where it was a vote, and how many answered."""
    right = "–" if one.right is None else share_words(one.right)
    line = one.advice() if question.vote else say("present.alone_right", share=right)
    count = count_words(one.count) + (say("present.own_numbers") if one.relative else "")
    return f'<p class="advice" role="status">{line} <span>· {count}</span></p>'


def draw_spread(
    lab: Lab,
    question: Question,
    one: QuestionStatistics,
    theme: Theme,
    revealed: bool = False,
    name: str = "class_answers",
) -> None:
    """Draw what was answered and how often, if anything can be drawn, as the chart of a name; after the reveal with the truth."""
    words = texts_in(lab.language)
    rows = spread_of(lab, question, one, words)
    if not rows:
        return
    names, counts = map(list, zip(*rows, strict=True))
    key = key_of(lab, question, CLASS_SEED) if revealed else None
    if one.options:
        again = [count for _, count in one.options_again] or None
        true = key if isinstance(key, tuple) else (key,)
        right = [at for at, (id, _) in enumerate(one.options) if id in true and one.one_truth]
        votes = (say("present.first"), say("present.second"))
        figure = options_chosen(rows, theme, names=votes, again=again, right=right)
        heads = {"options": names, "votes": counts} | ({} if again is None else {"again": again})
    else:
        figure = _of_numbers(question, one, theme, key, words)
        heads = {"number": names, "count": counts}
    table = {say(f"present.chart.{head}"): column for head, column in heads.items()}
    content = "; ".join(f"{a}: {n}" for a, n in rows)
    alt = say("present.chart.alt", question=question.id, content=content)
    chart(figure, name, alt, lambda: table)


def _of_numbers(
    question: Question, one: QuestionStatistics, theme: Theme, key: Any, words: Texts
) -> Figure:
    """Return the figure of numbers, few or many; ``key`` is None before the reveal."""
    unit, truth = (words.say("stats.times"), 1.0) if one.relative else (question.unit, key)
    said = say("present.truth_relative") if one.relative else in_words(question, key)
    shown: dict[str, Any] = {"unit": unit}
    if key is not None:
        shown |= {"truth": float(truth), "truth_words": said}
    if not one.bins:
        return numbers_as_dots(one.values, theme, **shown)
    ends = (words.say("stats.less"), words.say("stats.more"))
    return numbers_histogram(one.bins, theme, ends=ends, **shown)


def answers_menu(lab: Lab, question: Question) -> None:
    """Offer where answers are counted from: the class folder, files, hands."""
    with st.popover(say("present.answers")):
        sources = {name: say(f"present.source.{name}") for name in SOURCES}
        if class_profile() is None:
            del sources["folder"]
        shown = "hands" if by_hand(lab, question) else source()
        pick(PresentState, "source", sources, label=say("present.source.label"), value=shown)
        if shown == "folder":
            st.caption(say("present.folder_read", count=len(answers_to(lab))))
        elif shown == "files":
            upload_box(say("present.files", most=MAX_FILES))
            st.caption(say("present.files_read", count=len(answers_to(lab))))
        elif question.type not in COUNTED:
            st.caption(say("present.not_counted"))
        elif question.type == "choice":
            _count_options(lab, question)
        else:
            for vote in (1, 2) if question.vote else (1,):
                bound(
                    "text_input",
                    say("present.called" if vote == 1 else "present.called_again"),
                    f"called_{lab.id}_{question.id}_{vote}",
                    hands(lab, question, vote)[1],
                    partial(_called, lab, question, vote),
                    max_chars=400,
                )


def upload_box(label: str, key: str = "up_answers", kind: str = "answers") -> None:
    """Draw a box for files of a class, which take the place of those before; a folder may be dropped into it."""

    def brought() -> None:
        files = [(file.name, file.getvalue) for file in st.session_state.get(key) or []]
        found, refused = load_each(files[:MAX_FILES], LOADERS[kind])
        refused += [
            Unreadable(name, f"is beyond the {MAX_FILES} files that are read")
            for name, _ in files[MAX_FILES:]
        ]
        _HANDED.get_or(dict)[kind] = Handed(tuple(one for _, one in found), refused)

    st.file_uploader(
        label,
        key=key,
        type=["json"],
        accept_multiple_files=True,
        max_upload_size=MAX_MB,
        on_change=brought,
    )


def _count_options(lab: Lab, question: Question) -> None:
    """Draw a field an option: the first vote, and beside it the one after the discussion."""
    texts = option_texts(lab, question, CLASS_SEED)
    votes = (1, 2) if question.vote else (1,)
    columns = st.columns(len(votes))
    for vote, column in zip(votes, columns, strict=True):
        counted, _ = hands(lab, question, vote)
        with column:
            if question.vote:
                st.caption(say("present.first" if vote == 1 else "present.again"))
            for option in question.options:
                bound(
                    "number_input",
                    texts[option.id],
                    f"hands_{lab.id}_{question.id}_{vote}_{option.id}",
                    counted.get(option.id, 0),
                    partial(_counted, lab, question, vote, option.id),
                    min_value=0,
                    max_value=MAX_VOTES,
                )


def _counted(lab: Lab, question: Question, vote: int, option: str, number: int | None) -> None:
    votes = {**hands(lab, question, vote)[0], option: number or 0}
    if sum(votes.values()) > MAX_VOTES:
        notify("error", f"{escape(question.id)}: {sum(votes.values())} > {MAX_VOTES}")
        return
    count_hands(lab, question, vote, votes)


def _called(lab: Lab, question: Question, vote: int, text: str) -> None:
    with notify_errors():
        count_hands(lab, question, vote, read_called_out(lab, question, text), text)
