"""``study buy`` as a script calls it: the numbers of the page, files in and out, every mistake in one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from topox_core.cli.main import main
from topox_core.library.run_library import RunLibrary
from topox_core.runs.run import finish
from topox_core.studies.buying import Assumptions, Question, moved
from topox_core.studies.buying_run import BuyingRun
from topox_core.studies.buying_words import as_record
from topox_core.studies.offers import OFFERS, offer_of
from topox_core.studies.offers_file import load_offers
from topox_core.studies.study_file import load_study
from topox_core.studies.subject import Subject, resolve

SMALL = ["study", "buy", "--sample", "blackboard", "--only", "rotornet,piezo", "--workers", "1"]


@pytest.mark.long
def test_the_command_gives_what_the_core_gives_whoever_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = tmp_path / "runs.sqlite"
    written = [str(tmp_path / name) for name in ("a.csv", "a.study.json", "a.offers.json")]
    given = [*SMALL, "--usd-per-gpu-hour", "8", "--library", str(library), "--json"]
    given += ["--csv", written[0], "--save-study", written[1], "--save-offers", written[2]]
    status = main(given)
    assert status == 0
    printed = json.loads(capsys.readouterr().out)
    offers = tuple(offer_of(OFFERS, key) for key in ("rotornet", "piezo"))
    usual = Assumptions()
    question = Question(
        resolve(Subject("sample", {"name": "blackboard"})),
        offers,
        assumed=Assumptions(moved(usual.usd_per_gpu_hour, 8.0)),
    )
    answer = finish(BuyingRun(question, executor=1))
    assert answer is not None
    assert printed == json.loads(json.dumps(as_record(answer)))
    with Path(written[0]).open() as file:
        assert [row["network"] for row in csv.DictReader(file)] == [
            row["network"] for row in printed["networks"]
        ]
    study = load_study(Path(written[1]).read_bytes(), "a.study.json")
    assert len(study.points) == 3 + 3 * len(offers)
    assert load_offers(Path(written[2]).read_bytes(), "a.offers.json") == offers
    # Every point is kept, and asked again nothing is computed.
    kept = RunLibrary.open(library)
    runs = kept.count()
    assert runs >= len(study.points)
    assert main([*SMALL, "--usd-per-gpu-hour", "8", "--library", str(library)]) == 0
    assert kept.count() == runs
    assert "How slow may a switch be" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--sample", "race", "--only", "pizo"], "did you mean 'piezo'?"),
        (["--sample", "race", "--by", "speed"], "field --by: must be one of dollars, time, price"),
        (["--sample", "race", "--years", "0"], "field --years: must be from 0.1 to 100 (got 0)"),
        (["--sample", "race", "--rivals", "none"], "field --rivals: must be one of fixed"),
        (["--sample", "race", "--fixed", "cluster.speed=1"], "field --fixed: unknown key"),
        (["--sample", "race", "--fixed", "cluster.port_gbps=-1"], "cluster.port_gbps must be a"),
        ([], "field --sample: or --graph with --cluster must name the job"),
        (["--graph", "a.json"], "field --cluster: is missing"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["study", "buy", "--no-library", *arguments]) == 2
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1
