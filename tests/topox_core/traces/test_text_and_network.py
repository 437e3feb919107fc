"""Text workloads and networks become graphs and clusters; the command trace prints, writes and ends as it says."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.refusal import refusal
from tests.topox_core.traces.made import JOBS, Call, Kernel, Op, Style, Wait, recordings
from tests.topox_core.traces.reading_back import sources
from topox_core.cli.main import main
from topox_core.io.cluster_file import load_cluster
from topox_core.io.task_graph_file import check_fits, load_graph
from topox_core.traces.chakra.astra_sim import import_text, read_network
from topox_core.traces.importing import Imported
from topox_core.traces.recorded.recorded_run import read_run, step_of
from topox_core.traces.recorded.windows import windows_of_step
from topox_core.traces.source import ImportSettings, Source

HEADER = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 16 pp: 12 ga: 24 all_gpus: 9216"
ROWS = [
    "embed -1 1000000 ALLREDUCE 4000000 0 NONE 0 0 NONE 0 0",
    "experts\t-1\t2000000\tALLTOALL_EP\t8000000\t3000000\tALLTOALL_EP\t8000000\t1000000\tALLREDUCE_DP_EP\t50000000\t500000",
    "head -1 500000 NONE 0 700000 NONE 0 300000 ALLREDUCE 100000000 0",
    "norm -1 100000 NONE 0 100000 ALLGATHER 0 0 NONE 0 0",
]


def text(rows: list[str], header: str = HEADER) -> bytes:
    return "\n".join([header, str(len(rows)), *rows, ""]).encode()


def expanded(data: bytes, servers: int = 4, **more: float) -> Imported:
    return import_text(Source.of_bytes("w.txt", data), ImportSettings(), servers, **more)


def test_layers_run_forward_then_back_on_every_server() -> None:
    found = expanded(text(ROWS))
    report = found.report
    assert report["compute_ms"] == pytest.approx(9.2)
    assert report["calls_by_kind"] == {"all_to_all": 2, "all_reduce": 2}
    assert report["inside_servers"] == {"calls": 1, "size_bytes": 4_000_000}
    labels = {(t.kind, t.size_bytes, t.parallelism) for t in found.graph.tasks if t.members}
    assert labels == {
        ("all_to_all", 8e6, "ep"),
        ("all_reduce", 50e6, "dp"),
        ("all_reduce", 100e6, "dp"),
    }
    # Blocking exchanges of 3/4 of 8 MB each; gradients run beside what is left of the backward pass.
    exchange, gradients = 0.75 * 8e6 * 8 / 400e6, 1.5 * 100e6 * 8 / 400e6
    behind = 3.0 + exchange + 1.0 + gradients / 2 + 0.5
    whole_ms = 3.6 + exchange + 0.1 + 1.0 + max(gradients, behind)
    assert report["replay_ms"]["400_gbps"] == pytest.approx(whole_ms, rel=1e-6)


def test_ticks_may_be_microseconds_and_models_all_on_the_network() -> None:
    assert expanded(text(ROWS), tick_ns=1_000).report["compute_ms"] == pytest.approx(9_200)
    assert expanded(text(ROWS, "MODEL")).report["calls_by_kind"]["all_reduce"] == 3


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"x", "w.txt: has no header and number of rows"),
        (b"lower case\n1\nx\n", "w.txt: must begin with a word"),
        (b"DATA\nmany\nx\n", "w.txt, line 2: must be the number of rows (got 'many')"),
        (text(ROWS).replace(b"\n4\n", b"\n1789\n"), "w.txt: announces 1,789 rows and has 4"),
        (b"DATA\n0\n", "w.txt: holds no row"),
        (text(["a -1 1 NONE"]), "w.txt, row 1: must have 12 columns (got 4)"),
        (
            text([ROWS[0].replace("ALLREDUCE", "GOSSIP")]),
            "row 1, field fwd_comm: must be NONE or one of",
        ),
        (
            text([ROWS[0].replace("4000000", "nan")]),
            "row 1, field fwd_bytes: must be a number from 0",
        ),
    ],
)
def test_what_is_wrong_is_told_in_a_line(data: bytes, line: str) -> None:
    assert line in refusal(expanded, data)


NETWORK = b"""# two dimensions
topology: [ Switch, Ring ]
npus_count: [ 8, 4 ]     # 32 in all
bandwidth: [ 450.0, 50.0 ]  # GB/s
latency: [ 500, 700 ]
"""


def test_a_network_is_a_cluster() -> None:
    cluster, _ = read_network(Source.of_bytes("net.yml", NETWORK))
    assert (cluster.servers, cluster.devices_per_server, cluster.latency_us) == (4, 8, 0.7)
    gbps = 8 * 2**30 / 1e9  # of one of bandwidth
    assert (cluster.ports_per_server, cluster.port_gbps) == (2, 25 * gbps)
    inner, _ = read_network(Source.of_bytes("net.yml", NETWORK), 1, 8)
    assert (inner.servers, inner.port_gbps) == (8, 56.25 * gbps)
    listed = b"topology:\n - Switch\nnpus_count:\n - 16\nbandwidth:\n - 50\nlatency:\n - 0\n"
    assert read_network(Source.of_bytes("net.yml", listed))[0].servers == 16


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"topology: [Ring]\n", "net.yml, field npus_count: is missing"),
        (
            NETWORK.replace(b"[ 8, 4 ]", b"[ 8 ]"),
            "field npus_count: must list one value for each of the 2",
        ),
        (
            NETWORK.replace(b"Ring", b"Torus"),
            "field topology: must be Ring, FullyConnected or Switch",
        ),
        (NETWORK.replace(b"50.0 ]", b"x ]"), "field bandwidth: must be a number above 0 (got 'x')"),
        (NETWORK.replace(b"[ 8, 4 ]", b"[ 8, 4"), "net.yml: is not valid YAML"),
        (NETWORK + b"latency: 3\n", "field latency: is given twice"),
        (b"words\n", "net.yml: must be keys and values (got 'words')"),
        (
            b"topology: [Ring,Ring,Ring]\nnpus_count: [2,2,2]\nbandwidth: [1,1,1]\nlatency: [1,1,1]\n",
            "has 2 dimensions after the optical one",
        ),
    ],
)
def test_what_is_wrong_with_a_network_is_told_in_a_line(data: bytes, line: str) -> None:
    assert line in refusal(
        read_network,
        Source.of_bytes("net.yml", data),
        **{"optical": 1} if b"Ring,Ring" in data else {},
    )


def test_the_command_knows_both_by_their_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ask: Any
) -> None:
    workload, net = tmp_path / "w.txt", tmp_path / "net.yml"
    workload.write_bytes(text(ROWS))
    net.write_bytes(NETWORK)
    out, cluster = str(tmp_path / "w.taskgraph.json"), str(tmp_path / "net.cluster.json")
    assert ask("trace", "import", workload, "--output", out, "--servers", 4)["world"] == 4
    assert main(["trace", "import", str(net), "--cluster", cluster]) == 0
    assert load_cluster(Path(cluster).read_bytes(), cluster).servers == 4
    for command, said in (
        (["import", str(net)], "a network becomes a cluster"),
        (["import", str(workload), str(net), "--output", out], "give files of one"),
        (["import", str(workload), "--output", out, "--servers", "60000"], "give fewer --servers"),
    ):
        assert main(["trace", *command]) in (1, 2)
        assert said in capsys.readouterr().err


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("run")
    for name, data in recordings(JOBS["experts"](layers=1), 100.0, Style()).items():
        (into / f"{name}.gz").write_bytes(gzip.compress(data, 1))
    (into / "notes.txt").write_text("not a trace")
    return into


def test_inspect_takes_the_ranks_that_are_chosen(folder: Path, ask: Any) -> None:
    record = ask("trace", "inspect", folder, "--ranks", "0,2-3")
    assert [one["step"] for one in record["steps"]] == [5, 6, 7]
    assert [one["rank"] for one in record["files"]] == [0, 2, 3]
    assert any("rank 1 of 4 is absent" in line for line in record["warnings"])


def test_import_writes_a_graph_a_cluster_and_a_report_that_fit(
    folder: Path, tmp_path: Path, ask: Any
) -> None:
    graph, cluster, report = (
        tmp_path / name for name in ("x.taskgraph.json", "x.cluster.json", "x.report.json")
    )
    files = ("--output", graph, "--cluster", cluster, "--report", report)
    answer = ask("trace", "import", folder, *files)
    written = json.loads(report.read_text())
    assert answer.pop("manifest")["inputs"].keys().isdisjoint({str(graph), str(report)})
    del written["manifest"]
    assert answer == written | {"output": str(graph)}
    loaded = load_graph(graph.read_bytes(), graph.name)
    fits = load_cluster(cluster.read_bytes(), cluster.name)
    check_fits(loaded, fits)
    assert loaded.digest == written["digest"] and loaded.name == "x"
    assert fits.servers == 4 and fits.ports_per_server * fits.port_gbps == 400.0
    run = ask("compare", graph, cluster, "--fabrics", "ideal")["fabrics"]["ideal"]
    assert run["iteration_ms"] == pytest.approx(written["replay_ms"]["400_gbps"], rel=1e-6)


@pytest.mark.parametrize(
    ("command", "code", "line"),
    [
        (["import", "FOLDER"], 2, "--output"),
        (["inspect", "EMPTY/absent.json"], 2, "cannot be read: no such file"),
        (["inspect", "EMPTY"], 2, "holds no .json"),
        (
            ["import", "FOLDER", "--output", "EMPTY/y.taskgraph.json", "--max-tasks", "10"],
            1,
            "give --ranks or --max-tasks",
        ),
        (
            ["import", "FOLDER", "--output", "EMPTY/y.taskgraph.json", "--nic-gbps", "-1"],
            2,
            "command line, field --nic-gbps: must be from 1e-06 to 1e+12 (got -1)",
        ),
        (["import", "FOLDER", "--output", "EMPTY/y.taskgraph.json", "--step", "x"], 2, "step"),
    ],
)
def test_mistakes_end_with_2_and_refusals_with_1(
    command: list[str],
    code: int,
    line: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [w.replace("FOLDER", str(folder)).replace("EMPTY", str(tmp_path)) for w in command]
    assert main(["trace", *words]) == code
    assert line in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_window_ends_when_the_last_rank_is_there() -> None:
    """Two kinds of traffic in turn; rank 1 computes longer, so that rank 0 waits in its kernels."""
    exchange = Call("a", "all_to_all", (0, 1), 10_000_000, 20, "e", "expert")
    gradients = Call("b", "all_reduce", (0, 1), 10_000_000, 20, "d", "ddp")
    program: dict[int, list[Op]] = {
        rank: [
            *(Kernel(100.0 + 400.0 * rank), exchange, Wait("a")),
            *(Kernel(1_100.0 + 400.0 * rank), gradients, Wait("b"), Kernel(50.0)),
        ]
        for rank in (0, 1)
    }
    files = recordings(program, 100.0, Style(steps=2, offsets_us=(0.0, 3e5)))
    settings = ImportSettings()
    found = windows_of_step(step_of(read_run(sources(files), settings), settings), {})
    (one,) = found.windows
    assert (one.before, one.after, one.operation, one.rank) == ("ep", "dp", "all_reduce", 0)
    # From the exchange to when rank 1 is there, though rank 0's own kernel begins earlier.
    assert one.length_ms == pytest.approx(1.5, abs=1e-6)
    assert sorted(w.length_ms for w in found.naive) == pytest.approx([1.1, 1.5], abs=1e-6)
