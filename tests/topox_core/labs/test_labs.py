"""The eight labs: ordinary files that a validation accepts, keys that no clock moves, texts that say no answer."""

import json
import re
from dataclasses import replace

import jsonschema
import pytest

from tests.conftest import some
from tests.labs_answered import changed
from topox_core.errors import InputError
from topox_core.labs import calls, keys
from topox_core.labs.generators import mix
from topox_core.labs.generators.catalogue import GENERATORS
from topox_core.labs.keys import filled, key_of, mistakes_of
from topox_core.labs.lab import BASE, TEXTS, languages, texts_in
from topox_core.labs.lab_file import (
    ENDING,
    ORDER,
    READY,
    lab_of,
    labs_in,
    load_lab,
    ready_labs,
    texts_of,
)
from topox_core.labs.validation import validate

SCHEMA = json.loads((READY.parent / "lab.schema.json").read_text(encoding="utf-8"))
LABS = tuple(ready_labs().values())


def test_there_are_eight_labs_of_20_points_and_50_minutes_that_keep_to_the_schema() -> None:
    assert [lab.id for lab in LABS] == list(ORDER)
    for lab in LABS:
        jsonschema.validate(lab.record, SCHEMA)
        assert (lab.points, lab.minutes, lab.plan[-1].end) == (20, 50, 50)
        assert [row.start for row in lab.plan[1:]] == [row.end for row in lab.plan[:-1]]


EACH = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.id)


@EACH
def test_a_validation_finds_nothing_in_a_lab_that_ships(lab, monkeypatch) -> None:
    # How long a key takes is a matter of the machine, and of what else it does.
    monkeypatch.setattr("topox_core.labs.validation.SLOW_S", 1e9)
    monkeypatch.setattr("topox_core.labs.validation.TOO_SLOW_S", 1e9)
    report = validate(lab, some(range(51), quick=9))
    assert [line for line in report.warnings if "every seed" not in line] == [*report.errors] == []


@EACH
def test_every_misconception_of_a_lab_is_told_to_somebody(lab) -> None:
    for question in lab.questions:
        untold, seeds = {one.value for one in question.feedback if one.value}, iter(range(40))
        while untold:
            untold -= {one.value for one, _ in mistakes_of(lab, question, next(seeds))}


def test_keys_need_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def every() -> dict[str, object]:
        keys._drawn.cache_clear()
        keys._kept_value.cache_clear()
        mix.Mix.times_ms.cache_clear()
        return {
            f"{lab.id}.{question.id}": key_of(lab, question, 2)
            for lab in LABS
            for question in lab.questions
            if question.key is not None
        }

    before = every()
    monkeypatch.setattr(calls, "EXACT_LIMIT_S", 0.0)
    at_once = replace(calls.LESSON_SETTINGS, time_limit_s=0.0)
    for module in (calls, mix):
        monkeypatch.setattr(module, "LESSON_SETTINGS", at_once)
    assert every() == before


# Numbers that a text needs, the same for every seed, and that happen to be a key of one.
CONSTANTS = {
    "what-binds": {"16"},  # Gbit/s of a port of double speed
    "bandwidth-tax": {"2"},  # ports instead of 3; a stride
    "all-to-all": {"12"},  # servers that the generator avoids; a published figure
    "crossover": {"10"},  # ms of the delay that W4 gives
    "price-tag": {"4"},  # transceivers a GPU; points
}
NUMBER = re.compile(r"(?<![\w.{-])\d[\d,]*(?:\.\d+)?(?![\w}])")


@EACH
def test_no_text_of_a_lab_says_a_number_that_is_a_key(lab) -> None:
    """Any number of the check tables, seeds 0 to 3, however short; in the file of the lab, long ones."""
    keys_of = {
        round(float(key_of(lab, question, seed)), question.digits)
        for question in lab.questions
        if question.type == "number"
        for seed in range(4)
    }
    said = {
        number.rstrip(",")
        for key, text in texts_in(BASE).flat.items()
        if key.startswith(f"lab.{lab.id}.")
        for number in NUMBER.findall(text)
    }
    said |= {one for one in NUMBER.findall(json.dumps(lab.record)) if len(one) >= 4}
    found = {one for one in said if float(one.replace(",", "")) in keys_of}
    assert found == CONSTANTS.get(lab.id, set())


# -- one text file a language -----------------------------------------------------------------------


def stretched(sections: object) -> object:
    """Return the texts in a language that is 40 % longer, with every place kept."""
    if isinstance(sections, dict):
        return {key: stretched(value) for key, value in sections.items()}
    if isinstance(sections, list):
        return [stretched(value) for value in sections]
    return f"{sections}{'~' * -(-len(str(sections)) * 2 // 5)}"


