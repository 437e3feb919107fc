"""Opus's table 3: how many GPUs each optical switch can join, and how fast it switches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topox_core.papers.card import Card, Choice, Row, Settings
from topox_core.papers.claim import Claim, Reading
from topox_core.papers.direct import direct, printed, row_of, unprinted
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import Simulation
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS
from topox_core.rails.technologies import SCALE_UP, TECHNOLOGIES, gpus
from topox_core.text.numbers import short

NAME = "opus-switches"
# Table 3 of arXiv 2507.08119: GPUs with GB200 (72 in a scale-up domain) and with H200 (8).
PRINTED = {
    "plzt": (576, 64),
    "sip": (1_152, 128),
    "rotornet": (4_608, 512),
    "mems": (11_520, 1_280),
    "piezo": (20_736, 2_304),
    "lc": (18_432, 2_048),
    "robotic": (36_288, 4_032),
}
PRINTED_MAX = 36_000  # "can scale up to 36K GPUs", section 4.2
SERIES = {
    "GB200": "GPUs, GB200",
    "H200": "GPUs, H200",
    "most": "Largest",
    "longer": "Longer iteration",
}
CHOICES = (
    Choice(
        "control",
        "Circuits of the next group",
        "When they are asked for, in the last series.",
        ((1, "as soon as the traffic before has ended"), (0, "when they are needed")),
        1,
    ),
)


def _rows(settings: Settings) -> Iterator[Row]:
    for column, (machine, scale_up) in enumerate(SCALE_UP.items()):
        for one in TECHNOLOGIES:
            yield printed(
                machine,
                one.name,
                f"{one.vendor}, {one.radix:,} ports",
                PRINTED[one.key][column],
                gpus(one, scale_up),
                f"{scale_up} GPUs of a scale-up domain times half of {one.radix:,} ports.",
                unit="GPUs",
            )
    largest = max(TECHNOLOGIES, key=lambda one: one.radix)
    yield printed(
        "most",
        "Largest network",
        f"{largest.name}, GB200",
        PRINTED_MAX,
        gpus(largest, SCALE_UP["GB200"]),
        f"Printed as 36K; that switch takes {largest.reconfiguration_ms / 60_000:g} minutes to change.",
        unit="GPUs",
    )
    preset = PRESETS["llama3-8b-perlmutter"]
    simulation = Simulation(build(preset), Rail(nic_gbps=preset.machine.nic_gbps))
    for one in TECHNOLOGIES:
        longer = (
            simulation.both_ms(one.reconfiguration_ms)[int(settings["control"])]
            / simulation.undisturbed_ms
            - 1
        )
        yield unprinted(
            "longer",
            one.name,
            f"{short(one.reconfiguration_ms)} ms a change",
            100 * longer,
            "Llama 3 8B on 16 A100 (section 3.1), simulated with this switch; the paper prints no number.",
            unit="%",
        )


def _words(rows: Sequence[Row]) -> tuple[str, tuple[str, ...]]:
    same = sum(row.theirs == row.ours for row in rows if row.series in SCALE_UP)
    robotic, piezo = (row_of(rows, "longer", name).ours for name in ("Robotic", "Piezo"))
    return (
        f"Scale-up domain times half the ports is arithmetic: it gives {same} of {len(TECHNOLOGIES) * len(SCALE_UP)} printed "
        f"numbers of GPUs. On the paper’s own job Piezo adds {piezo:.2g} % to the iteration, the largest switch {robotic:,.0f} %.",
        (
            "36K GPUs need the robotic switch, whose two minutes are longer than an iteration: inside a job the largest "
            f"network is Piezo’s, {gpus(TECHNOLOGIES[4], 72):,} GPUs.",
        ),
    )


CARD = Card(
    name=NAME,
    title="Optical switches",
    source="Photonic Rails (arXiv 2507.08119), section 4.2, Table 3",
    shows="GPUs that one optical switch a rail can join, by technology and scale-up domain, beside its reconfiguration time.",
    choices=CHOICES,
    series=SERIES,
    row_count=3 * len(TECHNOLOGIES) + 1,
    play=direct(NAME, _rows, _words),
    logarithmic=True,
    kinds=dict.fromkeys(
        (*SCALE_UP, "most"), ("arithmetic", "Table 3's formula on the ports that it prints.")
    ),
)
CLAIMS = (
    Claim(
        NAME,
        "Photonic rails join up to 36K GPUs",
        PRINTED_MAX,
        Reading("most", lambda rows: rows[0].ours, 36_288),
        unit="\u00a0GPUs",
    ),
)
