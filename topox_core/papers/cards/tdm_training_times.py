"""The TDM drafts' table III and equation 8: sizes of the models, training times, and the ports that they are given."""

from collections.abc import Iterator
from dataclasses import replace

from topox_core.papers.card import CardRun
from topox_core.papers.rows import Row, directed, printed, unprinted
from topox_core.tdm.mixes.deployment import MODELS, SetUp, deploy
from topox_core.tdm.model.jobs import PodNetwork
from topox_core.tdm.model.rounds import round_of
from topox_core.tdm.model.traffic import StageTable, TooFewPortsError
from topox_core.training.shape import SHAPES, Shape

# Section IV.A of draft 003: pods, optical switches, ports of each, pods of a group, ports of a pod,
# and bandwidth of a pod's ports over that of its servers.
PODS, SWITCHES, SWITCH_PORTS, GROUP, POD_PORTS, OVERSUBSCRIPTION = 256, 32, 128, 8, 16, 1.0
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


def rows(run: CardRun) -> Iterator[Row]:
    for name, model in MODELS.items():
        shape = _SMALL if (name, run.settings["third"]) == ("8B", "8B") else SIZES[name]
        yield printed(
            "size",
            name,
            f"{shape.title}, {shape.parameters / 1e9:.3g} billion weights of 2 bytes",
            model.table_gb,
            shape.parameters * WEIGHT_BYTES / 1e9,
            "Counted from the shape of the model; the images' encoder of the two largest is not counted.",
            unit="GB",
        )
    setup = SetUp(context=int(run.settings["context"]), literal_eq8=run.settings["unit"] == "gpu")
    for name, model in MODELS.items():
        gpus = 1 if setup.literal_eq8 else model.gpus_per_unit
        yield unprinted(
            "train",
            name,
            f"{gpus} GPU{'s' if gpus > 1 else ''}, {setup.context:,} tokens",
            setup.train_s(model),
            "8 × tokens × weights over 26 TFLOPS × 0.4; the drafts print no training time.",
            unit="s",
        )
    yield from _ports(setup.network())
    yield from _fit(setup)


def _ports(network: PodNetwork) -> Iterator[Row]:
    pods = network.pod_groups * network.pods_per_group
    of_group = network.pods_per_group * network.ports_per_pod
    for item, about, theirs, ours, reason in (
        ("pods", "all groups", PODS, pods, f"{network.pod_groups} groups of {GROUP}."),
        (
            "optical switches",
            f"{SWITCH_PORTS} ports each",
            SWITCHES,
            pods * network.ports_per_pod / SWITCH_PORTS,
            f"{pods} pods with {POD_PORTS} ports each.",
        ),
        (
            "ports of a switch",
            "one switch a group",
            SWITCH_PORTS,
            of_group,
            f"{GROUP} pods with {POD_PORTS} ports each.",
        ),
        (
            "oversubscription",
            "ports over servers",
            OVERSUBSCRIPTION,
            network.ports_per_pod * network.port_gbps / network.tor_gbps,
            f"{POD_PORTS} × {network.port_gbps:g} Gbit/s against {network.tor_gbps:,g} Gbit/s to the servers.",
        ),
    ):
        yield printed("ports", item, about, theirs, ours, reason)


def _fit(setup: SetUp) -> Iterator[Row]:
    """Yield whether all jobs at once find a link for every pair that talks, as the drafts assume."""
    full = 2 * (GROUP - 1)
    yield directed(
        "mesh",
        "ports of a full mesh",
        f"{GROUP} pods, one link each way",
        full <= POD_PORTS,
        full,
        f"“To ensure that Algorithm 1 satisfies the constraints on the number of OXC ports in initial scenarios”: a pod "
        f"needs at most {full} of its {POD_PORTS}.",
        unit="ports",
    )
    fitting = 0
    for seed in SEEDS:
        jobs = deploy(replace(setup, jobs=JOBS, seed=seed))
        try:
            round_of(StageTable(jobs), (0,) * len(jobs))
        except TooFewPortsError:
            continue
        fitting += 1
    yield directed(
        "fit",
        "draws that fit",
        f"{JOBS} jobs at once, {len(SEEDS)} seeds",
        fitting == len(SEEDS),
        100 * fitting / len(SEEDS),
        "Every pair of pods that talks gets a link in the first stage.",
        unit="%",
    )


def said(run: CardRun) -> dict[str, Row | float]:
    furthest = max(run.of("size"), key=lambda row: abs(row.deviation or 0.0))
    return {"furthest": furthest, "smaller": 100 * abs(furthest.deviation or 0.0)}
