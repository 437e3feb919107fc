"""Each rule of reading a recording on a made-up job that needs it; one rank for all, and calls bundled."""

import json
from collections import Counter
from collections.abc import Callable

import pytest

from tests.refusal import refusal
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
from tests.topox_core.traces.reading_back import (
    Events,
    communications,
    edited,
    imported,
    said,
    sources,
    status,
)
from topox_core.traces.communication import element_bytes, parallelism_of
from topox_core.traces.importing import Imported, import_kineto
from topox_core.traces.recorded.recorded_run import read_host_trace
from topox_core.traces.run_graph import at_speed, replay_ms
from topox_core.traces.source import ImportSettings, Refused, Source

ASKED = (25.0, 100.0, 1600.0)


def replays_as(program: dict[int, list[Op]], found: Imported, within: float) -> None:
    for asked in ASKED:
        truth = simulate(program, asked).end_us / 1000
        assert replay_ms(found.run, at_speed(asked)) == pytest.approx(truth, rel=within)


def test_sends_of_a_batch_are_found_in_the_scopes_before_their_kernel() -> None:
    """Each rank sends to its neighbour and receives from the other in one kernel, three times."""
    program: dict[int, list[Op]] = {0: [], 1: []}
    for k in range(3):
        both = Transfer(f"t{k}", 0, 1, 30_000_000), Transfer(f"b{k}", 1, 0, 10_000_000)
        for rank, ops in program.items():
            ops += [Kernel(500.0 + 100 * rank), Batch(both), Kernel(200.0), Wait(f"t{k}")]
    found = imported(recordings(program, 100.0, Style(steps=1)))
    assert found.report["calls_by_kind"] == {"send": 6}
    assert found.report["size_bytes"] == 3 * 40_000_000
    replays_as(program, found, within=0.02)


def test_a_message_of_a_batch_is_over_on_the_rank_that_has_nothing_else_to_move() -> None:
    """Rank 1 moves a large message in the same kernel; rank 0 goes on when the small one is there."""
    small, large = Transfer("a", 0, 1, 1_000_000), Transfer("b", 1, 2, 60_000_000)
    norm = Call("norm", "all_reduce", (0, 1, 2), 4)
    between: list[list[Op]] = [
        [Batch((small,)), Wait("a"), Kernel(9_000.0)],
        [Batch((small, large)), Kernel(200.0)],
        [Batch((large,)), Wait("b"), Kernel(200.0)],
    ]
    program: dict[int, list[Op]] = {
        rank: [Kernel(500.0), *ops, norm, Wait("norm"), Kernel(50.0)]
        for rank, ops in enumerate(between)
    }
    found = imported(recordings(program, 100.0, Style(steps=1)))
    assert found.report["replay_ms"]["400_gbps"] < 9.7
    replays_as(program, found, within=0.02)


@pytest.mark.parametrize("job", ["fsdp", "experts"])
def test_metadata_of_the_scope_tells_as_much_as_that_of_the_kernel(job: str) -> None:
    program = JOBS[job]()
    replays_as(program, imported(recordings(program, 400.0, Style(metadata="scope"))), 5e-4)


def test_shapes_of_the_scopes_tell_the_bytes() -> None:
    program = JOBS["experts"](layers=2)
    told = imported(recordings(program, 100.0, Style(metadata="shapes")))
    assert told.report["size_bytes"] == imported(recordings(program, 100.0)).report["size_bytes"]


def losing(*lost: int) -> Callable[[Events], Events]:
    """Return what takes some calls out of a file."""

    def lose(events: Events) -> Events:
        calls = communications(events)
        return [one for one in events if one not in [calls[k] for k in lost]]

    return lose


@pytest.mark.parametrize("style", [Style(seq=True), Style(identity=True)])
def test_numbers_and_identities_match_where_places_do_not(style: Style) -> None:
    files = recordings(JOBS["experts"](layers=2), 100.0, style)
    assert imported(edited(files, losing(0), "run_rank1.json"), step=6).report["unmatched"] == []


def test_what_is_left_after_the_common_sequence_is_unmatched() -> None:
    """A call that one of four ranks lost is lost to the three others; more than one in a hundred are refused."""
    files = recordings(JOBS["fsdp"](layers=30), 400.0, Style(steps=1))
    found = imported(edited(files, losing(50), "run_rank2.json"))
    assert len(found.report["unmatched"]) == 3
    assert status(found, "matching") == "warned"
    assert "left out, and the network's share may be too low" in said(found, "matching")
    with pytest.raises(Refused, match=r"^group of 0 to 3, call \d+: rank 0 has"):
        imported(edited(files, losing(20, 30, 40, 50), "run_rank2.json"))