def test_a_second_language_is_one_file(tmp_path) -> None:
    english = json.loads((TEXTS / "en.json").read_text(encoding="utf-8"))
    (tmp_path / "xx.json").write_text(json.dumps(stretched(english)), encoding="utf-8")
    assert languages(tmp_path) == ("en", "xx")
    words = texts_in("xx", tmp_path)
    for lab in LABS:
        for screen in lab.screens:
            for text in (text for *_, text in texts_of(screen) if text):
                assert re.fullmatch(r"[^{}@]+~", filled(lab, screen, text, 3, words))


def test_what_a_language_lacks_is_said_in_english(tmp_path) -> None:
    english = json.loads((TEXTS / "en.json").read_text(encoding="utf-8"))
    del english["lab"]["crossover"]["title"]
    (tmp_path / "de.json").write_text(json.dumps(english), encoding="utf-8")
    assert texts_in("de", tmp_path).say("lab.crossover.title") == "The reconfiguration delay"


def test_every_text_of_labs_is_used_and_every_one_used_is_there() -> None:
    used = set(re.findall(r'"@([^"]+)"', "".join(p.read_text() for p in READY.glob("*.json"))))
    assert used == {key for key in texts_in(BASE).flat if key.startswith("lab.")}


# -- lab files of others ----------------------------------------------------------------------------

EXAMPLE = {
    "format": "topox-lab",
    "version": 1,
    "id": "second-port",
    "title": "Is a second port worth it?",
    "minutes": 15,
    "goals": ["Predict what a second port does."],
    "instances": {
        "star": {"generator": "fan_out", "generator_version": 1, "seed": "student"},
        "mine": {"files": {"graph": "sample:blackboard", "cluster": "sample:blackboard"}},
    },
    "screens": [
        {
            "id": "load",
            "stage": "work",
            "instance": "star",
            "text": "Server {f_server} computes {f} ms, then sends {w} MB.",
            "questions": [
                {
                    "id": "W1",
                    "type": "number",
                    "points": 3,
                    "text": "How long?",
                    "key": {"value": "load"},
                    "feedback": [{"value": "no_tail", "say": "The last receiver computes."}],
                }
            ],
        },
        {
            "id": "own",
            "stage": "work",
            "instance": "mine",
            "questions": [
                {
                    "id": "W2",
                    "type": "choice",
                    "points": 2,
                    "text": "How much shorter with twice the speed?",
                    "options": [{"id": "some", "text": "some"}, {"id": "much", "text": "much"}],
                    "key": {
                        "call": "schedule",
                        "with": {"engine": "list", "port_gbps": {"times": 2}},
                        "against": {"engine": "list"},
                        "field": "makespan_ms",
                        "as": "saving",
                        "bands": [{"below": 0.3, "is": "some"}, {"is": "much"}],
                    },
                }
            ],
        },
        {
            "id": "why",
            "stage": "explain",
            "questions": [{"id": "E1", "type": "text", "points": 4, "text": "Why?"}],
        },
    ],
}


