"""TopoOpt's figure 11: a cluster dedicated to one job, model by model."""

from statistics import geometric_mean

from topox_core.papers.card import Call, CardRun, Rows
from topox_core.papers.rows import LEVEL, TREND, Verdict
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


def rows(run: CardRun) -> Rows:
    times = {
        words: {fabric: run.answers[words, fabric] for fabric in FABRICS}
        for words in MODELS
        if all((words, fabric) in run.answers for fabric in FABRICS)
    }
    data = {
        words: {f"{name}_ms": ms for name, ms in point.items()} for words, point in times.items()
    }
    behind = {words: point["fat_tree"] / point["static"] for words, point in times.items()}
    share = float(run.settings["fat_tree"])
    for words, ours in behind.items():
        verdict, why = _over_fat_tree(ours, share)
        yield run.row("fat_tree", words, ours, verdict=verdict, data=data[words], why=why)
    if len(times) == len(MODELS):
        model = max(behind, key=behind.__getitem__)
        needs = 1 / run.card.printed["fat_tree/largest"]
        most, limit = behind[model], 1 / share
        yield run.row("fat_tree", "largest", most, model=model, limit=limit, needs=needs)
    for words, point in times.items():
        near = point["static"] / point["ideal"]
        verdict = "not printed" if near <= 1 + TREND else "differs"
        yield run.row("ideal", words, near, verdict=verdict, data=data[words])


def _over_fat_tree(behind: float, share: float) -> tuple[Verdict, str]:
    """Return how a fat-tree's time over that of fixed circuits counts, and why."""
    if behind < 1 - 1e-9:
        return "differs", "the fat-tree is ahead here."
    clear: Verdict = "trend" if behind > 1 + LEVEL else "not printed"
    if behind < 1.1:
        return clear, "the job computes longer than it sends, so the network hardly counts."
    return clear, f"all of d × B carries the rings where the fat-tree has {share:g} of it."


def said(run: CardRun) -> dict[str, str | float]:
    ratio = {row.item: row.ours for row in run.of("fat_tree") if row.item in MODELS}
    same = [name for name, value in ratio.items() if value < 1.1]
    return {
        "mean": geometric_mean(ratio.values()),
        "rest": f" {', '.join(same)} hardly depend on the network." if same else "",
    }