def test_a_send_without_its_receive_is_named() -> None:
    sent = [Transfer(f"t{k}", 0, 1, 1_000_000) for k in range(4)]
    program: dict[int, list[Op]] = {
        0: [op for one in sent for op in (Kernel(100.0), one)],
        1: [op for one in sent for op in (one, Wait(one.key), Kernel(100.0))],
    }
    files = recordings(program, 100.0, Style(steps=1))
    with pytest.raises(Refused, match=r"^send 0 to 1, number 4: has no receive on rank 1$"):
        imported(edited(files, losing(-1), "run_rank1.json"))


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
    even = recordings(uneven_program([[10_000] * 3] * 3), 100.0, Style(steps=1))
    for one, kind in (
        (found, "barrier"),
        (imported(files, uneven="one"), "all_to_all"),
        (imported(even), "all_to_all"),
    ):
        assert one.graph.tasks[one.graph.position["c0.all_to_all"]].kind == kind


def test_several_gpus_share_a_server() -> None:
    graph = imported(recordings(JOBS["pipeline"](), 100.0), gpus_per_server=2).graph
    inside = [t for t in graph.tasks if ".all_reduce.r" in t.id]
    # Replicas of a stage share a server: their gradients take no network, the norm of all does.
    assert {t.kind for t in graph.tasks} >= {"communication", "all_reduce", "barrier"}
    assert (graph.servers, len(inside), {t.device for t in inside}) == (2, 2 * 6, {2, 3})


def test_host_gaps_can_be_dropped() -> None:
    def halve(events: Events) -> Events:
        return [one | {"dur": one["dur"] / (1 + (one["name"] == "gemm"))} for one in events]

    slow = edited(recordings(JOBS["experts"](layers=2), 100.0), halve)
    kept, dropped = imported(slow), imported(slow, host_gaps="drop")
    segments = [sum(t.duration_ms or 0 for t in one.graph.tasks) for one in (kept, dropped)]
    assert segments[1] < 0.7 * segments[0]
    assert status(kept, "busy") == "warned"


def test_sizes_that_nothing_tells_are_refused_or_assumed() -> None:
    program = JOBS["experts"](layers=2)
    files = recordings(program, 100.0, Style(metadata="none"))
    line = r"^run_rank0.json, call 0 \(SendRecv at .* \(and 8 more\).* or --assume-gbps 400$"
    with pytest.raises(Refused, match=line):
        imported(files)
    found = imported(files, assume_gbps=100.0)
    truth = imported(recordings(program, 100.0)).report["size_bytes"]
    assert found.report["size_bytes"] == pytest.approx(truth, rel=0.05)
    assert status(found, "bytes") == "warned"
    assert "other speeds are as uncertain" in said(found, "bytes")


def test_a_check_says_how_far_inferred_waits_could_move_the_share_of_the_network() -> None:
    """A rank computes 1 ms, sends for 2 ms, computes 1 ms: recorded waits are sure; seen from an idle stream the 2 ms are not."""
    call = Call("c", "all_reduce", (0, 1), 12_500_000)
    program: dict[int, list[Op]] = {
        rank: [Kernel(1000.0), call, Wait("c"), Kernel(1000.0)] for rank in (0, 1)
    }
    sure = imported(recordings(program, 50.0, Style(waits="sync")))
    assert said(sure, "waits").endswith(
        "recorded for 2, so the network's share rests on no idle stream"
    )

    def without_waits(events: Events) -> Events:
        return [one for one in events if "Wait" not in one["name"] and "Sync" not in one["name"]]

    seen = imported(edited(recordings(program, 50.0, Style(waits="sync")), without_waits))
    assert "only from an idle stream for 2" in said(seen, "waits")
    assert said(seen, "waits").endswith("so the network's share may be up to 2 ms too high")


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
    assert by_id["gather"].kind == "barrier" and {"gather.1-0", "gather.2-0"} <= by_id.keys()


def test_a_graph_launched_at_once_is_read_in_order_of_start() -> None:
    program = JOBS["experts"](layers=2)
    found = imported(recordings(program, 100.0, Style(graphs=True)))
    assert found.report["calls"] == imported(recordings(program, 100.0)).report["calls"]
    assert status(found, "replay") == "passed"


