"""A mistake gets one clear line that names it, exit status 2, and nothing is left behind."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.topox_core.cli.conftest import GRAPH
from topox_core.io.sample_folder import SAMPLE_FOLDER

OVERLAP = SAMPLE_FOLDER / "overlap.jobs.json"
STUDY = {
    "format": "topox-study",
    "version": 1,
    "name": "Small",
    "subject": {"kind": "sample", "name": "blackboard"},
    "axes": [{"key": "fabric", "values": ["static", "scheduled"]}],
}
JOB = "schedule g.json c.json"
BUY = "study buy --no-library --sample race"
TINY = "strategy dlrm-16 --servers 2 --ports-per-server 1 --port-gbps 1"

# Commands, and words of the line: several of them are separated by "|".
MISTAKES = [
    ("", "COMMAND"),
    ("sched g.json c.json", "sched"),
    ("schedule g.json", "CLUSTER"),
    ("dashboard --port 70000", "--port|at most 65535"),
    ("dashboard --port 0", "--port|at least 1|0"),
    ("schedule none.json c.json", "none.json: |no such file"),
    ("schedule g.json none.json", "none.json: |no such file"),
    ("schedule . c.json", ".: |directory"),
    (f"{JOB} --engine cplex", "engine|auto, list, highs, cpsat, printed|cplex"),
    (f"{JOB} --model real", "--model|physical|real"),
    (f"{JOB} --port-gbps fast", "--port-gbps|must be a number|fast"),
    (f"{JOB} --port-gbps nan", "command line|--port-gbps|finite"),
    (f"{JOB} --port-gbps -1", "command line|--port-gbps|from 1e-06"),
    (f"{JOB} --servers 1.5", "--servers|whole number"),
    (f"{JOB} --servers 1", "g.json|task act|server 1"),
    (f"{JOB} --duplex both", "duplex|full|half"),
    (f"{JOB} --tick-ms soon", "--tick-ms|auto, slot or a length in ms"),
    (f"{JOB} --tick-ms -1", "tick|above 0"),
    (f"{JOB} --rings 0", "--rings|at least 1"),
    (f"{JOB} --strides 1,1", "--strides|different"),
    (f"{JOB} --all-reduce-on-network maybe", "--all-reduce-on-network|yes or no"),
    (f"{JOB} --algorithm all_reduce=", "must be auto, default, or KIND=NAME"),
    (f"{JOB} --algorithm auto,default", "must be auto, default, or KIND=NAME"),
    (f"{JOB} --time-limit -3", "--time-limit|at least 0"),
    (f"{JOB} --circuits per-slot --reconfiguration-ms 2", "reconfiguration_ms"),
    (f"{JOB} --output nowhere/r.json", "nowhere/r.json|no folder nowhere"),
    (f"{JOB} --output .", ".: |folder"),
    (f"{JOB} --output g.json", "g.json|overwritten"),
    (f"{JOB} --output {'x' * 300}", "cannot be written"),
    (f"{JOB} --output x\0y", "cannot be written"),
    (f"{JOB} --colour red", "--colour"),
    (f"{JOB} --keep --library g.json", "g.json: is no run library"),
    (f"{JOB} --library x.sqlite", "field --library: says where to keep the answer"),
    ("schedule c.json c.json --output r.json", "c.json|field format|topox-taskgraph"),
    ("schedule cycle.json c.json", "cycle.json|a|b"),
    ("schedule latin.json c.json", "latin.json|UTF-8"),
    ("schedule deep.json c.json", "deep.json|nested too deeply"),
    ("check g.json c.json g.json", "g.json|field format|topox-schedule"),
    ("check g.json c.json none.json", "none.json|no such file"),
    ("workload --output w.json", "NAME"),
    ("workload dlrm", "--output"),
    ("workload skynet --output w.json", "skynet|dlrm"),
    ("workload dlrm --set tables --output w.json", "--set|KEY=VALUE"),
    ("workload dlrm --set wheels=4 --output w.json", "dlrm|wheels"),
    ("workload dlrm --set configuration=9 --output w.json", "dlrm|configuration|9"),
    ("workload dlrm --output w.xls", "w.xls|.json or .csv"),
    ("workload dlrm --output nowhere/w.json", "nowhere/w.json|no folder"),
    ("rcpsp none.sm", "none.sm|no such file"),
    ("rcpsp g.json", "g.json"),
    ("rcpsp g.json --engine printed", "--engine|printed"),
    ("collective --kind gossip", "--kind: must be one of"),
    ("collective --members 1", "--members: must be from 2 to 256"),
    ("collective --size-bytes 0", "--size-bytes: must be greater than 0"),
    ("collective --delay-ms nan", "--delay-ms: must be a finite number"),
    ("collective --algorithm direct", "direct: a member sends or receives twice"),
    ("demand d.csv --delay-ms -1", "field --delay-ms: must be a number of at least 0"),
    ("demand d.csv --switches 5000", "field --switches: must be a whole number from 1 to 1,000"),
    ("demand d.csv --output plan.txt", "--output: must end in .json or .csv"),
    ("failures g.json c.json", "--fail: is needed"),
    ("failures g.json c.json --fail switch:0 --at-percent 100", "must be from 0 to below 100"),
    ("failures g.json c.json --fail hub:0", "--fail: must be fibre"),
    ("compare g.json c.json --fabrics optical", "field"),
    ("compare g.json c.json --fabrics ,", "field"),
    ("compare g.json c.json --reconfiguration-ms 1e30", "field"),
    ("compare g.json c.json --oversubscription 0.5", "field"),
    ("compare g.json c.json --fabrics scheduled --model paper --reconfiguration-ms 1", "field"),
    ("gallery --card x", "unknown card"),
    ("gallery --set a=1", "needs --card"),
    ("gallery --card topox-table3 --set a", "must be KEY=VALUE"),
    ("iteration show llama3-8b --set plan.tensor=5", "plan, field tensor: must divide"),
    ("iteration show llama3-8b --set tensor=5", "must be PART.FIELD=VALUE"),
    ("iteration show llama3-7b", "job: must be a file or one of"),
    ("iteration show", "a job must be named"),
    ("iteration show llama3-8b --graph x.txt", "x.txt: must end in .json or .csv"),
    ("iteration machines tpu", "NAME: must be one of a100"),
    ("iteration validate vtrain --machine tpu", "--machine: must be one of a100"),
    ("lab grade .", "holds no file whose name ends in .answers.json"),
    ("lab grade none", "none: |cannot be read"),
    ("rails bytes llama3-8b-perlmutter --stage 2", "--stage: must be from 0 to 1"),
    ("rails count --stages 0 --microbatches 4", "--stages: must be a whole number of at least 1"),
    ("rails delay --delay-ms 5", "--base-ms: is needed"),
    ("rails delay --base-ms 10 --delay-ms 5", "--window-ms: at least one window"),
    (
        "rails delay --base-ms 10 --window-ms 3 --delay-ms -5",
        "--delay-ms: must be at least 0 (got -5)",
    ),
    ("rails delay --measured --window-ms 3 --delay-ms 5", "cannot be given with"),
    ("rails delay --preset llama --delay-ms 5", "--preset: unknown preset"),
    (
        "rails delay --preset toy --set data=3 --delay-ms 5",
        "preset toy, field gpus: must be tensor x context x pipeline x data",
    ),
    ("rails delay --preset toy --measured --delay-ms 5", "--preset: cannot be given with"),
    ("rails delay --preset toy --base-ms 5 --delay-ms 5", "--base-ms: cannot be given with"),
    ("rails delay --measured --set data=3 --delay-ms 5", "--set: changes a preset"),
    ("rails delay --execution no.json such.json --delay-ms 5", "such.json: cannot be read"),
    ("rails simulate", "PRESET: is needed"),
    ("rails simulate toy --set colour=3", "unknown key"),
    ("rails simulate toy --set data=many", "data: must be a whole number (got 'many')"),
    ("rails simulate toy --set shape=gpt", "field shape: unknown model"),
    (
        "rails simulate toy --set pipeline=40 --set gpus=160",
        "the number of stages may be 32 at most",
    ),
    ("rails simulate toy --nic-ports 0", "--nic-ports: must be at least 1"),
    ("rails simulate toy --limit-percent -1", "--limit-percent: must be at least 0 (got -1)"),
    ("rails simulate toy --set iteration_ms=1e300", "iteration_ms: must be at most 1e+09"),
    (
        "rails simulate llama3.1-405b-8192 --switch sip",
        "--switch: a rail of 1,024 servers needs 2,048 ports",
    ),
    ("rails windows a.json b.json --fabric wireless", "--fabric: must be some of ideal"),
    ("rails windows no-such-file.csv", "cannot be read"),
    (
        "rails windows g.json c.json --fabric fat_tree --fat-tree full --oversubscription 2",
        "--fat-tree",
    ),
    ("rails cost --gpus 64 --radix 0", "--radix: must be at least 1"),
    ("rails cost --gpus 8 --parts /nowhere.parts.json", "/nowhere.parts.json"),
    ("rails graph toy", "--output: is needed"),
    ("rails advise --parameters 0 --gpus 8", "--parameters: must be a number above 0"),
    (f"{TINY} --fabric static --alternate", "--alternate"),
    (f"{TINY} --fabric static --beside wifi", "wifi"),
    (f"{TINY} --beside static", "--fabric"),
    (f"{TINY} --cluster c.json", "--fabric"),
    (f"{TINY} --fabric static --reconfiguration-ms -1", "--reconfiguration-ms: must be"),
    (f"{BUY} --only pizo", "did you mean 'piezo'?"),
    (f"{BUY} --by speed", "field --by: must be one of dollars, time, price"),
    (f"{BUY} --years 0", "field --years: must be from 0.1 to 100 (got 0)"),
    (f"{BUY} --rivals none", "field --rivals: must be one of fixed"),
    (f"{BUY} --fixed cluster.speed=1", "field --fixed: unknown key"),
    (f"{BUY} --fixed cluster.port_gbps=-1", "cluster.port_gbps must be from 1e-06"),
    ("study buy", "field --sample: or --graph with --cluster must name the job"),
    ("study buy --graph a.json", "field --cluster: is missing"),
    ("study rivals --jobs dense,sparse", "--jobs: must be one of dense, experts"),
    ("study run away.study.json", "away.study.json: "),
    ("study run s.json --scheduler http://host", "address must look like tcp://host:8786"),
    ("study run s.json --scheduler tcp://127.0.0.1:9 --workers 2", "one or the other"),
    ("study run s.json --no-library --library x", "cannot go with --no-library"),
    ("study ready crosover-map", "did you mean 'crossover-map'?"),
    ("study ready rails-delay --sample moe", "--sample"),
    ("tdm nowhere.jobs.json", "nowhere.jobs.json"),
    ("tdm", "JOBS"),
    (f"tdm {OVERLAP} --algorithm guess", "--algorithm"),
    (f"tdm {OVERLAP} --time-limit 0", "--time-limit"),
    (f"tdm {OVERLAP} --port-gbps -1", "--port-gbps: must be"),
    (f"tdm {OVERLAP} --output nowhere/at.json", "nowhere/at.json"),
    ("tdm-jobs --jobs 3", "--output"),
    ("tdm-jobs --jobs 0 --output x.jobs.json", "jobs"),
    ("tdm-jobs --jobs 100000 --output x.jobs.json", "20,000"),
    ("tdm-jobs --mix 1,2 --output x.jobs.json", "--mix"),
    ("tdm-jobs --degree-min 9 --degree-max 2 --output x.jobs.json", "--degree-min"),
    (
        "topology --servers 16 --degree 0",
        "--degree: must be a whole number from 1 to 4,096 (got 0)",
    ),
    ("topology --servers 0 --degree 2", "field --servers: must be a whole number from 1"),
    ("topology --servers 16 --degree 4 --variant x", "--variant: must be one of published"),
    ("topology --servers 16 --degree four", "--degree: must be a whole number"),
    ("topology --servers 16", "--degree"),
    ("topology --servers 16 --degree 4 --graph none.json", "none.json: cannot be read"),
]


@pytest.fixture
def bad_files(folder: Path) -> Path:
    task = GRAPH["tasks"][0]
    knot = [{**task, "id": one, "dependencies": [other]} for one, other in ("ab", "ba")]
    contents = {
        "cycle.json": json.dumps({**GRAPH, "tasks": knot}).encode(),
        "latin.json": '{"name": "Zürich"}'.encode("latin-1"),
        "deep.json": b"[" * 10_000 + b"]" * 10_000,
        "d.csv": b"0,6\n3,0\n",
        "s.json": json.dumps(STUDY).encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


def files_of(folder: Path) -> list[str]:
    """Return the names in a folder but that of the library, which may have been begun."""
    return sorted(one.name for one in folder.iterdir() if not one.name.startswith("runs.sqlite"))


@pytest.mark.parametrize(("command", "words"), MISTAKES, ids=[one for one, _ in MISTAKES])
def test_a_mistake_is_one_clear_line_before_anything_is_started(
    topox: Any, bad_files: Path, command: str, words: str
) -> None:
    before = files_of(bad_files)
    status, out, err = topox(command)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("topox: error: ")
    assert [word for word in words.split("|") if word.lower() not in err.lower()] == []
    assert files_of(bad_files) == before
