"""Where a headline does not hold: what stands beside the numbers, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from topox_core.economics.comparison import Question
from topox_core.economics.networks import NETWORKS, check_size, limit_per_gpu, saving
from topox_core.errors import InputError

WARNING, NOTE = "warning", "note"


@dataclass(frozen=True)
class Caveat:
    """One caveat: its kind (``warning`` or ``note``), its name, and a sentence."""

    kind: str
    name: str
    text: str


def ports_needed(question: Question) -> int:
    """Return the ports of one rail's optical switch: each server brings those of one GPU."""
    return question.gpus // question.counting.gpus_per_server * question.counting.ocs_ports_per_gpu


def most_gpus(question: Question, radix: int) -> int:
    """Return the GPUs that one optical switch a rail joins (Table 3: scale-up times radix / 2)."""
    return radix // question.counting.ocs_ports_per_gpu * question.counting.gpus_per_server


def caveats_of(
    question: Question, radix: int | None = None, switch: str = "the optical switch"
) -> tuple[Caveat, ...]:
    """Return what does not hold: too few ports, dearer optics, savings that are rounding.

    Parameters
    ----------
    radix
        Ports of the largest optical switch to be had; None skips the question whether it can be
        built.
    switch
        That switch in words.

    Raises
    ------
    InputError
        If the GPUs do not fill whole servers, or the switch has no port.
    """
    if radix is not None and radix < 1:
        raise InputError(f"must be at least 1 (got {radix})", field="radix")
    check_size(question.gpus, question.counting)
    caveats = []
    if radix is not None and ports_needed(question) > radix:
        caveats.append(
            Caveat(
                WARNING,
                "radix",
                (
                    f"{question.gpus:,} GPUs need an optical switch of {ports_needed(question):,} ports on every rail; "
                    f"{switch} has {radix:,}. Up to {most_gpus(question, radix):,} GPUs this can be built."
                ),
            )
        )
    caveats += _dearer(question)
    caveats += _rounding(question)
    optics = _many(question.counting.ocs_transceivers_per_gpu, "transceiver")
    ports = _many(question.counting.ocs_ports_per_gpu, "optical-switch port")
    counted = f"Photonic rails are counted with {optics} and {ports} a GPU."
    left_out = "Bidirectional optics, insertion loss and the control plane are not priced."
    caveats.append(Caveat(NOTE, "not-priced", f"{counted} {left_out}"))
    return tuple(caveats)


def _dearer(question: Question) -> list[Caveat]:
    """Say where photonic rails lose to whole packet switches, whichever counting is chosen."""
    whole = replace(
        question, counting=replace(question.counting, method="whole-switches", joined_rails=False)
    )
    share = whole.saving("photonic_rails", "rail_only", "cost")
    if share < 0:
        servers, ports = (
            question.gpus // question.counting.gpus_per_server,
            question.catalogue.part("packet_switch").ports,
        )
        why = (
            f": one {ports}-port packet switch a rail joins all {servers} servers"
            if servers <= ports
            else ""
        )
        return [
            Caveat(
                WARNING,
                "dearer-than-whole-switches",
                (
                    f"Against whole packet switches, no more of them than needed, photonic rails for {question.gpus:,} GPUs are "
                    f"{-100 * share:.0f} % dearer{why}."
                ),
            )
        ]
    published = question.saving("photonic_rails", "rail_optimized", "cost")
    if question.counting.method == "paper" and published - share > 0.1:
        return [
            Caveat(
                NOTE,
                "whole-switches",
                (
                    f"With whole packet switches and no spine over the rails the saving is {100 * share:.0f} %, not "
                    f"{100 * published:.0f} %."
                ),
            )
        ]
    return []


def _rounding(question: Question) -> list[Caveat]:
    """Say how much of the published saving is the rounding of a fractional radix."""
    if question.counting.method != "paper":
        return []
    limit = saving(
        limit_per_gpu("photonic_rails", question.catalogue, question.counting).cost_usd,
        limit_per_gpu("rail_optimized", question.catalogue, question.counting).cost_usd,
    )
    here = question.saving("photonic_rails", "rail_optimized", "cost")
    if abs(here - limit) < 0.0005:
        return []
    return [
        Caveat(
            NOTE,
            "rounding",
            (
                f"The saving against {NETWORKS['rail_optimized'].lower()} switches is {100 * limit:.2f} % for ever larger "
                f"clusters; the {100 * here:.2f} % here differ by rounding the switches' radix to whole ports."
            ),
        )
    ]


def _many(number: int, noun: str) -> str:
    words = {1: "one", 2: "two", 3: "three", 4: "four"}
    return f"{words.get(number, str(number))} {noun}{'' if number == 1 else 's'}"