def test_labels_come_from_descriptions_or_from_the_command() -> None:
    assert [parallelism_of(words, "all_reduce") for words in (
        "TENSOR_MODEL_PARALLEL_GROUP", "mesh_tp", "mesh_dp_shard", "mesh_dp", "DataParallelGroup_ddp",
        "EXPERT_DATA_PARALLEL", "mesh_pp", "mesh_cp", "default_pg", "steps",
    )] == ["tp", "tp", "fsdp", "dp", "dp", "ep", "pp", "cp", None, None]  # fmt: skip
    assert parallelism_of("default_pg", "send") == "pp" and parallelism_of("", "recv") == "pp"
    found = imported(recordings(JOBS["fsdp"](), 100.0), parallelism={"world": "dp"})
    assert {t.parallelism for t in found.graph.tasks if t.members} == {"fsdp", "dp"}
    assert "must be one of dp" in refusal(imported, {}, parallelism={"world": "x"})


def test_groups_are_named_by_the_file_where_calls_do_not_list_them() -> None:
    words = ("Process Group Ranks", "Process Group Description")

    def strip(events: Events) -> None:
        for args in (event["args"] for event in events):
            if args.get("Process Group Name") != "pp":
                args |= dict.fromkeys(args.keys() & words)

    files = recordings(JOBS["pipeline"](2), 100.0, Style(steps=1, groups=True))
    shortened = {
        name: data.replace(b'Ranks": "[', b'Ranks": "[..., ') for name, data in files.items()
    }
    plain = imported(files).graph.digest
    assert plain == imported(edited(files, strip)).graph.digest
    assert plain == imported(shortened).graph.digest


def test_types_have_sizes() -> None:
    words = ("Float", "BFloat16", "Long", "Bool", "Float8_e4m3fn", "c10::Half", "long int")
    assert [element_bytes(word) for word in words] == [4, 2, 8, 1, 1, 2, 8]
    data = recordings(JOBS["experts"](layers=1), 100.0)["run_rank0.json"]
    line = "field dtype: 'Quark' is no type"
    assert line in refusal(
        imported, {"run_rank0.json": data.replace(b'"dtype": "Byte"', b'"dtype": "Quark"')}
    )


def test_the_step_that_stands_for_the_run() -> None:
    files = recordings(JOBS["experts"](layers=1), 100.0, Style(steps=4))
    for settings, steps in (({}, (6, 7, 8)), ({"step": "last"}, (8,)), ({"step": 5}, (5,))):
        assert imported(files, **settings).report["step"] in steps
    nameless = {
        name: data.replace(b"ProfilerStep#", b"SomethingElse") for name, data in files.items()
    }
    assert any("marks no steps" in line for line in imported(nameless).report["warnings"])


def test_work_that_was_asked_for_before_recording_began_is_left_out() -> None:
    def begin_earlier(events: Events) -> None:
        at = min(event["ts"] for event in events) + 1
        old = {"stream": 7, "correlation": 10**9}
        events.append({"ph": "X", "cat": "kernel", "name": "old", "ts": at, "dur": 5, "args": old})

    files = recordings(JOBS["experts"](layers=1), 100.0)
    found = imported(edited(files, begin_earlier, "run_rank0.json"))
    assert any("1 activities were launched before" in line for line in found.report["warnings"])
    assert found.graph.digest == imported(files).graph.digest


def test_a_recorded_wait_is_for_the_call_before_its_event_and_for_none_behind() -> None:
    """Gradients follow on the same stream before the computing asks for what it waits for."""
    group = (0, 1)
    first = Call("g", "all_reduce", group, 1_000_000, 20, "d", "ddp")
    behind = Call("h", "all_reduce", group, 60_000_000, 20, "d", "ddp")
    program: dict[int, list[Op]] = {
        rank: [
            *(Kernel(200.0), first, behind, Kernel(8_000.0), Wait("g")),
            *(Kernel(3_000.0), Wait("h"), Kernel(100.0)),
        ]
        for rank in group
    }
    found = imported(recordings(program, 400.0, Style(steps=1, waits="sync")))
    assert found.report["waits"] == {"exact": 4}
    replays_as(program, found, within=1e-3)


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
    files = sources(recordings(program, 400.0, Style(steps=1)))
    calls = [(1, "allreduce"), (2, "all_to_all"), (2, "wait"), (1, "wait")]
    nodes = [
        {"name": "record_param_comms", "id": k, "rf_id": k, "inputs": [number, 0, 0, word, [], []]}
        for k, (number, word) in enumerate(calls)
    ]
    host = json.dumps({"schema": "1.0.1", "nodes": nodes}).encode()
    hosts = sources({"host_0.json": host, "host_1.json": host})
    alone, told = (import_kineto(files, ImportSettings(), *more) for more in ((), (hosts,)))
    assert told.report["waits"] == {"exact": 4} and alone.report["waits"] == {"found": 4}
    replays_as(program, told, within=1e-4)
    wrong = replay_ms(alone.run, at_speed(50.0)) / (simulate(program, 50.0).end_us / 1000)
    assert wrong > 1.05


