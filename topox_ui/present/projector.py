"""A lab on the projector: one slide, and under it the buttons that lead on; Next never passes a reveal by accident."""

import time
from dataclasses import replace
from pathlib import Path

import streamlit as st

from topox_core.figures.labs.instance_pictures import pictures_of, slider_of
from topox_core.figures.labs.picture import Asking, Picture
from topox_core.figures.palette import Theme
from topox_core.labs.classroom.statistics import START, Slide, slide_of, slides
from topox_core.labs.keys import (
    answer_words,
    depends_on_student,
    filled,
    given_table,
    instance_of,
    key_of,
    matrix_of,
    option_texts,
)
from topox_core.labs.lab import CLASS_SEED, Lab, Question, Screen, texts_in
from topox_ui.classroom.held import class_profile
from topox_ui.present.tally import (
    PresentState,
    advice,
    answers_menu,
    count_words,
    draw_spread,
    go,
    say,
    statistics_of,
    tally,
    title_of,
)
from topox_ui.shell.charts import chart, escape, html_parts
from topox_ui.state.session import Lasting, show_notice

# At 1280 x 720 the type is 28 px; on a slide with many words it is made smaller.
TYPE_PX, SCREEN_PX = 28, (1280, 720)


def projector_css(theme: Theme) -> str:
    """Return the style sheet of a slide."""
    high, wide = (100 * TYPE_PX / px for px in reversed(SCREEN_PX))
    largest = TYPE_PX * 1.25  # of a page of 1,600 px
    return f"""<style>
html {{ font-size: clamp(15px, min({high:.3f}vh, {wide:.3f}vw), {largest:.1f}px); }}
section[data-testid="stSidebar"], [data-testid="stExpandSidebarButton"], [data-testid="stHeader"] {{ display: none !important; }}
[data-testid="stMainBlockContainer"] {{ max-width: 1600px; padding: .6rem 1.2rem 84px !important; margin: 0 auto; }}
.st-key-steps {{ position: fixed !important; bottom: 14px; left: max(1.2rem, 50vw - 800px + 1.2rem); width: auto !important;
  right: max(1.2rem, 50vw - 800px + 1.2rem); background: {theme.page}; }}
[data-testid="stMain"] {{ outline: none !important; }} [data-testid="stMain"] [data-testid="stVerticalBlock"] {{ gap: .45rem; }}
.at {{ font-size: max(.62rem, 14px); margin: 0; color: {theme.ink}; }}
.said {{ font-size: 1rem; line-height: 1.35; margin: 0 0 .5rem; color: {theme.ink}; }}
h1.asked {{ font-size: 1.43rem !important; line-height: 1.22 !important; font-weight: 650 !important; margin: 0 0 .4rem !important;
  padding: 0 !important; color: {theme.ink}; text-wrap: balance; }}
h1.asked.small {{ font-size: 1.05rem !important; font-weight: 400 !important; }}
.options {{ margin: 0 0 .3rem !important; padding-left: 1.4rem !important; font-size: 1rem; line-height: 1.3; color: {theme.ink}; }}
.options li {{ margin: .12rem 0; font-size: 1rem; }} .options li::marker {{ font-weight: 650; }}
.do {{ font-size: .8rem; margin: 0; color: {theme.ink}; font-style: italic; }}
.truth {{ font-size: 1.43rem; font-weight: 650; margin: 0; color: {theme.ink};
  border-left: .3rem solid {theme.primary}; padding-left: .7rem; }}
.advice {{ font-size: 1.2rem; font-weight: 650; margin: .1rem 0 0; color: {theme.ink}; }}
.advice span {{ font-weight: 400; }}
.instance {{ border-collapse: collapse; font-size: .82rem; line-height: 1.2; color: {theme.ink}; margin: 0 !important; }}
.instance th, .instance td {{ border: 0 !important; border-bottom: 1px solid {theme.line} !important; padding: .22rem .5rem !important;
  text-align: left; font-weight: 400; }}
.instance thead th {{ font-weight: 650; }} .instance.square td, .instance.square th {{ text-align: center; min-width: 1.9rem; }}
.word {{ font-size: 2.6rem; font-weight: 650; letter-spacing: .18em; margin: 0; color: {theme.ink}; }}
.st-key-clickers {{ display: none; }}
[data-testid="stExpander"] summary, [data-testid="stExpander"] summary * {{ color: {theme.ink} !important; }}
.st-key-steps button, .st-key-steps [data-testid="stPopoverButton"] {{ border: 2px solid {theme.ink}; background: {theme.page}; }}
.st-key-steps button p, .st-key-steps [data-testid="stPopoverButton"] p {{ font-size: 17px; color: {theme.ink}; }}
.st-key-steps button, .st-key-over button {{ min-height: 44px; padding: 4px 14px; }}
.st-key-over button p {{ font-size: 17px; color: {theme.ink}; }} .st-key-over button {{ border-color: {theme.ink}; }}
.st-key-steps button * {{ color: {theme.ink} !important; opacity: 1 !important; font-size: 17px; white-space: nowrap; }}
.st-key-steps button:disabled {{ border-style: dotted; }}
.st-key-steps button[kind="primary"] {{ background: {theme.ink} !important; }}
.st-key-steps button[kind="primary"] *, .st-key-steps button[kind="primary"] p {{ color: {theme.page} !important; }}
[data-testid="stPopoverBody"] {{ font-size: 16px; }} .st-key-plan_clock {{ width: max-content !important; }}
[data-testid="stPopoverBody"] p, [data-testid="stPopoverBody"] label p, [data-testid="stPopoverBody"] input {{ font-size: 16px; }}
@media (max-width: 640px), (max-height: 500px) {{ .word {{ letter-spacing: .05em; }}
  .st-key-steps {{ position: static !important; flex-wrap: wrap !important; }} }}
</style>"""


