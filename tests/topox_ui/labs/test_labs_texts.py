"""Every word of the page Labs is in the texts, and every text of it is used: a second language needs no code."""

import ast
import re
from pathlib import Path

from tests.real_inputs import ROOT
from topox_core.labs.lab import BASE, texts_in

PAGE = sorted((ROOT / "topox_ui/labs").glob("*.py"))
TEMPLATES = sorted((ROOT / "topox_ui/labs").glob("*.html"))
FIGURES = sorted((ROOT / "topox_core/figures/labs").glob("*.py"))
SENTENCE = re.compile(r"[A-Za-z]{3,} [A-Za-z]{2,}")


def constants(path: Path) -> list[ast.expr]:
    """Return the strings of a file, f-strings whole, without docstrings and style sheets."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_CSS")
    }
    f_strings = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    silent |= {id(part) for one in f_strings for part in one.values}
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
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
    templates = (re.sub(r"{[{%#].*?[}%#]}|<.*?>", "", one.read_text()) for one in TEMPLATES)
    assert wrong + [text for text in templates if SENTENCE.search(text)] == []


OTHERS = [
    path
    for folder in ("topox_ui/present", "topox_ui/classroom", "topox_core/labs")
    for path in sorted((ROOT / folder).rglob("*.py"))
] + [
    ROOT / "topox_ui/shell/page.py",
    ROOT / "topox_core/cli/lab.py",
    *sorted((ROOT / "topox_core/figures").rglob("*.py")),
]

PAPER = [
    *sorted((ROOT / "topox_core/labs/paper").glob("*.html")),
    *sorted((ROOT / "topox_ui/present").glob("*.html")),
]


def unused(keys: dict[str, str], code: set[str]) -> list[str]:
    """Return the keys of texts that no string of the code names, whole or with a part filled in."""
    patterns = [
        re.compile(re.escape(text).replace(r"\{\}", "[^.]*"))
        for text in code
        if "{}" in text and "." in text and not text.startswith("{}.{}")
    ]
    return [
        key
        for key, name in keys.items()
        if not {key, name} & code and not any(one.fullmatch(name) for one in patterns)
    ]


def test_every_text_is_used_by_the_page_or_by_what_stands_beside_it() -> None:
    """Beside it: projector, statistics, leaderboards, the door of a class, sheets, answers and commands."""
    page = {text for path in PAGE for text in map(literal, constants(path))}
    named = (text for path in TEMPLATES for text in re.findall(r'"([\w.]+)"', path.read_text()))
    page |= {f"{text}{{}}" if text.endswith(".") else text for text in named}
    page |= {f"figure.{text}" for path in FIGURES for text in map(literal, constants(path))}
    others = {text for path in OTHERS for text in map(literal, constants(path)) if text}
    others |= {text for path in PAPER for text in re.findall(r'"([\w.]+)"', path.read_text())}
    keys = {key: re.sub(r"\.(one|many)$", "", key) for key in texts_in(BASE).flat}
    of_page = {key[5:]: name[5:] for key, name in keys.items() if key.startswith("page.")}
    assert unused(of_page, page) == []
    told = ("page", "lab", "tour")
    beside = {key: name for key, name in keys.items() if key.partition(".")[0] not in told}
    without_section = {name.partition(".")[2] for name in unused(beside, others)}
    assert unused({name: name for name in without_section}, others) == []
