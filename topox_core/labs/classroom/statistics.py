"""What a class predicted: spread of the answers, share that is right before and after the discussion, frequent mistakes.

No names, and the truth only where it is asked for. On the projector: votes counted in the room, and a lab's
slides in order, one question a slide, with tally and reveal after each question.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from topox_core.errors import InputError, refuse_if, shown
from topox_core.io.tables import table_bytes
from topox_core.labs.classroom.answers import Answers
from topox_core.labs.classroom.marking import Marked, mark, read_answer
from topox_core.labs.keys import depends_on_student, filled, key_of, option_texts
from topox_core.labs.lab import CLASS_SEED, Lab, Question, Texts, texts_in
from topox_core.labs.worksheet import on_paper
from topox_core.text.numbers import NBSP, short

BINS = 12
LOW, HIGH = 5.0, 95.0
# Fewer answers are drawn as dots: a histogram of four would show who is who.
FEWEST = 5
# Peer instruction: below, explain; between, discuss and vote again; above, go on.
EXPLAIN_BELOW, GO_ON_ABOVE = 0.35, 0.70
MAX_MISTAKES = 3
# Answers from one number to another, and how many; the first and the last hold the tails as well.
Bin = tuple[float, float, int]
# Answers, each with the seed it was given for.
Ballots = Sequence[tuple[Any, int]]


@dataclass(frozen=True)
class QuestionStatistics:
    """One question of a class.

    Attributes
    ----------
    count
        Answers.
    relative
        Whether answers are to other numbers than those of the class instance: numbers are divided by
        the truth of their seed.
    values
        Numbers, ascending; ``bins`` is empty where they are too few.
    options, options_again
        Of a choice: id and how many chose it, before the discussion; after it where somebody voted again.
    right, right_again
        Share that is right at the first and at the second lock; None without answers.
    mistakes
        The most frequent misconceptions: what is said to them, and to how many.
    one_truth
        Of a choice: whether what is right in the class instance is right in every instance that was
        answered; else no option is right for all.
    """

    question: str
    type: str
    count: int
    relative: bool
    values: tuple[float, ...]
    bins: tuple[Bin, ...]
    options: tuple[tuple[str, int], ...]
    options_again: tuple[tuple[str, int], ...]
    right: float | None
    right_again: float | None
    mistakes: tuple[tuple[str, int], ...]
    one_truth: bool

    def advice(self, language: str = "en") -> str:
        """Return what a lecturer may do now, by the share that is right."""
        words, right = texts_in(language), self.right
        if right is None:
            return ""
        if self.right_again is not None:
            before, after = share_words(right), share_words(self.right_again)
            return words.say("stats.again", before=before, after=after)
        kind = "go_on" if right > GO_ON_ABOVE else "discuss"
        kind = "explain" if right < EXPLAIN_BELOW else kind
        return words.say(f"stats.{kind}", share=share_words(right))


def share_words(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100 * share:.0f}{NBSP}%"


def lab_statistics(lab: Lab, answers: Iterable[Answers]) -> tuple[QuestionStatistics, ...]:
    """Return the statistics of every question but explanations, over the answers to this lab."""
    every = [one for one in answers if one.lab == lab.id]
    return tuple(
        question_statistics(lab, question, *given_to(question, every))
        for question in lab.questions
        if question.stage != "explain"
    )


def question_statistics(
    lab: Lab,
    question: Question,
    firsts: Ballots,
    seconds: Ballots = (),
) -> QuestionStatistics:
    """Return the statistics of one question; an answer that cannot be read is not counted.

    Parameters
    ----------
    firsts, seconds
        Answers before and after the discussion, each with the seed it was given for.
    """
    read, again = _marked(lab, question, firsts), _marked(lab, question, seconds)
    relative = depends_on_student(lab, question) and any(seed != CLASS_SEED for _, seed, _ in read)
    values = _numbers(lab, question, [(value, seed) for value, seed, _ in read], relative)
    said = Counter(marked.say for _, _, marked in read if not marked.right and marked.say)
    return QuestionStatistics(
        question.id,
        question.type,
        len(read),
        relative,
        values,
        histogram(values),
        _chosen(question, read),
        _chosen(question, again) if again else (),
        _share(read),
        _share(again),
        tuple(said.most_common(MAX_MISTAKES)),
        all(_key(lab, question, seed) == _key(lab, question, CLASS_SEED) for _, seed, _ in read),
    )


def _chosen(
    question: Question, given: Sequence[tuple[Any, int, Marked]]
) -> tuple[tuple[str, int], ...]:
    """Return how many chose each option of a question, if it has any."""
    chosen = Counter(
        option
        for value, _, _ in given
        if question.type in ("choice", "multi")
        for option in ([value] if isinstance(value, str) else value)
    )
    return tuple((option.id, chosen[option.id]) for option in question.options)


def _key(lab: Lab, question: Question, seed: int) -> Any:
    return key_of(lab, question, seed) if question.type in ("choice", "multi") else None


def histogram(values: Sequence[float]) -> tuple[Bin, ...]:
    """Return bins over the 5th to 95th percentile, the tails in the first and the last."""
    if len(values) < FEWEST:
        return ()
    low, high = (float(one) for one in np.percentile(values, [LOW, HIGH]))
    if high <= low:
        return ((min(values), max(values), len(values)),)
    edges = np.linspace(low, high, BINS + 1)
    counts, _ = np.histogram(np.clip(values, low, high), edges)
    return tuple(
        (float(a), float(b), int(count))
        for a, b, count in zip(edges[:-1], edges[1:], counts, strict=True)
    )


def bin_words(bins: Sequence[Bin], place: int, language: str = "en") -> str:
    """Return the name of a bin; the first and the last say that they hold the tails."""
    words, (low, high, _) = texts_in(language), bins[place]
    if len(bins) > 1 and place == 0:
        return f"{short(high)} {words.say('stats.less')}"
    if len(bins) > 1 and place == len(bins) - 1:
        return f"{short(low)} {words.say('stats.more')}"
    return f"{short(low)}–{short(high)}"


def given_to(question: Question, every: Sequence[Answers]) -> tuple[Ballots, Ballots]:
    """Return the first and the second answers to a question: of a worked one only the first attempt counts."""
    locked = [(one.prediction(question.id), one.seed) for one in every]
    firsts = [(one.value, seed) for one, seed in locked if one is not None]
    tried = ((one.worked(question.id).attempts, one.seed) for one in every)
    firsts += [(attempts[0].value, seed) for attempts, seed in tried if attempts]
    seconds = [(one.second.value, seed) for one, seed in locked if one and one.second]
    return firsts, seconds


def _marked(lab: Lab, question: Question, given: Ballots) -> list[tuple[Any, int, Marked]]:
    """Return the answers that can be read, each with its seed and mark; the table of grades says of the others why not."""
    marked = []
    for value, seed in given:
        with suppress(InputError):
            read = read_answer(lab, question, value, seed)
            marked.append((read, seed, mark(lab, question, read, seed)))
    return marked


def _numbers(
    lab: Lab, question: Question, given: Sequence[tuple[Any, int]], relative: bool
) -> tuple[float, ...]:
    if question.type != "number":
        return ()
    truths = [key_of(lab, question, seed) if relative else 1 for _, seed in given]
    both = zip(given, truths, strict=True)
    return tuple(
        sorted(
            float(value) / true
            for (value, _), true in both
            if isinstance(true, int | float) and true
        )
    )


def _share(marked: Sequence[tuple[Any, int, Marked]]) -> float | None:
    return sum(one.right for *_, one in marked) / len(marked) if marked else None


COLUMNS = ("question", "answers", "right", "right_again", "mistake", "times")
_WIDEST = 320  # px, of the longest bar


def statistics_rows(
    lab: Lab, every: Sequence[QuestionStatistics]
) -> list[tuple[str, int, float | None, float | None, str, int | None]]:
    """Return a row per question, as :data:`COLUMNS`; shares from 0 to 1, the mistake in its sentence."""
    words = texts_in(lab.language)
    nobody = (("", None),)
    return [
        (one.question, one.count, one.right, one.right_again, words.resolved(say), times)
        for one in every
        for say, times in (one.mistakes or nobody)[:1]
    ]


def statistics_csv(lab: Lab, every: Sequence[QuestionStatistics]) -> bytes:
    """Return the statistics as a CSV file."""
    return table_bytes(COLUMNS, statistics_rows(lab, every))


def statistics_html(lab: Lab, every: Sequence[QuestionStatistics]) -> str:
    """Return the statistics as one HTML document for any printer."""
    words = texts_in(lab.language)
    sections = []
    for one in every:
        question = lab.question(one.question)
        screen = lab.screens[lab.screen_of(question.id)]
        text = filled(lab, screen, question.text, CLASS_SEED, words)
        sections.append((one, text, spread_of(lab, question, one, words)))
    return on_paper(
        "statistics.html",
        title=f"{words.resolved(lab.title)} · {words.say('stats.title')}",
        words=words,
        sections=sections,
        share_words=share_words,
        widest=_WIDEST,
    )


def spread_of(
    lab: Lab, question: Question, one: QuestionStatistics, words: Texts
) -> list[tuple[str, int]]:
    """Return what was answered and how often: options, intervals, or the numbers themselves where they are few."""
    if one.options:
        texts = option_texts(lab, question, CLASS_SEED, words)
        return [(texts[name], count) for name, count in one.options]
    if one.bins:
        return [
            (bin_words(one.bins, at, words.language), count)
            for at, (_, _, count) in enumerate(one.bins)
        ]
    return [(short(value), 1) for value in one.values]


# -- on the projector -----------------------------------------------------------------------------

MAX_VOTES = 500
_ONE = re.compile(r"([^\s;x×*]+)(?:\s*[x×*]\s*([0-9]{1,4}))?(?:[;\s]+|,(?:\s+|$)|$)")
# Types whose answers can be counted in the room.
COUNTED = ("choice", "number")

# How many gave each answer.
Votes = Mapping[Any, int]


def read_called_out(lab: Lab, question: Question, text: str) -> dict[Any, int]:
    """Read numbers called out, such as ``9, 10 x5, 12 x3``: each with how many said it.

    Raises
    ------
    InputError
        If something is no number, or there are more than ``MAX_VOTES``.
    """
    found = list(_ONE.finditer(text.strip()))
    refuse_if(
        (
            sum(len(one[0]) for one in found) < len(text.strip()),
            f"must be numbers such as 9, 10 x5, 12 x3 (got {shown(text)})",
        ),
        item=f"question {question.id}",
        field="votes",
    )
    votes: Counter[Any] = Counter()
    for one in found:
        votes[read_answer(lab, question, one[1].rstrip(","), CLASS_SEED)] += int(one[2] or 1)
    counted = sum(votes.values())
    refuse_if(
        (counted > MAX_VOTES, f"must be 0 to {MAX_VOTES} votes in all (got {counted:,})"),
        item=f"question {question.id}",
        field="votes",
    )
    return votes


def each_vote(votes: Votes) -> Ballots:
    """Return every vote on its own."""
    return [(value, CLASS_SEED) for value in Counter(votes).elements()]


Show = Literal["ask", "tally", "reveal"]
START = "start"


@dataclass(frozen=True)
class Slide:
    """One slide.

    Attributes
    ----------
    place
        ``start``, the id of a question, or of a screen that asks nothing.
    show
        What of it: a question is asked, then counted, then revealed.
    screen
        Which screen of the lab; None for the first slide.
    until
        The minute at which the plan leaves it: the end of the row that names its question, else that of the
        slide before; None where the plan says nothing.
    """

    place: str
    show: Show = "ask"
    screen: int | None = None
    until: float | None = None


def slides(lab: Lab) -> tuple[Slide, ...]:
    """Return all slides in the order in which *Next* shows them; every question has its reveal."""
    every, ends, until = [Slide(START)], _planned_ends(lab), None
    for at, screen in enumerate(lab.screens):
        if not screen.questions:
            every.append(Slide(screen.id, "ask", at, until))
        for question in screen.questions:
            shows: tuple[Show, ...] = ("ask", "tally", "reveal")
            if question.stage == "explain":
                shows = ("ask", "reveal")
            until = ends.get(question.id, until)
            every += [Slide(question.id, show, at, until) for show in shows]
    return tuple(every)


def slide_of(every: Sequence[Slide], place: str, show: str = "ask") -> int:
    """Return the number of a slide: of a place that is not shown so its first, of no place the first of all."""
    numbers = [at for at, one in enumerate(every) if one.place == place] or [0]
    return next((at for at in numbers if every[at].show == show), numbers[0])


def _planned_ends(lab: Lab) -> dict[str, float]:
    """Return for each question that the plan names the end of the first row that does."""
    words = texts_in(lab.language)
    return {
        name: row.end
        for row in reversed(lab.plan)
        for name in re.findall(r"\b[PWE][0-9]{1,2}\b", words.resolved(row.do))
    }
