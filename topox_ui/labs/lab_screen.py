"""One screen of a lab: its words, its figures, its questions, its one button, and the ways on."""

import re
from collections.abc import Sequence
from typing import Any

import streamlit as st

from topox_core.economics.price_sets import PRICE_SETS, edits_between
from topox_core.figures.labs.hand_schedules import starts_of
from topox_core.figures.labs.instance_pictures import pictures_of, slider_of
from topox_core.figures.labs.picture import Asking
from topox_core.figures.palette import Theme
from topox_core.labs.classroom.answers import Answers, dump_answers
from topox_core.labs.classroom.grading import score
from topox_core.labs.classroom.student import (
    ShownScreen,
    closed,
    last_answer,
    may_compute,
    revealed_at,
    shown_screen,
    still_asked,
    waiting_for,
)
from topox_core.labs.generators.four_jobs import FourJobs
from topox_core.labs.generators.generator import GivenTable
from topox_core.labs.generators.rails import DELAY_MS, GPUS_PER_SERVER, OTHER, Price, Windows
from topox_core.labs.hand_schedule import drawn_or_read
from topox_core.labs.keys import instance_of
from topox_core.labs.lab import Lab, Question
from topox_ui.classroom.held import shows
from topox_ui.labs.feedback import (
    SAID,
    begin_at_top,
    go,
    hand_in,
    said_to_field,
    said_to_question,
    show_answers,
    status,
    truths,
)
from topox_ui.labs.fields import Field, answer_field
from topox_ui.labs.state import (
    KEPT_LINE,
    LINES,
    LabsState,
    forget,
    points,
    say,
    say_html,
    texts,
    title_of,
)
from topox_ui.shell.charts import (
    as_label,
    button,
    chart,
    chart_title,
    escape,
    headline,
    html_table,
    quiet,
    write_html,
)
from topox_ui.shell.downloads import link_menu
from topox_ui.shell.menu import go_to
from topox_ui.shell.pages import page_of
from topox_ui.state.loading import Loaded, adopt
from topox_ui.state.session import link_query, notify
from topox_ui.state.widgets import slide

# The list that was measured on a cluster, and the sample of forty jobs.
MEASURED, FORTY_JOBS = "measured", "mix-32-pods"


def see_instance(lab: Lab, instance: Any, seed: int) -> None:
    """Offer to load an instance that is a task graph, and to see its schedule."""
    if not (hasattr(instance, "graph") and hasattr(instance, "cluster") and shows("Schedule")):
        return
    if st.button(
        say("see_schedule"), key="lab_see", icon=":material/open_in_new:", type="tertiary"
    ):
        adopt(Loaded(instance.graph(), instance.cluster(), f"{lab.id}-{seed}"))
        notify("info", say("loaded_instance", lab=title_of(lab)))
        go_to("Schedule")


def look_on(lab: Lab, answers: Answers, at: int) -> None:
    """Link to the page that goes on from a lab's instance, once no question asks for any of its values."""
    screen = next((one for one in lab.screens[at::-1] if one.instance), None)
    if screen is None or still_asked(lab, answers, screen.instance):
        return
    found = _page_of(instance_of(lab, screen, answers.seed))
    if found is not None and shows(found[0]):
        title, query = found
        page = page_of(title)
        # What was chosen on that page before would make it another question.
        carried = link_query(page.carried).items()
        others = {k: text for k, text in carried if not k.startswith(page.prefix)}
        st.page_link(
            page.path,
            label=say(f"look_on.{title}"),
            icon=":material/open_in_new:",
            query_params=others | {page.prefix + name: text for name, text in query.items()},
        )


def _page_of(instance: Any) -> tuple[str, dict[str, str]] | None:
    """Return a page with its choices: those of the instance, as far as the page has them."""
    if isinstance(instance, Windows):
        limit = str(instance.limit_percent)
        return "Rails", {"source": MEASURED, "delay_ms": f"{DELAY_MS:g}", "limit": limit}
    if isinstance(instance, FourJobs):
        return "Sharing", {"source": "sample", "sample": FORTY_JOBS, "algorithm": "hill-climbing"}
    if isinstance(instance, Price):
        asked = instance.question()
        return "Network", {
            "gpus": str(instance.gpus),
            "gpus_per_server": str(GPUS_PER_SERVER),
            "counting": asked.counting.method,
            "against": OTHER,
            "years": str(instance.years),
            "prices": asked.catalogue.based_on,
            "parts": edits_between(PRICE_SETS[asked.catalogue.based_on], asked.catalogue),
        }
    return None


