"""The eight labs and the tour: sound files, keys that no clock moves, texts that say no answer and what the core computes."""

import json
import re
from collections import Counter
from dataclasses import replace

import jsonschema
import pytest

from tests.conftest import some
from tests.labs_answered import changed
from tests.refusal import refusal
from topox_core.file_schemas import json_schema
from topox_core.labs import calls, keys
from topox_core.labs.generators import fixed_circuits
from topox_core.labs.generators.catalogue import generator
from topox_core.labs.generators.turns import SERVERS
from topox_core.labs.keys import filled, key_of, mistakes_of, validate
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
from topox_core.labs.tour import (
    CLASS_SEED,
    IN_TURNS,
    SCREENS,
    circuits_run,
    live_line,
    notice,
    partner,
    rail_picture,
    round_of,
    screen,
    slots_run,
    times_at,
)
from topox_core.text.glossary import occurrences

SCHEMA = json_schema("lab")
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
    monkeypatch.setattr("topox_core.labs.keys.SLOW_S", 1e9)
    monkeypatch.setattr("topox_core.labs.keys.TOO_SLOW_S", 1e9)
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
        fixed_circuits.Mix.times_ms.cache_clear()
        return {
            f"{lab.id}.{question.id}": key_of(lab, question, 2)
            for lab in LABS
            for question in lab.questions
            if question.key is not None
        }

    before = every()
    monkeypatch.setattr(calls, "EXACT_LIMIT_S", 0.0)
    at_once = replace(calls.LESSON_SETTINGS, time_limit_s=0.0)
    for module in (calls, fixed_circuits):
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
        for one in lab.screens:
            for text in (text for *_, text in texts_of(one) if text):
                assert re.fullmatch(r"[^{}@]+~", filled(lab, one, text, 3, words))


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
    line = refusal(load_lab, changed(BYTES, path, value), "x.lab.json")
    assert line.startswith("x.lab.json") and said in line and len(line) < 400


def test_a_lab_of_a_megabyte_or_of_brackets_is_refused() -> None:
    for data, said in (
        (b" " * (1 << 20), "more than"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"format": ' + b"[" * 200_000, "x.lab.json"),
        (b"", "empty"),
    ):
        assert said in refusal(load_lab, data, "x.lab.json")


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
    assert "only a proved one counts" in refusal(key_of, lab, lab.question("W2"), 0)


def test_a_lecturer_s_folder_has_labs_with_files_of_their_own(tmp_path) -> None:
    mine = tmp_path / f"mine{ENDING}"
    mine.write_bytes(changed(BYTES, "instances.mine.files", {"graph": "g.taskgraph.json"}))
    assert [*labs_in(tmp_path)] == [*ORDER, "second-port"]
    lab = lab_of(str(mine))
    assert lab.folder == tmp_path
    assert "g.taskgraph.json: cannot be read" in refusal(keys.files_of, lab, lab.instances["mine"])
    assert "unknown lab" in refusal(lab_of, "six-task")


AT_MIN = "the iteration takes 11 ms. What binds: critical path, 3 tasks: f → w3 → c3"


def plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html).replace("\u00a0", " ")


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_four_short_sentences(name: str) -> None:
    one = screen(name)
    assert len(one.sentences) <= 4
    for part in re.split(r"(?<=[.:;?]) ", plain(" ".join((*one.sentences, notice(name))))):
        assert len(part.split()) <= 20, part
    assert one.start in one.values and occurrences(" ".join(one.sentences))


@pytest.mark.parametrize("name", SCREENS)
def test_every_position_of_the_slider_has_its_line(name: str) -> None:
    for value in screen(name).values:
        assert re.fullmatch(r"[^{]+\.", plain(live_line(name, value)))


def test_at_every_moment_one_server_sends_or_all_compute() -> None:
    execution = circuits_run().execution
    one = generator("turns").make(CLASS_SEED)
    assert execution.makespan_ms == one.free_ms == max(screen("circuits").values)
    for at_ms in screen("circuits").values:
        partners = [partner(execution, server, at_ms) for server in range(SERVERS)]
        assert max(Counter(to for to in partners if to is not None).values(), default=0) <= 1
        expected = f"sends to server {partners[0]}" if partners[0] is not None else "nobody sends"
        assert at_ms == one.free_ms or expected in plain(live_line("circuits", at_ms))


@pytest.mark.parametrize(("slot_ms", "iteration_ms"), [(0.5, 10), (1, 10), (2, 12), (4, 16)])
def test_longer_slots_make_the_blackboard_longer(slot_ms: float, iteration_ms: float) -> None:
    assert slots_run(slot_ms).makespan_ms == iteration_ms
    assert f"takes {iteration_ms} ms" in plain(live_line("slots", slot_ms))


@pytest.mark.parametrize(
    ("delay_ms", "reactive_ms", "provisioned_ms"),
    [(0, 51, 51), (2, 57, 51), (5, 66, 55), (10, 81, 65), (20, 111, 93)],
)
def test_the_delay_decides_who_wins(delay_ms, reactive_ms, provisioned_ms) -> None:
    times = {"static": 65, "reactive": reactive_ms, "provisioned": provisioned_ms}
    assert times_at(float(delay_ms)) == pytest.approx(times)
    assert all(said in plain(notice("delay")) for said in ("Below 4.7 ms", "win up to 10 ms"))


@pytest.mark.parametrize(
    ("ports", "line"),
    [
        (1, "With 1 port the iteration takes 15 ms. What binds: out-ports of server 0"),
        (2, f"With 2 ports {AT_MIN}"),
        (3, f"With 3 ports {AT_MIN}"),
    ],
)
def test_the_third_port_buys_nothing(ports: int, line: str) -> None:
    assert plain(live_line("ports", float(ports))).startswith(line)


@pytest.mark.parametrize(
    ("delay_ms", "ahead_ms", "on_demand_ms"),
    [(1, 10_202, 10_206), (25, 10_296.6, 10_350), (100, 10_600.4, 10_800)],
)
def test_a_slow_switch_hardly_slows_the_rail(delay_ms, ahead_ms, on_demand_ms) -> None:
    delays = rail_picture().delays
    assert delays.base_ms == pytest.approx(10_200, abs=0.1)
    times = {row.delay_ms: (row.provisioned_ms, row.on_demand_ms) for row in delays.rows}
    assert times[delay_ms] == pytest.approx((ahead_ms, on_demand_ms), abs=0.1)
    assert f"takes {ahead_ms - 10_200:.3g} ms more" in plain(live_line("windows", float(delay_ms)))


def test_two_jobs_in_turns_reach_the_bound() -> None:
    assert "takes 40 s in place of 60 s" in plain(live_line("sharing", IN_TURNS))
    assert round_of(IN_TURNS).round_s == round_of(IN_TURNS).bound_s == 40
