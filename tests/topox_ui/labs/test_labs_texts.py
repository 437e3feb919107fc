"""Every word of the page Labs is in the texts, every text of it is used, and a second language needs no code."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.topox_ui.conftest import words
from topox_core.labs import texts_in as texts_module
from topox_core.labs.texts_in import BASE, TEXTS, texts_in
from topox_ui.labs import words as page_words

PAGE = sorted((ROOT / "topox_ui/labs").glob("*.py"))
FIGURES = [
    ROOT / f"topox_core/figures/{name}.py"
    for name in (
        *("picture", "instance_pictures", "instance_schedules", "instance_traffic"),
        *("instance_rails", "instance_jobs"),
    )
]
SENTENCE = re.compile(r"[A-Za-z]{3,} [A-Za-z]{2,}")


def constants(path: Path) -> list[ast.expr]:
    """Return the strings of a file, f-strings whole, without docstrings and style sheets."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    silent |= {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_CSS"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            silent |= {id(part) for part in node.values}
    return [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.JoinedStr))
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if id(node) not in silent
    ]


def literal(node: ast.expr) -> str:
    """Return a string with {} for what an f-string fills in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    return str(node.value) if isinstance(node, ast.Constant) else ""


def test_no_sentence_of_the_interface_stands_in_the_page_s_code() -> None:
    wrong = [
        (path.name, text)
        for path in PAGE
        for text in map(literal, constants(path))
        if SENTENCE.search(re.sub(r"<[^>]*>|@[^@]*", "", text))
    ]
    assert wrong == []


def test_every_text_of_the_page_is_used_and_every_one_used_is_there() -> None:
    used: set[str] = set()
    for path in (*PAGE, *FIGURES):
        prefix = "figure." if path in FIGURES else ""
        for text in map(literal, constants(path)):
            used.add(prefix + text)
    patterns = [
        re.compile(re.escape(text).replace(r"\{\}", "[^.]+"))
        for text in used
        if "." in text and not text.startswith("{}")
    ] + [re.compile(re.escape(text)) for text in used if "." not in text and "{}" not in text]
    keys = [key.removeprefix("page.") for key in texts_in(BASE).flat if key.startswith("page.")]

    def is_used(key: str) -> bool:
        plural = re.sub(r"\.(one|many)$", "", key)
        return any(one.fullmatch(key) or one.fullmatch(plural) for one in patterns)

    assert [key for key in keys if not is_used(key)] == []


OTHERS = [
    path
    for folder in ("topox_ui/present", "topox_ui/classroom", "topox_core/labs")
    for path in sorted((ROOT / folder).rglob("*.py"))
] + [
    ROOT / "topox_ui/shell/class_door.py",
    ROOT / "topox_core/cli/lab.py",
    *sorted((ROOT / "topox_core/figures").glob("*.py")),
]


def test_every_text_beside_the_page_s_is_used() -> None:
    """Projector, statistics, leaderboards, the door of a class, sheets, answers and commands."""
    used = {text for path in OTHERS for text in map(literal, constants(path)) if text}
    patterns = [
        re.compile(re.escape(text).replace(r"\{\}", "[^.]*") + r"(\.(one|many))?")
        for text in used
        if "." in text and not text.startswith("{}.{}")
    ]
    unused = []
    for key in texts_in(BASE).flat:
        section, _, rest = key.partition(".")
        if section in ("page", "lab", "tour"):
            continue
        if not any(one.fullmatch(name) for one in patterns for name in (key, rest)):
            unused.append(key)
    assert unused == []


def test_sentences_of_the_page_are_short() -> None:
    for key, text in texts_in(BASE).flat.items():
        if key.startswith("page."):
            for sentence in re.split(r"(?<=[.:;?!]) ", re.sub(r"<[^>]*>", "", text)):
                assert len(sentence.split()) <= 25, key


def stretched(value):
    """Return texts of a made-up language: 40 % longer, every place kept."""
    if isinstance(value, str):
        return f"{value}{'~' * max(1, round(0.4 * len(value)))}"
    if isinstance(value, list):
        return [stretched(one) for one in value]
    return {key: stretched(one) for key, one in value.items()}


@pytest.fixture
def second_language(monkeypatch, tmp_path):
    english = json.loads((TEXTS / f"{BASE}.json").read_text(encoding="utf-8"))
    (tmp_path / "en.json").write_text(json.dumps(english), encoding="utf-8")
    (tmp_path / "xx.json").write_text(json.dumps(stretched(english)), encoding="utf-8")

    def made_up(language: str):
        return texts_module.Texts(
            language,
            json.loads((tmp_path / f"{language}.json").read_text(encoding="utf-8")),
            texts_module._flat(
                json.loads((tmp_path / f"{language}.json").read_text(encoding="utf-8"))
            ),
        )

    monkeypatch.setattr(page_words, "languages", lambda: ("en", "xx"))
    monkeypatch.setattr("topox_ui.labs.first_screen.languages", lambda: ("en", "xx"))
    monkeypatch.setattr(page_words, "texts_in", made_up)
    monkeypatch.setattr("topox_core.labs.student.texts_in", made_up)


@pytest.mark.parametrize("query", [{}, {"lab.id": "six-tasks", "lab.seed": "41"}])
def test_a_second_language_reaches_every_word_of_the_page(visit, second_language, query) -> None:
    at = visit("pages/16_Labs.py", **{"lab.lang": "xx", **query})
    assert not at.exception
    labels = [one.label for kind in ("button", "text_input") for one in at.main.get(kind)]
    assert labels and all(label.endswith("~") for label in labels)
    assert "~" in words(at)
