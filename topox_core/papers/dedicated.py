"""TopoOpt's figure 11: a cluster dedicated to one job, model by model."""

from __future__ import annotations

from collections.abc import Mapping

from topox_core.papers.calls import Call, answers
from topox_core.papers.card import (
    LEVEL,
    TREND,
    Answer,
    Card,
    Choice,
    OnRow,
    Row,
    Settings,
    Verdict,
    counted_verdicts,
    geometric_mean,
    judged,
)
from topox_core.papers.switches import SHARE, SPEED, VARIANT
from topox_core.papers.topoopt_jobs import iteration_ms, network, rival_fabrics
from topox_core.runs.stopping import Stop

DEGREE = 4
PRINTED_MAX = 3.4
# Words and the catalogue's names at 16 and at 128 servers.
MODELS = {
    "DLRM": ("dlrm-16", "dlrm-128"),
    "CANDLE Uno": ("candle-16", "candle-128"),
    "BERT": ("bert-16", "bert-128"),
    "NCF": ("ncf", "ncf"),
    "ResNet50": ("resnet50", "resnet50"),
    "VGG16": ("vgg16-measured", "vgg16"),
}
FABRICS = ("static", "ideal", "fat_tree")
SERIES = {"fat_tree": "Fat-tree over TopoOpt", "ideal": "TopoOpt over ideal switch"}
CHOICES = (
    Choice(
        "servers",
        "Servers",
        "Size of the cluster; the paper has 128.",
        ((128, "128"), (16, "16")),
        128,
    ),
    SPEED,
    SHARE,
    VARIANT,
)


def _play(settings: Settings, stop: Stop, on_row: OnRow) -> Answer:
    lost: list[str] = []
    servers = int(settings["servers"])
    cluster = network(servers, DEGREE, float(settings["port_gbps"]))
    options = rival_fabrics(settings, cluster)
    calls = [
        Call(
            (words, fabric), iteration_ms, (names[servers == 128], cluster, fabric, options[fabric])
        )
        for words, names in MODELS.items()
        for fabric in FABRICS
    ]
    times: dict[str, dict[str, float]] = {}
    rows: list[Row] = []
    for (words, fabric), time in answers(calls, stop, lost):
        times.setdefault(words, {})[fabric] = time
        if len(times[words]) == len(FABRICS):
            for row in _rows(words, times[words], settings):
                rows.append(row)
                on_row(row)
    full = {words: times[words] for words in MODELS if len(times.get(words, {})) == len(FABRICS)}
    rows = [
        row
        for key in SERIES
        for words in MODELS
        for row in rows
        if (row.series, row.item) == (key, words)
    ]
    if len(full) == len(MODELS):
        rows.insert(len(MODELS), _most(full, settings))
        on_row(rows[len(MODELS)])
    return CARD.answer(settings, rows, _finding(full), _remarks(full, rows, settings), lost)


def _about(settings: Settings) -> str:
    return f"{settings['servers']} servers, {DEGREE} × {settings['port_gbps']} Gbit/s"


def _rows(words: str, point: Mapping[str, float], settings: Settings) -> list[Row]:
    behind, near = point["fat_tree"] / point["static"], point["static"] / point["ideal"]
    data = {f"{name}_ms": time for name, time in point.items()}
    wins = behind >= 1 - 1e-9
    clear: Verdict = "trend" if behind > 1 + LEVEL else "not printed"
    why = (
        "the job computes longer than it sends, so the network hardly counts."
        if behind < 1.1
        else f"all of d × B carries the rings where the fat-tree has {float(settings['fat_tree']):g} of it."
    )
    return [
        Row(
            "fat_tree",
            words,
            _about(settings),
            None,
            behind,
            clear if wins else "differs",
            f"No number is printed for the model; {why if wins else 'the fat-tree is ahead here.'}",
            data=data,
        ),
        Row(
            "ideal",
            words,
            _about(settings),
            None,
            near,
            "not printed" if near <= 1 + TREND else "differs",
            "No number is printed: in the paper TopoOpt is close to the ideal switch, and no fabric can be ahead of it.",
            data=data,
        ),
    ]


def _most(full: Mapping[str, Mapping[str, float]], settings: Settings) -> Row:
    words, value = max(
        ((name, point["fat_tree"] / point["static"]) for name, point in full.items()),
        key=lambda pair: pair[1],
    )
    share = float(settings["fat_tree"])
    return Row(
        "fat_tree",
        "largest",
        words,
        PRINTED_MAX,
        value,
        judged(PRINTED_MAX, value, level=1.0),
        f"A fat-tree of {share:g} × d × B can be at most {1 / share:.2f}× as slow as circuits that lose nothing; 3.4× "
        f"needs {1 / PRINTED_MAX:.2f} × d × B or less, which a list of prices decides.",
    )


def _finding(full: Mapping[str, Mapping[str, float]]) -> str:
    if len(full) < len(MODELS):
        return "Not all models were computed."
    ratio = {name: point["fat_tree"] / point["static"] for name, point in full.items()}
    best = max(ratio, key=lambda name: ratio[name])
    same = [name for name, value in ratio.items() if value < 1.1]
    rest = f" {', '.join(same)} hardly feel the network." if same else ""
    return (
        f"Fixed circuits are up to {ratio[best]:.2f}× faster than a fat-tree of similar cost ({best}; printed: up to "
        f"3.4×), {geometric_mean(ratio.values()):.2f}× in the geometric mean.{rest}"
    )


def _remarks(
    full: Mapping[str, Mapping[str, float]], rows: list[Row], settings: Settings
) -> tuple[str, ...]:
    if not full:
        return ()
    return (
        f"{counted_verdicts(rows)}. The bars of the figure cannot be read to two digits, so only its largest factor is "
        "judged as a number.",
        "Every job is data parallel with tables spread over servers; the paper searches a strategy for each network. "
        "Operator times are measured where they were published for the size, a roofline elsewhere.",
        f"The fat-tree's NIC is {float(settings['fat_tree']):g} of d × B, a switch of this card: the prices behind the "
        "paper's choice are not printed.",
    )


CARD = Card(
    name="topoopt-dedicated",
    title="One job",
    source="TopoOpt (NSDI 2023), section 5, Figure 11",
    shows="Iteration time of six models on 128 servers of degree 4: circuits fixed by TopologyFinder are up to 3.4 times "
    "faster than a fat-tree of similar cost and close to an ideal switch.",
    choices=CHOICES,
    series=SERIES,
    row_count=2 * len(MODELS) + 1,
    play=_play,
    takes_s=7.0,
)
