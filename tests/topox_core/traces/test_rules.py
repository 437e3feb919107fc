"""Each rule of reading a recording on a made-up job that needs it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.topox_core.traces.made import (
    JOBS,
    Batch,
    Call,
    Kernel,
    Op,
    Style,
    Transfer,
    Wait,
    recordings,
    simulate,
)
from tests.topox_core.traces.reading_back import imported, sources, status
from topox_core.errors import InputError
from topox_core.traces.communication import element_bytes, parallelism_of
from topox_core.traces.importing import import_kineto
from topox_core.traces.refused import Refused
from topox_core.traces.run_graph import at_speed, free, replay_ms
from topox_core.traces.settings import ImportSettings
from topox_core.traces.tasks import slot_of


def predicts(program: dict[int, list[Op]], style: Style, within: float = 5e-4) -> None:
    for recorded in (25.0, 400.0):
        found = imported(recordings(program, recorded, style))
        for asked in (25.0, 100.0, 1600.0):
            truth = simulate(program, asked).end_us / 1000
            assert replay_ms(found.run, at_speed(asked)) == pytest.approx(truth, rel=within)


def pairs_in_batches() -> dict[int, list[Op]]:
    """Each rank sends to its neighbour and receives from the other in one kernel, three times."""
    program: dict[int, list[Op]] = {0: [], 1: []}
    for k in range(3):
        there = Transfer(f"t{k}", 0, 1, 30_000_000)
        back = Transfer(f"b{k}", 1, 0, 10_000_000)
        for rank in (0, 1):
            program[rank] += [
                Kernel(500.0 + 100 * rank),
                Batch((there, back)),
                Kernel(200.0),
                Wait(f"t{k}"),
            ]
    for rank in (0, 1):
        program[rank].append(Kernel(300.0))
    return program


def simulated_batches(program: dict[int, list[Op]], gbps: float) -> float:
    """Both transfers begin when both ranks are there, and the kernel ends with the longer."""
    at = 0.0
    ready = [0.0, 0.0]
    for _ in range(3):
        at = max(ready[0] + 500, ready[1] + 600)
        end = at + 30_000_000 * 8 / (gbps * 1000)
        ready = [max(ready[0] + 700, end), max(ready[1] + 800, end)]
    return (max(ready) + 300) / 1000


def test_sends_of_a_batch_are_found_in_the_scopes_before_their_kernel() -> None:
    program = pairs_in_batches()
    files = recordings(program, 100.0, Style(steps=3))
    assert b"Dst Rank" not in b"".join(
        json.dumps(e).encode()
        for data in files.values()
        for e in json.loads(data)["traceEvents"]
        if e["cat"] == "kernel"
    )
    found = imported(files)
    assert found.report["calls_by_kind"] == {"send": 6}
    assert found.report["size_bytes"] == 3 * 40_000_000
    assert {task.parallelism for task in found.graph.tasks if task.source is not None} == {"pp"}
    for asked in (25.0, 100.0, 1600.0):
        truth = simulated_batches(program, asked)
        # A step begins as its ranks left the one before: up to the difference of their last kernels.
        assert replay_ms(found.run, at_speed(asked)) == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize("job", JOBS)
def test_metadata_of_the_scope_or_of_shapes_tells_the_same(job: str) -> None:
    if job != "pipeline":
        predicts(JOBS[job](), Style(metadata="scope"))
    program = JOBS["experts"](layers=2)
    told = imported(recordings(program, 100.0, Style(metadata="shapes")))
    assert told.report["size_bytes"] == imported(recordings(program, 100.0)).report["size_bytes"]


def test_numbers_and_identities_match_where_places_do_not() -> None:
    program = JOBS["experts"](layers=2)
    for style in (Style(seq=True), Style(identity=True)):
        files = recordings(program, 100.0, style)
        record = json.loads(files["run_rank1.json"])
        events = record["traceEvents"]
        first = next(
            e
            for e in events
            if e["name"].startswith("nccl") and e["ts"] > 6e6 - 1e6 and e["cat"] == "kernel"
        )
        events.remove(first)
        found = imported({**files, "run_rank1.json": json.dumps(record).encode()}, step=6)
        assert found.report["unmatched"] == []


def test_what_is_left_after_the_longest_common_sequence_is_unmatched() -> None:
    program = JOBS["fsdp"](layers=40)
    files = recordings(program, 400.0, Style(steps=2))
    record = json.loads(files["run_rank2.json"])
    step = next(e for e in record["traceEvents"] if e["name"] == "ProfilerStep#6")
    calls = [
        e
        for e in record["traceEvents"]
        if e["name"].startswith("nccl") and e["args"]["correlation"] in _launched_in(record, step)
    ]
    record["traceEvents"].remove(calls[50])
    found = imported({**files, "run_rank2.json": json.dumps(record).encode()}, step=6)
    assert 1 <= len(found.report["unmatched"]) < 0.01 * 4 * len(calls)
    assert status(found, "matching") == "warned"
    for k in (20, 30, 40):
        record["traceEvents"].remove(calls[k])
    with pytest.raises(Refused, match=r"^group \[0, 1, 2, 3\], call \d+: rank 0 has"):
        imported({**files, "run_rank2.json": json.dumps(record).encode()}, step=6)


def _launched_in(record: dict[str, Any], step: dict[str, Any]) -> set[int]:
    return {
        e["args"]["correlation"]
        for e in record["traceEvents"]
        if e["cat"] == "cuda_runtime" and step["ts"] <= e["ts"] <= step["ts"] + step["dur"]
    }


def test_a_send_without_its_receive_is_named() -> None:
    program: dict[int, list[Op]] = {0: [], 1: []}
    for k in range(4):
        one = Transfer(f"t{k}", 0, 1, 1_000_000)
        program[0] += [Kernel(100.0), one]
        program[1] += [one, Wait(one.key), Kernel(100.0)]
    files = recordings(program, 100.0, Style(steps=1))
    record = json.loads(files["run_rank1.json"])
    lost = [e for e in record["traceEvents"] if e["name"].startswith("nccl")][-1]
    record["traceEvents"].remove(lost)
    with pytest.raises(Refused, match=r"^send 0 to 1, number 4: has no receive on rank 1$"):
        imported({**files, "run_rank1.json": json.dumps(record).encode()})


def uneven_program(splits: list[list[int]]) -> dict[int, list[Op]]:
    group = tuple(range(len(splits)))
    return {
        rank: [
            Kernel(300.0),
            Call("x", "all_to_all", group, sum(row), splits=tuple(row)),
            Wait("x"),
            Kernel(200.0),
        ]
        for rank, row in enumerate(splits)
    }


def test_an_uneven_exchange_becomes_a_transfer_a_pair() -> None:
    splits = [[0, 4_000_000, 1_000_000], [2_000_000, 0, 0], [1_000_000, 1_000_000, 500_000]]
    files = recordings(uneven_program(splits), 100.0, Style(steps=1))
    found = imported(files)
    sent = {
        (t.source, t.destination): t.size_bytes
        for t in found.graph.tasks
        if t.kind == "communication"
    }
    assert sent == {
        (a, b): size
        for a, row in enumerate(splits)
        for b, size in enumerate(row)
        if a != b and size
    }
    barrier = next(t for t in found.graph.tasks if t.id == "c0.all_to_all")
    assert barrier.kind == "barrier" and len(barrier.dependencies) == len(sent)
    one = imported(files, uneven="one").graph
    assert next(t for t in one.tasks if t.id == "c0.all_to_all").kind == "all_to_all"
    even = imported(recordings(uneven_program([[10_000] * 3] * 3), 100.0, Style(steps=1))).graph
    assert [t.kind for t in even.tasks if t.id.startswith("c")] == ["all_to_all"]


def test_several_gpus_share_a_server() -> None:
    program = JOBS["pipeline"]()
    found = imported(recordings(program, 100.0), gpus_per_server=2)
    assert found.graph.servers == 2
    kinds = {t.kind for t in found.graph.tasks}
    inside = [t for t in found.graph.tasks if ".all_reduce.r" in t.id]
    # Replicas of a stage share a server: their gradients take no network, the norm of all does.
    assert kinds >= {"communication", "all_reduce", "barrier"} and len(inside) == 2 * 6
    assert {t.device for t in inside} == {2, 3}
    assert found.cluster.devices_per_server == 4
    assert replay_ms(found.run, free) > replay_ms(imported(recordings(program, 100.0)).run, free)
    assert any("stay inside servers of 2" in line for line in found.report["warnings"])


def test_host_gaps_can_be_dropped() -> None:
    program = JOBS["experts"](layers=2)
    files = recordings(program, 100.0, Style())
    record = {name: json.loads(data) for name, data in files.items()}
    for one in record.values():
        for event in one["traceEvents"]:
            if event["cat"] == "kernel" and event["name"] == "gemm":
                event["dur"] = round(event["dur"] / 2, 3)
    slow = {name: json.dumps(one).encode() for name, one in record.items()}
    kept, dropped = imported(slow), imported(slow, host_gaps="drop")
    segments = [sum(t.duration_ms or 0 for t in one.graph.tasks) for one in (kept, dropped)]
    assert segments[1] < 0.7 * segments[0]
    assert status(kept, "busy") == "warned"


def test_sizes_that_nothing_tells_are_refused_or_assumed() -> None:
    program = JOBS["experts"](layers=2)
    files = recordings(program, 100.0, Style(metadata="none"))
    with pytest.raises(Refused) as refused:
        imported(files)
    line = str(refused.value)
    assert line.startswith("run_rank0.json, call 0 (SendRecv at ") and "(and 8 more)" in line
    assert line.endswith("record with record_shapes=True, give --host-trace, or --assume-gbps 400")
    found = imported(files, assume_gbps=100.0)
    truth = imported(recordings(program, 100.0)).report["size_bytes"]
    assert found.report["size_bytes"] == pytest.approx(truth, rel=0.05)
    assert status(found, "bytes") == "warned"


def test_barriers_and_other_kinds_of_collectives() -> None:
    group = (0, 1, 2)
    kinds = ("barrier", "broadcast", "reduce", "gather")
    program = {
        rank: [
            op
            for kind in kinds
            for op in (Kernel(50.0), Call(kind, kind, group, 3_000_000), Wait(kind), Kernel(20.0))
        ]
        for rank in group
    }
    found = imported(recordings(program, 100.0, Style(steps=1)))
    by_id = {t.id.partition(".")[2]: t for t in found.graph.tasks if t.id.startswith("c")}
    assert by_id["barrier"].kind == "barrier"
    assert by_id["broadcast"].kind == by_id["reduce"].kind == "broadcast"
    assert by_id["gather"].kind == "barrier" and "gather.1-0" in by_id and "gather.2-0" in by_id
    assert any("roots" in line for line in found.report["warnings"])
    assert any("reduces are written as broadcasts" in line for line in found.report["warnings"])


def test_a_graph_launched_at_once_is_read_in_order_of_start() -> None:
    program = JOBS["experts"](layers=2)
    found = imported(recordings(program, 100.0, Style(graphs=True)))
    plain = imported(recordings(program, 100.0))
    assert found.report["calls"] == plain.report["calls"]
    assert status(found, "replay") == "passed"


def test_labels_come_from_descriptions_or_from_the_command() -> None:
    assert [parallelism_of(words, "all_reduce") for words in (
        "TENSOR_MODEL_PARALLEL_GROUP", "mesh_tp", "mesh_dp_shard", "mesh_dp", "DataParallelGroup_ddp",
        "EXPERT_DATA_PARALLEL", "mesh_pp", "mesh_cp", "default_pg", "steps",
    )] == ["tp", "tp", "fsdp", "dp", "dp", "ep", "pp", "cp", None, None]  # fmt: skip
    assert parallelism_of("default_pg", "send") == "pp" and parallelism_of("", "recv") == "pp"
    found = imported(recordings(JOBS["fsdp"](), 100.0), parallelism={"world": "dp"})
    assert {t.parallelism for t in found.graph.tasks if t.members} == {"fsdp", "dp"}
    with pytest.raises(InputError, match="must be one of dp"):
        imported({}, parallelism={"world": "x"})


def test_groups_are_named_by_the_file_where_calls_do_not_list_them() -> None:
    program = JOBS["pipeline"]()
    files = recordings(program, 100.0, Style(groups=True))
    plain = imported(files).graph.digest
    bare = {}
    for name, data in files.items():
        record = json.loads(data)
        for event in record["traceEvents"]:
            if event["args"].get("Process Group Name") != "pp":
                event["args"].pop("Process Group Ranks", None)
                event["args"].pop("Process Group Description", None)
        bare[name] = json.dumps(record).encode()
    assert imported(bare).graph.digest == plain
    short = {
        name: data.replace(b'"Process Group Ranks": "[', b'"Process Group Ranks": "[..., ')
        for name, data in files.items()
    }
    assert imported(short).graph.digest == plain


def test_types_have_sizes() -> None:
    words = ("Float", "BFloat16", "Long", "Bool", "Float8_e4m3fn", "c10::Half", "long int")
    assert [element_bytes(word) for word in words] == [4, 2, 8, 1, 1, 2, 8]
    files = recordings(JOBS["experts"](layers=2), 100.0)
    odd = {
        name: data.replace(b'"dtype": "Byte"', b'"dtype": "Quark"') for name, data in files.items()
    }
    with pytest.raises(
        InputError, match=r"run_rank0\.json, call 0 at .*, field dtype: 'Quark' is no type"
    ):
        imported(odd)


def test_the_step_that_stands_for_the_run() -> None:
    program = JOBS["experts"](layers=2)
    files = recordings(program, 100.0, Style(steps=4))
    assert imported(files).report["step"] in (6, 7, 8)
    assert imported(files, step="last").report["step"] == 8
    assert imported(files, step=5).report["step"] == 5
    alone = imported(recordings(program, 100.0, Style(steps=1)))
    assert any("no step before step 5 is in the file" in line for line in alone.report["warnings"])
    nameless = {
        name: data.replace(b"ProfilerStep#", b"SomethingElse")
        for name, data in recordings(program, 100.0, Style(steps=1)).items()
    }
    found = imported(nameless)
    assert found.report["step"] is None
    assert any("names no steps" in line for line in found.report["warnings"])


def test_work_that_was_asked_for_before_recording_began_is_left_out() -> None:
    files = recordings(JOBS["experts"](layers=2), 100.0)
    record = json.loads(files["run_rank0.json"])
    begin = min(e["ts"] for e in record["traceEvents"])
    record["traceEvents"].append(
        {
            "ph": "X",
            "cat": "kernel",
            "name": "old",
            "ts": begin + 1,
            "dur": 5,
            "args": {"stream": 7, "correlation": 10**9},
        }
    )
    found = imported({**files, "run_rank0.json": json.dumps(record).encode()})
    assert any("1 activities were asked for before" in line for line in found.report["warnings"])
    assert found.graph.digest == imported(files).graph.digest


def test_a_slot_is_a_round_thousandth_of_the_iteration() -> None:
    assert [slot_of(x) for x in (19.4035, 213.5, 1000.0, 999.9, 5.0)] == [
        0.01,
        0.2,
        1.0,
        0.5,
        0.005,
    ]


def test_a_host_trace_names_the_call_that_a_wait_is_for() -> None:
    """Two calls have ended when the computing goes on: order alone takes the older, which nobody waits for yet."""
    group = (0, 1)
    program: dict[int, list[Op]] = {
        rank: [
            Kernel(200.0),
            Call("g", "all_reduce", group, 60_000_000, 20, "d", "ddp"),
            Kernel(100.0),
            Call("x", "all_to_all", group, 1_000_000, 24, "e", "expert"),
            Kernel(5_000.0),
            Wait("x"),
            Kernel(3_000.0),
            Wait("g"),
            Kernel(100.0),
        ]
        for rank in group
    }
    files = recordings(program, 400.0, Style(steps=1))
    calls = [(1, "allreduce"), (2, "all_to_all"), (2, "wait"), (1, "wait")]
    nodes = [
        {"name": "record_param_comms", "id": k, "rf_id": k, "inputs": [number, 0, 0, word, [], []]}
        for k, (number, word) in enumerate(calls)
    ]
    host = json.dumps({"schema": "1.0.1", "nodes": nodes}).encode()
    hosts = sources({"host_0.json": host, "host_1.json": host})
    alone = import_kineto(sources(files), ImportSettings())
    told = import_kineto(sources(files), ImportSettings(), hosts)
    assert told.report["waits"] == {"exact": 4} and alone.report["waits"] == {"found": 4}
    for asked in (25.0, 50.0, 400.0):
        truth = simulate(program, asked).end_us / 1000
        assert replay_ms(told.run, at_speed(asked)) == pytest.approx(truth, rel=1e-4)
    wrong = replay_ms(alone.run, at_speed(50.0)) / (simulate(program, 50.0).end_us / 1000)
    assert wrong > 1.05