# Makes the type of the slide in view smaller, step by step, as long as it is higher than the window.
MIN_PX = 13
_fit = st.components.v2.component(
    "topox_slide_fitting", js=Path(__file__).with_name("fitting.js").read_text(encoding="utf-8")
)


# When each lab was started, in s since 1970.
_STARTED = Lasting[dict[str, float]]("present_started")
# The browser counts on by itself: a timer of the server would draw the page again.
_SCRIPT = """
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector(".plan-clock");
  const since = performance.now();
  const draw = () => {
    const minutes = (data.elapsed_s + (performance.now() - since) / 1000) / 60;
    const late = data.until !== null && minutes > data.until;
    box.textContent = data.running.replace("{minutes}", Math.floor(minutes)) + data.plan;
    box.setAttribute('style', `border: ${late ? `3px double ${data.ink}` : `1px solid ${data.line}`}`);
    box.setAttribute("aria-label", box.textContent + (late ? `, ${data.over}` : ""));
  };
  draw();
  const timer = setInterval(draw, 5000);
  return () => clearInterval(timer);
}
"""
_HTML = '<div class="plan-clock" role="timer" aria-live="off"></div>'
_CSS = ".plan-clock { display: inline-block; padding: 2px 10px; border-radius: 6px; font-size: 17px; white-space: nowrap; }"
_clock = st.components.v2.component("topox_plan_clock", html=_HTML, css=_CSS, js=_SCRIPT)


def clock(lab: Lab, slide: Slide, theme: Theme) -> None:
    """Draw the clock of a lab, or the button that starts it."""
    started = _STARTED.get_or(dict).get(lab.id)
    if started is None:
        st.button(say("present.clock.start"), key="start_clock", on_click=_start, args=(lab.id,))
        return
    until = slide.until
    plan = "" if until is None else f" · {say('present.clock.until', until=f'{until:g}')}"
    _clock(
        key="plan_clock",
        data={
            "elapsed_s": max(0.0, time.time() - started),
            "until": until,
            "running": say("present.clock.running"),
            "plan": plan,
            "over": say("present.clock.over"),
            "ink": theme.ink,
            "line": theme.line,
        },
        width="content",
    )


