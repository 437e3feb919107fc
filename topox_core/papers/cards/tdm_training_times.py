"""The TDM drafts' table III and equation 8: sizes of the models, training times, and the ports that they are given."""

from dataclasses import replace

from topox_core.papers.card import CardRun, Rows
from topox_core.papers.rows import Row
from topox_core.tdm.mixes.deployment import MODELS, SetUp, deploy
from topox_core.tdm.model.rounds import round_of
from topox_core.tdm.model.traffic import StageTable, TooFewPortsError
from topox_core.training.shape import SHAPES, Shape

# Section IV.A of draft 003: ports of an optical switch, pods of a group, ports of a pod.
SWITCH_PORTS, GROUP, POD_PORTS = 128, 8, 16
WEIGHT_BYTES = 2  # BF16, as the models are published
PUBLISHED = "Llama 3.2 model cards (Meta, 2024)"
_BIG, _SMALL = SHAPES["llama3-70b"], SHAPES["llama3-8b"]
# The text model of a vision model is the dense one with a layer of cross-attention for every four.
SIZES: dict[str, Shape] = {
    "1B": Shape(
        "llama3.2-1b", "Llama 3.2 1B", PUBLISHED, 16, 2_048, 32, 512, 8_192, 3, 128_256, 8_192,
        tied=True,
    ),
    "3B": Shape(
        "llama3.2-3b", "Llama 3.2 3B", PUBLISHED, 28, 3_072, 24, 1_024, 8_192, 3, 128_256, 8_192,
        tied=True,
    ),
    "8B": replace(_SMALL, name="llama3.2-11b", title="Llama 3.2 11B, text", layers=40),
    "90B": replace(_BIG, name="llama3.2-90b", title="Llama 3.2 90B, text", layers=100),
}  # fmt: skip
SEEDS = range(5)
JOBS = 512


def rows(run: CardRun) -> Rows:
    for name, model in MODELS.items():
        shape = _SMALL if (name, run.settings["third"]) == ("8B", "8B") else SIZES[name]
        yield run.row(
            "size",
            name,
            shape.parameters * WEIGHT_BYTES / 1e9,
            theirs=model.table_gb,
            shape=shape.title,
            billions=shape.parameters / 1e9,
        )
    setup = SetUp(context=int(run.settings["context"]), literal_eq8=run.settings["unit"] == "gpu")
    for name, model in MODELS.items():
        gpus = 1 if setup.literal_eq8 else model.gpus_per_unit
        words = f"{gpus} GPU{'s' if gpus > 1 else ''}"
        yield run.row("train", name, setup.train_s(model), gpus=words)
    network = setup.network()
    pods = network.pod_groups * network.pods_per_group
    for item, ours in (
        ("pods", pods),
        ("optical switches", pods * network.ports_per_pod / SWITCH_PORTS),
        ("ports of a switch", network.pods_per_group * network.ports_per_pod),
        ("oversubscription", network.ports_per_pod * network.port_gbps / network.tor_gbps),
    ):
        yield run.row("ports", item, ours, pods=pods, network=network)
    # Whether all jobs at once find a link for every pair that talks, as the drafts assume.
    full = 2 * (GROUP - 1)
    yield run.row("mesh", "ports of a full mesh", full, follows=full <= POD_PORTS)
    fitting = sum(_fits(replace(setup, jobs=JOBS, seed=seed)) for seed in SEEDS)
    share = 100 * fitting / len(SEEDS)
    yield run.row("fit", "draws that fit", share, follows=fitting == len(SEEDS))


def _fits(setup: SetUp) -> bool:
    jobs = deploy(setup)
    try:
        round_of(StageTable(jobs), (0,) * len(jobs))
    except TooFewPortsError:
        return False
    return True


def said(run: CardRun) -> dict[str, Row | float]:
    furthest = max(run.of("size"), key=lambda row: abs(row.deviation or 0.0))
    return {"furthest": furthest, "smaller": 100 * abs(furthest.deviation or 0.0)}