BYTES = json.dumps(EXAMPLE).encode()
Q1, Q2 = "screens.0.questions.0", "screens.1.questions.0"
BROKEN = [
    ("format", "topox-jobs", "format: must be 'topox-lab'"),
    ("version", 2, "is newer than this program"),
    ("surprise", 1, "unknown key"),
    ("id", "Second Port", "field id"),
    ("title", "", "field title"),
    ("title", "<b>bold</b>", "plain text without tags"),
    ("notes", "see www.example.org", "without tags and addresses"),
    ("minutes", 2.5, "field minutes"),
    ("goals", [], "field goals"),
    ("instances", {}, "must name 1 to 8 instances"),
    ("instances.star.generator", "fanout", "did you mean 'fan_out'"),
    ("instances.star.generator_version", 2, "must be 1, the version here"),
    ("instances.star.seed", -1, "instance star, field seed"),
    ("instances.mine.files", {"graph": "../secret"}, "instance mine"),
    ("instances.mine.files", {}, "must name at least one file"),
    ("screens.0.stage", "exam", "screen load, field stage"),
    ("screens.0.instance", "sta", "did you mean 'star'"),
    ("screens.0.text", "The answer is {load}.", "would say the answer of question W1"),
    ("screens.0.text", "{f.__class__}", "nothing in a text is computed"),
    ("screens.0.text", "{1 + 1}", "nothing in a text is computed"),
    ("screens.0.text", "{first}", "unknown value"),
    ("screens.0.text", "{f", "brace without its partner"),
    ("screens.0.text", "@lab.none", "there is no text"),
    ("screens.1.id", "load", "screen load, field id: is there twice"),
    (f"{Q2}.id", "W1", "question W1, field id: is there twice"),
    (f"{Q1}.id", "P1", "must begin with W on a work screen"),
    (f"{Q1}.type", "riddle", "screen load, question W1, field type"),
    (f"{Q1}.type", "grouping", "needs an instance of four_jobs"),
    (f"{Q1}.type", "matrix", "must be a value that is a matrix"),
    (f"{Q1}.points", 1e308, "field points"),
    (f"{Q1}.points", -1, "field points"),
    (f"{Q1}.key", ..., "field key: is missing"),
    (f"{Q1}.key", {"value": "lode"}, "did you mean 'load'"),
    (f"{Q1}.key", {"code": "1+1"}, "unknown key"),
    (f"{Q1}.feedback.0.value", "no_tale", "did you mean 'no_tail'"),
    (f"{Q1}.feedback.0.option", "x", "exactly one of value, option and equation"),
    (f"{Q1}.tolerance", {"absolute": -1}, "field tolerance.absolute"),
    (f"{Q2}.options", ..., "field options: is missing"),
    (f"{Q2}.options.1.id", "some", "has 'some' twice"),
    (f"{Q2}.key.call", "shell", "field call"),
    (f"{Q2}.key.with.engine", "rm -rf", "with.engine: must be one of list"),
    (f"{Q2}.key.with.port_gbps", {"times": -2}, "with.port_gbps.times"),
    (f"{Q2}.key.with.time_limit_s", 1, "with.time_limit_s: unknown option"),
    (f"{Q2}.key.as", "value", "must be given together with against"),
    (f"{Q2}.key.bands.1.is", "lots", "key.bands"),
    (f"{Q2}.key.bands.1.below", 0.1, "the last band"),
    (f"{Q2}.key.bands", ..., "must be given for a choice"),
    (f"{Q2}.key.value", "load", "unknown key"),
    ("screens.2.questions.0.key", {"value": "load"}, "nobody computes the truth of a text"),
    ("screens.2.questions.0.type", "number", "explanations are text"),
    ("screens.0.slider", {"key": "ports", "from": 1}, "must have values, or from, to and step"),
    ("screens.0.slider", {"key": "ports", "from": 0, "to": 1e9, "step": 0.1}, "steps"),
]


@pytest.mark.parametrize(("path", "value", "said"), BROKEN, ids=lambda one: str(one)[:30])
def test_a_broken_lab_file_gets_one_line(path: str, value: object, said: str) -> None:
    with pytest.raises(InputError) as error:
        load_lab(changed(BYTES, path, value), "x.lab.json")
    line = str(error.value)
    assert line.startswith("x.lab.json") and "\n" not in line and len(line) < 400
    assert said in line


def test_a_lab_of_a_megabyte_or_of_brackets_is_refused() -> None:
    for data, said in (
        (b" " * (1 << 20), "more than"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"format": ' + b"[" * 200_000, "x.lab.json"),
        (b"", "empty"),
    ):
        with pytest.raises(InputError, match=said):
            load_lab(data, "x.lab.json")


def test_the_example_of_the_documents_has_its_digest_and_its_keys() -> None:
    lab = load_lab(BYTES, "x.lab.json")
    assert [key_of(lab, lab.question("W1"), seed) for seed in (1, 58157343)] == [19, 15]
    assert key_of(lab, lab.question("W2"), 0) == "some"
    assert validate(lab, range(3)).ok
    assert lab.digest == load_lab(json.dumps(EXAMPLE, indent=3).encode(), "y").digest


def test_a_call_on_an_exact_engine_needs_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "EXACT_LIMIT_S", 0.0)
    data = changed(BYTES, f"{Q2}.key.with", {"engine": "highs"})
    lab = load_lab(data.replace(b"sample:blackboard", b"sample:moe"), "x.lab.json")
    with pytest.raises(InputError, match="only a proved one counts"):
        key_of(lab, lab.question("W2"), 0)


def test_a_lecturer_s_folder_has_labs_with_files_of_their_own(tmp_path) -> None:
    mine = tmp_path / f"mine{ENDING}"
    mine.write_bytes(changed(BYTES, "instances.mine.files", {"graph": "g.taskgraph.json"}))
    assert [*labs_in(tmp_path)] == [*ORDER, "second-port"]
    lab = lab_of(str(mine))
    assert lab.folder == tmp_path
    with pytest.raises(InputError, match=r"g\.taskgraph\.json: cannot be read"):
        keys.files_of(lab, lab.instances["mine"])
    with pytest.raises(InputError, match="unknown lab"):
        lab_of("six-task")


def test_names_of_the_generators_are_those_of_the_schema() -> None:
    entry = SCHEMA["properties"]["instances"]["additionalProperties"]["oneOf"][0]
    assert set(entry["properties"]["generator"]["enum"]) == set(GENERATORS)