def _start(lab: str) -> None:
    _STARTED.get_or(dict)[lab] = time.time()


# Schedules stand side by side, of other figures there is one; how high it may be at 1280 x 720, and
# the room that titles of axes need in large type.
BESIDE, PICTURE_PX, BELOW_PX = "gantt", 352, 62


def projector(lab: Lab, theme: Theme) -> None:
    """Draw the slide that the address names."""
    theme = replace(
        theme, muted=theme.ink, scale=1.6
    )  # larger type, and nothing fainter than the ink
    now, every = PresentState.now(), slides(lab)
    at = slide_of(every, now.q, now.show)
    slide = every[at]
    st.html(projector_css(theme))
    show_notice()
    with st.container(horizontal=True, vertical_alignment="center", key="over"):
        place = "" if slide.place == START else slide.place
        line = say(
            "present.step", lab=escape(title_of(lab)), place=escape(place), at=at + 1, of=len(every)
        )
        st.html(f'<p class="at">{line.replace(" ·  · ", " · ")}</p>', width="content")
        st.space("stretch")
        clock(lab, slide, theme)
    _draw(lab, slide, theme)
    _steps(lab, every, at)
    _fit(key="present_fitting", data={"slide": f"{slide.place} {slide.show}", "least": MIN_PX})


def _draw(lab: Lab, slide: Slide, theme: Theme) -> None:
    if slide.screen is None:
        goals = map(texts_in(lab.language).resolved, lab.goals)
        st.html(_PARTS.first(title_of(lab), goals, class_profile()))
        return
    screen = lab.screens[slide.screen]
    question = next((one for one in screen.questions if one.id == slide.place), None)
    if question is None:
        _told(lab, screen, theme)
    elif slide.show == "ask":
        _asked(lab, screen, question)
    elif slide.show == "tally":
        st.html(_PARTS.small(_question(lab, screen, question)))
        tally(lab, question, theme)
    else:
        _revealed(lab, screen, question, theme)


_PARTS = html_parts(Path(__file__).with_name("slide.html"), say)


def _told(lab: Lab, screen: Screen, theme: Theme) -> None:
    """Draw a screen that asks nothing: what was predicted before it is shown."""
    st.html(_PARTS.small(filled(lab, screen, screen.text, CLASS_SEED)))
    pictures = pictures_of(_asking(lab, screen, theme))[: 2 if BESIDE in screen.show else 1]
    for column, picture in zip(st.columns(max(len(pictures), 1)), pictures, strict=False):
        with column:
            _picture(picture)
    if not pictures:
        _instance(lab, screen)