def your_answers(lab: Lab, answers: Answers, to_hand_in: bool = False) -> None:
    """Draw the foot of every screen: points, file, link, and the way back to all labs.

    Parameters
    ----------
    to_hand_in
        Whether nothing is left but to save the file: its button is then the one of the screen.
    """
    now = score(lab, answers)
    so_far = now["predictions"] + now["worked"]
    read_later = sum(q.points for q in lab.questions if q.stage == "explain")
    score_words = say("answers.score", points=f"{so_far:g}", of=f"{lab.points - read_later:g}")
    if read_later:
        score_words += say("answers.read_later", points=f"{read_later:g}")
    st.divider()
    chart_title(say("answers.title"), score_words, beside=True)
    facts = {"course": answers.course, "student": answers.student, "seed": answers.seed}
    who = (
        say("who.practice", seed=answers.seed)
        if nameless(answers)
        else f"{say('answers.who', **facts)}."
    )
    quiet(f"{escape(who)} {escape(KEPT_LINE.get() or say('answers.kept'))}")
    with st.container(horizontal=True, key="lab_foot"):
        st.download_button(
            say("answers.save"),
            data=lambda: dump_answers(answers, score(lab, answers)),
            file_name=f"{lab.id}-{answers.seed}.answers.json",
            mime="application/json",
            on_click="ignore",
            key="lab_download",
            icon=":material/download:",
            type="primary" if to_hand_in else "secondary",
        )
        button(say("leave"), "lab_leave", "apps", leave)
        if answers.is_practice:
            button(say("again"), "lab_anew", "restart_alt", _anew, lab)
        link_menu(more=f" {say('answers.link')}")


def nameless(answers: Answers) -> bool:
    """Return whether whoever answers gave neither course nor student id."""
    return (answers.course, answers.student) == (PRACTICE, PRACTICE)


def leave() -> None:
    """Go to all labs."""
    LINES.pop()
    LabsState.choose(id=None)


def _anew(lab: Lab) -> None:
    """Forget the answers of a practice: of a student's own instance no lock is ever taken back."""
    forget(lab)
    LabsState.choose(id=None)


def state_of_screen(lab: Lab, answers: Answers, at: int) -> str:
    """Return where a screen stands: ``waits``, ``open``, ``locked`` (predictions), or ``done``."""
    screen = lab.screens[at]
    if waiting_for(lab, answers, at):
        return "waits"
    if screen.stage == "explain":
        return "done" if all(answers.explained(q.id) for q in screen.questions) else "open"
    if not all(closed(answers, question) for question in screen.questions):
        return "open"
    return "locked" if screen.stage == "predict" else "done"


PRACTICE = "practice"  # course and student of who gave none
SHARED_RUBRIC = "@lab.rubric.four"  # of the labs that ship; a lecturer's own is not told
SHEET = Question("sheet", "schedule", 0, "")  # start times that are tried and not handed in


def lab_screen(lab: Lab, answers: Answers, theme: Theme) -> None:
    """Draw the screen that the address names."""
    at = min(LabsState.now().q, len(lab.screens)) - 1
    shown = shown_screen(lab, answers, at, texts().language)
    standing = [(one.stage, state_of_screen(lab, answers, k)) for k, one in enumerate(lab.screens)]
    st.html(SAID.strip(standing, at))
    title = escape(title_of(lab))
    kicker = say("screen", lab=title, at=at + 1, count=len(lab.screens))
    first, rest = _first_sentence(shown.text or title_of(lab))
    headline(f"{say('kicker')} · {kicker}", escape(first))
    begin_at_top(f"{lab.id} {answers.seed} {at}")
    if nameless(answers):
        quiet(say("who.looking"))
    if not shown.open:
        _waits(lab, shown, at)
        your_answers(lab, answers)
        return
    if rest:
        write_html(f'<div class="lesson lab-text"><p>{escape(rest)}</p></div>')
    fields = [_field(lab, answers, one) for one in shown.questions]
    _both_sides(lab, answers, shown, fields, at, theme)
    look_on(lab, answers, at)
    _buttons(lab, answers, at, fields)
    last = at + 1 == len(lab.screens) and state_of_screen(lab, answers, at) == "done"
    your_answers(lab, answers, to_hand_in=last and not _unsaved(answers, fields))


