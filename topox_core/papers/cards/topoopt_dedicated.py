"""TopoOpt's figure 11: a cluster dedicated to one job, model by model."""

from collections.abc import Iterator, Mapping
from statistics import geometric_mean

from topox_core.papers.card import Call, CardRun
from topox_core.papers.rows import (
    LEVEL,
    TREND,
    Row,
    Verdict,
    judged,
)
from topox_core.papers.topoopt_jobs import iteration_ms, network, rival_fabrics

DEGREE = 4
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
# Of a model: an iteration on each fabric, in ms.
Times = Mapping[str, float]


def calls(run: CardRun) -> list[Call]:
    """Return a call for every model and fabric."""
    servers = int(run.settings["servers"])
    cluster = network(servers, DEGREE, float(run.settings["port_gbps"]))
    options = rival_fabrics(run.settings, cluster)
    return [
        Call(
            (words, fabric), iteration_ms, (names[servers == 128], cluster, fabric, options[fabric])
        )
        for words, names in MODELS.items()
        for fabric in FABRICS
    ]


def rows(run: CardRun) -> Iterator[Row]:
    times: dict[str, Times] = {
        words: {fabric: run.answers[words, fabric] for fabric in FABRICS}
        for words in MODELS
        if all((words, fabric) in run.answers for fabric in FABRICS)
    }
    for words, point in times.items():
        yield _over_fat_tree(words, point, run)
    if len(times) == len(MODELS):
        yield _most(times, run)
    for words, point in times.items():
        near = point["static"] / point["ideal"]
        yield Row(
            "ideal",
            words,
            _about(run),
            None,
            near,
            "not printed" if near <= 1 + TREND else "differs",
            "No number is printed: in the paper TopoOpt is close to the ideal switch, and no fabric can be ahead of it.",
            data=_data(point),
        )


def _about(run: CardRun) -> str:
    return f"{run.settings['servers']} servers, {DEGREE} × {run.settings['port_gbps']} Gbit/s"


def _data(point: Times) -> dict[str, float]:
    return {f"{name}_ms": time for name, time in point.items()}


def _over_fat_tree(words: str, point: Times, run: CardRun) -> Row:
    behind = point["fat_tree"] / point["static"]
    wins = behind >= 1 - 1e-9
    clear: Verdict = "trend" if behind > 1 + LEVEL else "not printed"
    why = (
        "the job computes longer than it sends, so the network hardly counts."
        if behind < 1.1
        else f"all of d × B carries the rings where the fat-tree has {float(run.settings['fat_tree']):g} of it."
    )
    return Row(
        "fat_tree",
        words,
        _about(run),
        None,
        behind,
        clear if wins else "differs",
        f"No number is printed for the model; {why if wins else 'the fat-tree is ahead here.'}",
        data=_data(point),
    )


def _most(times: Mapping[str, Times], run: CardRun) -> Row:
    behind = {name: point["fat_tree"] / point["static"] for name, point in times.items()}
    words = max(behind, key=lambda name: behind[name])
    theirs, share = run.card.printed["fat_tree/largest"], float(run.settings["fat_tree"])
    return Row(
        "fat_tree",
        "largest",
        words,
        theirs,
        behind[words],
        judged(theirs, behind[words], level=1.0),
        f"A fat-tree of {share:g} × d × B can be at most {1 / share:.2f}× as slow as circuits that lose nothing; {theirs:g}× "
        f"needs {1 / theirs:.2f} × d × B or less, which a list of prices decides.",
    )


def said(run: CardRun) -> dict[str, str | float]:
    ratio = {row.item: row.ours for row in run.of("fat_tree") if row.item in MODELS}
    same = [name for name, value in ratio.items() if value < 1.1]
    return {
        "mean": geometric_mean(ratio.values()),
        "rest": f" {', '.join(same)} hardly depend on the network." if same else "",
        "share": float(run.settings["fat_tree"]),
    }