def _asking(lab: Lab, screen: Screen, theme: Theme) -> Asking:
    """Return what the figures of a reveal are drawn from: nothing of it that a later question asks for."""
    instance = instance_of(lab, screen, CLASS_SEED)
    at = lab.screens.index(screen)
    hidden = {
        question.key
        for later in lab.screens[at + 1 :]
        if later.instance == screen.instance
        for question in later.questions
        if isinstance(question.key, str)
    }
    slider = None if instance is None else slider_of(screen, instance)
    value = slider.values[len(slider.values) // 2] if slider else None
    return Asking(
        lab, screen, instance, texts_in(lab.language), theme, frozenset(hidden), True, value
    )


def _picture(picture: Picture) -> None:
    figure, table = picture.figure, picture.table
    height, below = figure.layout.height or PICTURE_PX, figure.layout.margin.b or 0
    figure.update_layout(height=min(height, PICTURE_PX), margin_b=max(below, BELOW_PX))
    st.html(f'<p class="at"><b>{escape(picture.title)}</b></p>')
    chart(figure, f"present_{picture.id}", picture.alt, table.by_column)


def _asked(lab: Lab, screen: Screen, question: Question) -> None:
    table = given_table(lab, screen, CLASS_SEED)
    left, right = st.columns([1.35, 1] if table is not None else [1, 0.01], gap="medium")
    before, text = (filled(lab, screen, one, CLASS_SEED) for one in (screen.text, question.text))
    with left:
        options = option_texts(lab, question, CLASS_SEED).values()
        st.html(_PARTS.asked(question, before, text, options))
    with right:
        if question.type == "matrix":
            st.html(_PARTS.given(matrix_of(lab, question, CLASS_SEED).as_table(), "square"))
        _instance(lab, screen)


def _revealed(lab: Lab, screen: Screen, question: Question, theme: Theme) -> None:
    own = texts_in(lab.language)
    st.html(_PARTS.small(_question(lab, screen, question)))
    if question.stage == "explain":
        st.html(_PARTS.listed(say("present.rubric"), map(own.resolved, question.rubric)))
        return
    key = key_of(lab, question, CLASS_SEED)
    text = answer_words(lab, question, key, CLASS_SEED, own)
    if question.type == "matrix":
        st.html(_PARTS.given(matrix_of(lab, question, CLASS_SEED).as_table(key), "square"))
    elif text:
        st.html(_PARTS.truth(depends_on_student(lab, question), text))
    said = [own.resolved(one.say) for one in question.feedback[:2]]
    counted = statistics_of(lab, question)
    if counted.count:
        st.html(advice(question, counted))
        draw_spread(lab, question, counted, theme, revealed=True)
    elif said:
        st.html(_PARTS.listed(say("present.usual"), said))


def _question(lab: Lab, screen: Screen, question: Question) -> str:
    return f"{question.id}. {filled(lab, screen, question.text, CLASS_SEED)}"


def _instance(lab: Lab, screen: Screen) -> None:
    """Draw what students are given of the class instance."""
    table = given_table(lab, screen, CLASS_SEED)
    if table is not None:
        st.html(_PARTS.given(table))


def _steps(lab: Lab, every: tuple[Slide, ...], at: int) -> None:
    """Draw the buttons; clickers send Page Up and Page Down, so that a hidden pair has these."""
    slide = every[at]
    before, after = every[max(at - 1, 0)], every[min(at + 1, len(every) - 1)]
    of_place = {one.show: one for one in every if one.place == slide.place}
    reveal, counted = of_place.get("reveal"), of_place.get("tally")
    with st.container(horizontal=True, vertical_alignment="center", key="steps"):
        _step("previous", "Left", before, at == 0)
        _step("next", "Right", after, at == len(every) - 1, primary=True)
        _step("reveal", "E", reveal, reveal is None or slide.show == "reveal")
        if slide.show == "tally":
            _step("question", "T", of_place["ask"], False)
        else:
            _step("tally", "T", counted, counted is None)
        st.space("stretch")
        if counted is not None:
            answers_menu(lab, lab.question(slide.place))
            if slide.show == "ask":
                words = count_words(statistics_of(lab, lab.question(slide.place)).count)
                st.html(f'<p class="at">{words}</p>', width="content")
        st.button(
            say("present.leave"),
            key="leave_lab",
            on_click=PresentState.choose,
            kwargs={"lab": None, "q": None, "show": None},
            type="tertiary",
        )
    with st.container(key="clickers"):
        _step("previous", "PageUp", before, at == 0, kind="clicker")
        _step("next", "PageDown", after, at == len(every) - 1, kind="clicker")


def _step(
    name: str,
    shortcut: str,
    to: Slide | None,
    off: bool,
    primary: bool = False,
    kind: str = "step",
) -> None:
    st.button(
        say(f"present.{name}"),
        key=f"{kind}_{name}",
        shortcut=shortcut,
        on_click=go,
        args=(to,),
        disabled=off,
        type="primary" if primary else "secondary",
    )