def _both_sides(
    lab: Lab,
    answers: Answers,
    shown: ShownScreen,
    fields: Sequence[Field],
    at: int,
    theme: Theme,
) -> None:
    """Draw what is given and the figures at the left, questions or truths at the right."""
    screen = lab.screens[at]
    if not screen.instance:
        _questions(lab, answers, fields)
        return
    left, right = st.columns([1.45, 1], gap="large")
    with left:
        _pictures(lab, answers, shown, fields, at, theme)
    with right:
        _questions(lab, answers, fields)
        truths(lab, answers, at)


def _first_sentence(text: str) -> tuple[str, str]:
    found = re.match(r"(.{8,180}?[.?!…])\s+(\S.*)", text, re.DOTALL)
    return (found[1], found[2]) if found else (text, "")


def _waits(lab: Lab, shown: ShownScreen, at: int) -> None:
    write_html(f'<p class="lesson">{say_html("waits", questions=", ".join(shown.waits_for))}</p>')
    first = shown.waits_for[0]
    place = lab.screen_of(first) + 1
    with st.container(horizontal=True, key="lab_buttons"):
        button(say("back"), "lab_back", "arrow_back", go, at)
        label = say("waits_link", question=first)
        button(label, "lab_to_open", "arrow_forward", go, place, primary=True)


def _field(lab: Lab, answers: Answers, asked: Question) -> Field:
    """Return the field of a question: locked with its answer where nothing can be changed any more."""
    screen, given = lab.screens[lab.screen_of(asked.id)], last_answer(answers, asked.id)
    return Field(lab, answers.seed, screen, asked, asked.id, closed(answers, asked), given)


def _questions(lab: Lab, answers: Answers, fields: Sequence[Field]) -> None:
    for field in fields:
        asked = field.asked
        question = lab.question(asked.id)
        with st.container(border=True, key=f"lab_question_{asked.id}"):
            facts = {"id": asked.id, "points": points(asked.points)}
            st.html(f'<p class="quiet">{say_html(f"question.{_worth(question)}", **facts)}</p>')
            write_html(f'<p class="lab-question">{escape(asked.text)}</p>')
            answer_field(field)
            said_to_field(field.name)
            said_to_question(lab, answers, question)
            _once_more(lab, answers, field)


def _worth(question: Question) -> str:
    """Return which sentence says what a question is worth."""
    if question.stage == "work" and question.attempts == 1:
        return "once"
    if SHARED_RUBRIC in question.rubric:
        return "explain_rubric"
    return "fewer" if question.stage == "work" and question.share(1) < 1 else question.stage


def _unsaved(answers: Answers, fields: Sequence[Field]) -> bool:
    """Return whether an explanation is missing, or differs from what was saved of it."""
    return any(
        one.asked.type == "text" and (one.draft or None) != answers.explained(one.asked.id)
        for one in fields
    )


def _once_more(lab: Lab, answers: Answers, field: Field) -> None:
    """Offer the second lock of a question that is voted on, until its reveal."""
    asked = field.asked
    before = answers.prediction(asked.id)
    again = asked.vote and before is not None and before.second is None
    if not again or revealed_at(lab, answers, asked.id):
        return
    # Who practises has nobody to discuss with.
    label = say("alone" if answers.is_practice else "discussed", id=asked.id)
    with st.expander(label, key=f"lab_again_{asked.id}"):
        second = Field(lab, field.seed, field.screen, asked, f"{asked.id}_again")
        answer_field(second)
        said_to_field(second.name)
        button(say("lock_again"), f"lab_lock_again_{asked.id}", "lock", hand_in, lab, [second])


