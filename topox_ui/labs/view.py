"""Labs: predict, lock, work by hand, and only then see what the workbench computes; who works, and the labs as cards."""

from collections.abc import Callable

import streamlit as st

from topox_core.errors import InputError, refuse_if
from topox_core.figures.palette import Theme
from topox_core.labs.classroom.answers import load_answers, taken_up, together
from topox_core.labs.classroom.student import begin, check_name, closed
from topox_core.labs.generators.generator import SEEDS, seed_of
from topox_core.labs.lab import Lab, languages
from topox_core.labs.lab_file import load_lab, ready_labs
from topox_ui.classroom.held import brought_along, class_profile, shows
from topox_ui.labs.feedback import begin_at_top, said_to_field
from topox_ui.labs.lab_screen import PRACTICE, lab_screen
from topox_ui.labs.state import (
    LINES,
    OWN_LAB,
    WHO,
    LabsState,
    answers_to,
    begin_with,
    change,
    labs,
    line,
    now,
    say,
    say_html,
    texts,
    title_of,
)
from topox_ui.shell.charts import as_label, chart_title, escape, file_box, headline, quiet
from topox_ui.shell.menu import page_link
from topox_ui.state.widgets import menu


def first_screen() -> None:
    """Draw the cards, who works on them, and the boxes for files."""
    headline(say("kicker"), say("headline"))
    begin_at_top("cards")
    if LabsState.now().id:
        line("cards", "error", say("own.unknown_lab", lab=LabsState.now().id))
    if len(languages()) > 1:
        menu(LabsState, "lang", languages(), label=say("language"), width=160)
    in_class = class_profile() is not None
    if in_class:
        _who()
    else:
        quiet(say("who.look"))
    said_to_field("cards")
    with st.container(key="wall", horizontal=True):
        for lab in labs().values():
            _card(lab)
    quiet(say("note"))
    if not in_class:
        _who()
    if shows("Present"):
        page_link("Present", say("present"))
    chart_title(say("own.title"), say("own.note"))
    left, right = st.columns(2, gap="large")
    if not in_class:  # in a class the lecturer's folder has the labs
        with left:
            _box("lab", say("own.lab"), _take_lab)
    with right:
        _box("answers", say("own.answers"), _take_answers)