def test_a_tensor_in_nine_hundred_lists_of_a_host_trace_says_no_size() -> None:
    inputs: list[object] = [json.loads("[" * 900 + "]" * 900), "allreduce"]
    nodes = [{"name": "record_param_comms", "id": 1, "inputs": inputs}]
    host = Source.of_bytes("host_0.json", json.dumps({"nodes": nodes}).encode())
    assert [one.kind for one in read_host_trace(host).calls] == ["all_reduce"]


def equal_ranks(calls: int = 6) -> dict[int, list[Op]]:
    """Four ranks of one pace in groups of neighbours, whose calls are waited for at once, and groups across."""
    program: dict[int, list[Op]] = {}
    for rank in range(4):
        pair, across = (rank // 2 * 2, rank // 2 * 2 + 1), (rank % 2, rank % 2 + 2)
        ops = program[rank] = []
        for k in range(calls):
            tensor = Call(f"t{k}.{pair}", "all_reduce", pair, 8_000_000, 20, f"t{pair}", "tp")
            data = Call(f"d{k}.{across}", "all_reduce", across, 20_000_000, 21, f"d{across}", "dp")
            ops += [Kernel(300.0), tensor, Wait(tensor.key), Kernel(100.0), data]
        ops += [*(Wait(f"d{k}.{across}") for k in range(calls)), Kernel(200.0, "update")]
    return program


def shape(found: Imported) -> Counter[tuple[object, ...]]:
    return Counter(
        (
            t.kind,
            t.server,
            t.members,
            t.size_bytes,
            round(t.duration_ms or 0.0, 4),
            len(t.dependencies),
        )
        for t in found.graph.tasks
    )


def test_one_of_equal_ranks_gives_the_graph_of_all() -> None:
    files = recordings(equal_ranks(), 100.0, Style(steps=2))
    all_ranks = imported(files)
    one = imported({"run_rank2.json": files["run_rank2.json"]}, symmetry=True)
    assert shape(one) == shape(all_ranks)
    for gbps in (10.0, 100.0, 1000.0):
        assert replay_ms(one.run, at_speed(gbps)) == pytest.approx(
            replay_ms(all_ranks.run, at_speed(gbps)), rel=1e-6
        )


def test_one_rank_cannot_stand_for_a_pipeline_or_irregular_groups() -> None:
    files = recordings(JOBS["pipeline"](), 100.0)
    with pytest.raises(Refused, match="sends to rank 2: one rank cannot stand for a pipeline"):
        imported({"run_rank0.json": files["run_rank0.json"]}, symmetry=True)
    odd = {
        r: [Kernel(100.0), Call("x", "all_reduce", (0, 3, 4), 1_000), Wait("x"), Kernel(9.0)]
        for r in (0, 3, 4)
    }
    data = recordings(odd, 100.0, Style(steps=1, world=6))["run_rank0.json"]
    with pytest.raises(
        Refused, match=r"ranks 0, 3 to 4 have no stride: the other ranks' groups cannot be made"
    ):
        imported({"run_rank0.json": data}, symmetry=True)


def small_calls(calls: int = 60) -> dict[int, list[Op]]:
    """Many small calls of four ranks in a row, which nobody waits for before the last."""
    group = (0, 1, 2, 3)
    calls_of = [Call(f"c{k}", "all_reduce", group, 1_000_000) for k in range(calls)]
    return {
        rank: [
            Kernel(2_000.0),
            *(
                op
                for k in range(calls)
                for op in (Kernel(30.0 + 5 * ((rank + k) % 3)), calls_of[k])
            ),
            *(Wait(one.key) for one in calls_of),
            Kernel(500.0),
        ]
        for rank in group
    }


def test_calls_are_bundled_until_there_are_few_enough() -> None:
    files = recordings(small_calls(), 100.0, Style(steps=2))
    whole = imported(files)
    few = imported(files, max_tasks=100)
    assert len(whole.graph.tasks) > 250 and len(few.graph.tasks) <= 100
    assert few.report["size_bytes"] == whole.report["size_bytes"]
    told = few.report["coarsening"]
    bundled = told["nodes_before"] - told["nodes_after"]
    assert 0 < told["theta_ms"] <= 0.01 * few.report["recorded_ms"]
    for gbps in (25.0, 100.0, 400.0):
        before, after = (replay_ms(one.run, at_speed(gbps)) for one in (whole, few))
        assert abs(after - before) <= bundled * told["theta_ms"]


def test_a_bundle_is_not_made_where_somebody_waits_in_between() -> None:
    files = recordings(equal_ranks(), 100.0, Style(steps=2))
    with pytest.raises(Refused):
        # Tensor calls are waited for at once: no bundle of those is the same iteration.
        imported(files, max_tasks=30)
