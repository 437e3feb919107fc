"""What is said to the questions of a screen: locked when, right or not, with whose mistake; and the truth at a reveal."""

from __future__ import annotations

from typing import Any

import streamlit as st

from topox_core.check.report import Violation, equation_words
from topox_core.labs.answers import Answers
from topox_core.labs.generators.generator import Value
from topox_core.labs.keys import filled, matrix_of, option_texts, written
from topox_core.labs.lab import Lab, Question
from topox_core.labs.student import AttemptReply, closed, reply_to, revealed, revealed_on
from topox_ui.labs.kept import LINES
from topox_ui.labs.state import LabsState
from topox_ui.labs.words import as_html, plural_of, points, say, say_html, texts
from topox_ui.shell.charts import frame, show_error


def said_to_field(name: str) -> None:
    """Draw the line that was kept for a field."""
    kept = (LINES.get() or {}).get(name)
    if kept is None:
        return
    kind, text = kept
    if kind == "error":
        show_error(text)
    else:
        status(as_html(text))


def status(html: str, sign: str = "") -> None:
    """Write a line that a screen reader says at once; ``sign`` is ``good`` or ``bad``."""
    mark = {"good": '<b class="good">✓</b> ', "bad": '<b class="bad">✗</b> '}.get(sign, "")
    st.html(f'<p class="lab-said" role="status">{mark}{html}</p>')


def said_to_question(lab: Lab, answers: Answers, question: Question) -> None:
    """Draw where a question stands."""
    if question.stage == "predict":
        _prediction(answers, question)
    elif question.stage == "explain":
        if answers.explained(question.id):
            status(say_html("saved", at=clock_words(answers.given[question.id].at)), "good")  # type: ignore[union-attr]
    else:
        reply = reply_to(lab, answers, question.id, LabsState.now().lang)
        if reply is not None:
            _reply(lab, answers, question, reply)


def clock_words(at: str) -> str:
    """Return the time of day of a moment as answers keep it, in UTC."""
    return f"{at[11:19]} UTC"


def _prediction(answers: Answers, question: Question) -> None:
    found = answers.prediction(question.id)
    if found is None:
        return
    at = clock_words(found.locked)
    if found.second is None:
        status(say_html("locked", at=at))
    else:
        status(say_html("locked_again", at=at, again=clock_words(found.second.locked)))


def _reply(lab: Lab, answers: Answers, question: Question, reply: AttemptReply) -> None:
    given = answers.worked(question.id)
    best = max((one.points for one in given.attempts), default=0.0)
    if reply.right:
        status(f"{say_html('right', points=points(best))} {_takes(reply)}", "good")
        return
    if given.given_up:
        status(say_html("given_up", points=points(best)))
    elif closed(answers, question):
        status(say_html("closed", points=points(best)), "bad")
    else:
        kind = "partly" if best else "wrong"
        words = plural_of(kind, reply.attempts_left, "left", points=points(best))
        status(f"{as_html(words)} {_takes(reply)}", "" if best else "bad")
    if reply.say and not given.given_up:
        st.html(f'<p class="note">{as_html(reply.say)}</p>')
    if reply.verdict is not None and reply.verdict.broken is not None:
        _checker(reply.verdict.broken, reply.verdict.more)
    if reply.key is not None and question.type != "grouping":
        _truth(lab, question, reply.key, answers.seed)


def _takes(reply: AttemptReply) -> str:
    """Return how long a feasible schedule by hand is; nothing of any other answer."""
    verdict = reply.verdict
    if verdict is None or verdict.broken is not None:
        return ""
    return say_html("takes", ms=f"{verdict.makespan_ms:g}")


def _checker(broken: Violation, besides: int) -> None:
    rule = say(f"rule.{broken.constraint}")
    said = say_html("checker", rule=rule, equation=equation_words(broken.equation))
    more = f", {plural_of('more_broken', besides)}" if besides else ""
    where = say_html("broken_by", where=f"{broken.item}: {broken.message}")
    st.html(f'<p class="quiet">{said} {where}{more}.</p>')


def _truth(lab: Lab, question: Question, key: Value, seed: int) -> None:
    words = words_of(lab, question, key, seed)
    st.html(f'<p class="lab-said">{say_html("the_key", key=words)}</p>')
    _grid(lab, question, key, seed)


def words_of(lab: Lab, question: Question, value: Any, seed: int) -> str:
    """Return an answer or a key in words: numbers with their unit, options by their text."""
    if question.type == "schedule" and isinstance(value, dict):
        return ", ".join(f"{name} {start:g}" for name, start in value.items())
    if question.type == "grouping" and isinstance(value, dict):
        return ", ".join(f"{name} {group}" for name, group in value.items())
    if question.type == "matrix":
        return say("cells")
    options = option_texts(lab, question, seed, texts())
    if isinstance(value, list | tuple):
        return ", ".join(options.get(str(one), str(one)) for one in value)
    if isinstance(value, str):
        return options.get(value, value)
    digits = question.digits if isinstance(value, int | float) else None
    number = written(value, None if digits is None else _decimals(float(value), digits))
    return f"{number} {question.unit}".strip()


def _decimals(value: float, asked: int) -> int:
    """Return how many digits behind the point are shown: those asked for, or four that count, as far as there are."""
    whole, _, rest = f"{value:.{max(3, asked)}f}".rstrip("0").partition(".")
    return min(len(rest), max(asked, 4 - len(whole.lstrip("-"))))


def _grid(lab: Lab, question: Question, value: Any, seed: int) -> None:
    """Draw the cells of an answer that is a matrix."""
    if question.type != "matrix" or not value:
        return
    matrix = matrix_of(lab, question, seed)
    signs = {0: "", 1: "✓"} if matrix.marks else {}
    columns = {
        name: [signs.get(row[k], str(row[k])) for row in value]
        for k, name in enumerate(matrix.columns)
    }
    frame({"": list(matrix.rows), **columns})


def _yours(lab: Lab, question: Question, answer: Any, key: Any, seed: int) -> str:
    if answer is None:
        return say_html("revealed.none")
    if question.type == "matrix":
        rows = zip(answer, key, strict=True)
        cells = [pair for mine, true in rows for pair in zip(mine, true, strict=True)]
        same = sum(mine == true for mine, true in cells)
        return say_html("revealed.cells", right=same, of=len(cells))
    return say_html("revealed.yours", answer=words_of(lab, question, answer, seed))


def truths(lab: Lab, answers: Answers, at: int) -> None:
    """Draw, on a reveal, the truth of every question since the reveal before, beside the answer."""
    for name in revealed_on(lab, answers, at):
        question = lab.question(name)
        if question.stage == "explain":
            continue
        found = revealed(lab, answers, name, LabsState.now().lang)
        with st.container(border=True, key=f"lab_truth_{name}"):
            screen = lab.screens[lab.screen_of(name)]
            text = filled(lab, screen, question.text, answers.seed, texts())
            st.html(f'<p class="quiet">{name} · {as_html(_first(text))}</p>')
            mine = _yours(lab, question, found.answer, found.key, answers.seed)
            key = say_html("revealed.truth", key=words_of(lab, question, found.key, answers.seed))
            sign = ""
            if question.stage == "work":  # a prediction is not judged
                sign = f" {say_html('revealed.same' if found.right else 'revealed.other')}"
            st.html(f'<p class="lab-truth"><b>{key}</b> {mine}{sign}</p>')
            _grid(lab, question, found.key, answers.seed)
            if found.say:
                st.html(f'<p class="note">{as_html(found.say)}</p>')


def _first(text: str, most: int = 140) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