def _who() -> None:
    chart_title(say("who.title"), say("who.note"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name, value in zip(("course", "student", "seed"), _names(), strict=True):
            st.text_input(
                say(f"who.{name}"),
                value=value,
                key=f"lab_who_{name}",
                max_chars=40,
                width=220,
                disabled=name == "course" and class_profile() is not None,
                on_change=_typed,
                args=(name,),
            )
    try:
        seed = chosen_seed()
    except InputError as error:
        quiet(f'<span class="bad" role="status">✗ {escape(str(error))}</span>')
        return
    if seed is None:
        # After a click on a card it stands there.
        if class_profile() is not None and not (LINES.get() or {}).get("cards"):
            quiet(say("who.missing"))
    else:
        key = "who.practice" if _names()[2] else "who.yours"
        quiet(f'<span role="status">{say_html(key, seed=seed)}</span>')


def _names() -> tuple[str, str, str]:
    """Return course, student and seed as they were typed; in a class the course is the lecturer's."""
    profile, typed = class_profile(), WHO.get_or(dict)
    course = typed.get("course", "") if profile is None else profile.course
    return course, typed.get("student", ""), typed.get("seed", "")


def _typed(name: str) -> None:
    LINES.pop()  # what was missing may be there now
    WHO.get_or(dict)[name] = str(st.session_state[f"lab_who_{name}"]).strip()


def chosen_seed() -> int | None:
    """Return the seed that was typed in or follows from the names, None without either; raises InputError."""
    course, student, typed = _names()
    if typed:
        known = typed.isascii() and typed.isdigit() and int(typed) < SEEDS
        refuse_if((not known, say("who.wrong_seed", most=f"{SEEDS - 1:,}")))
        return int(typed)
    if not (course and student):
        return None
    check_name(course, say("who.course"))
    check_name(student, say("who.student"))
    return seed_of(course, student)


def _card(lab: Lab) -> None:
    with st.container(border=True, key=f"wall_{lab.id}"):
        st.button(
            as_label(title_of(lab)),
            key=f"lab_open_{lab.id}",
            type="tertiary",
            on_click=_open,
            args=(lab,),
        )
        # Of another lab its title.
        others = [title_of(labs()[n]) if n in labs() else texts().resolved(n) for n in lab.needs]
        needs = ", ".join(others) or say("needs_nothing")
        facts = {"minutes": lab.minutes, "points": f"{lab.points:g}", "needs": needs}
        surprise = (
            say(f"surprise.{lab.id}")
            if f"page.surprise.{lab.id}" in texts().flat
            else texts().resolved(lab.goals[0])
        )
        st.html(f'<p class="card">{escape(surprise)}<span>{say_html("card", **facts)}</span></p>')
        answers = answers_to(lab)
        if answers is not None and answers.given:
            every = lab.questions
            done = sum(closed(answers, q) or bool(answers.explained(q.id)) for q in every)
            st.html(
                f'<p class="quiet">{say_html("go_on", answered=done, questions=len(every))}</p>'
            )


def _open(lab: Lab) -> None:
    """Open a lab: go on with what this tab has begun with the same names, else begin, without names a practice."""
    LINES.pop()
    course, student, _ = _names()
    try:
        seed, before = chosen_seed(), answers_to(lab)
        if seed is None and before is None:
            refuse_if((class_profile() is not None, say("who.missing")))
            _begin(lab, 0)
        elif seed is not None and (before is None or before.seed != seed):
            _begin(lab, seed, course, student)
    except InputError as error:
        line("cards", "error", str(error))
        return
    LabsState.choose(id=lab.id, seed=answers_to(lab).seed, q=1)


def _begin(lab: Lab, seed: int, course: str = "", student: str = "") -> None:
    """Begin a lab; without names it is a practice, as by a link, which names lab and seed and nobody."""
    begin_with(begin(lab, course or PRACTICE, student or PRACTICE, now(), seed))


def _box(kind: str, label: str, read: Callable[[bytes, str], None]) -> None:
    """Draw a box for a file; what is wrong with it is said under the box."""

    def take(data: bytes, file: str) -> None:
        LINES.pop()
        try:
            read(data, file)
        except InputError as error:
            line(kind, "error", str(error))

    file_box(label, f"lab_file_{kind}", take, type="json", max_upload_size=1)
    said_to_field(kind)


def _take_lab(data: bytes, file: str) -> None:
    lab = load_lab(data, file)
    refuse_if((lab.id in ready_labs(), say("own.shipped", lab=lab.id)), file=file, field="id")
    OWN_LAB.set(lab)
    line("lab", "info", say("own.lab_loaded", title=title_of(lab)))


def _take_answers(data: bytes, file: str) -> None:
    """Go on with answers from a file; locks that this machine has besides stay."""
    read = load_answers(data, file)
    lab = labs().get(read.answers.lab)
    refuse_if((lab is None, say("own.no_lab", lab=read.answers.lab[:40])), file=file)
    check_name(read.answers.course, "course")
    check_name(read.answers.student, "student")
    from_file = taken_up(lab, read.answers, file)
    brought_along(lab, read)
    begin_with(from_file)
    change(lab, lambda here: together(here, from_file))
    if read.edited:
        line("answers", "error", say("own.edited"))
    WHO.get_or(dict).update(course=from_file.course, student=from_file.student)
    LabsState.choose(id=lab.id, seed=from_file.seed, q=1)


def draw(theme: Theme) -> None:
    """Draw the view Labs."""
    state = LabsState.now()
    lab = labs().get(state.id)
    if lab is None:
        first_screen()
    else:
        answers = answers_to(lab)
        if answers is None or (state.seed is not None and answers.seed != state.seed):
            # A link with a lab and a seed begins a practice where nobody has begun.
            _begin(lab, state.seed or 0)
            answers = answers_to(lab)
        lab_screen(lab, answers, theme)