def _pictures(
    lab: Lab,
    answers: Answers,
    shown: ShownScreen,
    fields: Sequence[Field],
    at: int,
    theme: Theme,
) -> None:
    screen = lab.screens[at]
    asked = [one for one in fields if one.asked.type == "schedule"]
    by_hand = asked[0] if asked else Field(lab, answers.seed, screen, SHEET, f"sheet_{screen.id}")
    instance = drawn_or_read(lab, screen, answers.seed)
    slider = slider_of(screen, instance)
    value = None if slider is None else slider.nearest(LabsState.now().at)
    asking = Asking(
        lab,
        screen,
        instance,
        texts(),
        theme,
        still_asked(lab, answers, screen.instance),
        may_compute(lab, answers, at),
        value,
        starts_of(by_hand.shown or {}),
        _tried(lab, answers, at),
    )
    pictures = pictures_of(asking)
    if shown.given is not None and ("tasks" in screen.show or not pictures):
        given_table(shown.given)
    for picture in pictures:
        title = escape(picture.title), escape(picture.note)
        table = picture.table
        chart(picture.figure, f"lab_{picture.id}", picture.alt, table.by_column, title=title)
    if instance is not None and slider is not None and screen.stage == "reveal":
        slide(
            LabsState,
            "at",
            [float(one) for one in slider.values],
            label=say(f"slider.{slider.key}"),
            value=value,
            words=lambda one: f"{one:g}",
        )
    if "hand_gantt" in screen.show and not asked:
        st.html(f'<p class="quiet">{say_html("field.own_sheet")}</p>')
        answer_field(by_hand)
    if screen.stage == "reveal":
        see_instance(lab, instance, answers.seed)


def _tried(lab: Lab, answers: Answers, at: int) -> list[str]:
    """Return the groupings that were tried on a screen, as letters."""
    return [
        "".join(str(group) for group in one.value.values())
        for question in lab.screens[at].questions
        if question.type == "grouping"
        for one in answers.worked(question.id).attempts
        if isinstance(one.value, dict)
    ]


def given_table(given: GivenTable) -> None:
    """Write what is given as a table of HTML."""
    table = html_table(
        map(escape, given.columns),
        [[*map(escape, row)] for row in given.rows],
        row_heads=True,
        caption=say_html("given"),
    )
    st.html(f'<div class="lab-given" tabindex="0">{table}</div>')


def _buttons(lab: Lab, answers: Answers, at: int, fields: Sequence[Field]) -> None:
    """Draw the one button of the screen, and the ways back and on."""
    screen = lab.screens[at]
    open_ones = [field for field in fields if not field.locked]
    with st.container(horizontal=True, vertical_alignment="center", key="lab_buttons"):
        if at:
            button(say("back"), "lab_back", "arrow_back", go, at)
        if screen.stage == "predict" and open_ones:
            label = say("lock" if len(open_ones) == 1 else "lock_many")
            button(label, "lab_lock", "lock", hand_in, lab, open_ones, primary=True)
        elif screen.stage == "work" and open_ones:
            button(say("check"), "lab_check", "check", hand_in, lab, open_ones, primary=True)
            _stop(lab, answers, open_ones)
        elif screen.stage == "explain":
            new = _unsaved(answers, fields)
            button(say("save"), "lab_save", "save", hand_in, lab, fields, primary=new)
        if at + 1 < len(lab.screens):
            reveals = lab.screens[at + 1].stage == "reveal"
            done = all(closed(answers, q) for q in screen.questions)
            label = say("happens" if reveals and done else "next")
            button(label, "lab_next", "arrow_forward", go, at + 2, primary=done)

    if at + 1 == len(lab.screens) and state_of_screen(lab, answers, at) == "done":
        status(say_html("finished"))


def _stop(lab: Lab, answers: Answers, open_ones: Sequence[Field]) -> None:
    """Offer to close what was tried at least once."""
    tried = [f.asked.id for f in open_ones if answers.worked(f.asked.id).attempts]
    if tried:
        note = say("stop_note", questions=", ".join(tried))
        button(say("stop"), "lab_stop", "visibility", show_answers, lab, tried, help=as_label(note))
