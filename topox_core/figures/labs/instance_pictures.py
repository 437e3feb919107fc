"""What a screen of a lab shows: every figure that its file names, drawn of its instance; here its circuits and traffic.

No figure shows a value that is still asked for (:func:`topox_core.labs.classroom.student.still_asked`), and
before the first reveal of an instance none shows anything that is computed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from topox_core.figures.labs import hand_schedules, instance_numbers
from topox_core.figures.labs.picture import Asking, Picture
from topox_core.figures.networks.crossover import over_delay
from topox_core.figures.networks.topology import hops, ring
from topox_core.labs.generators.fixed_circuits import PORTS, Mix, Pairs
from topox_core.labs.generators.four_jobs import FourJobs
from topox_core.labs.generators.rails import Price, Windows
from topox_core.labs.generators.turns import SERVERS, Turns
from topox_core.labs.lab import Screen, Slider
from topox_core.text.numbers import short
from topox_core.topology.ring_circuits import Frame, LayoutStep, LinkSet, frames, ring_pairs

# Sizes at which both fabrics of instance *mix* are simulated, besides the slider's own.
SIZES = 9
_AHEAD = ("provisioned_10", "moved", "cross_provisioned")
_FOUR_PORTS = ("change", "port_taken", "cross_four")


def circuits(asking: Asking, one: Turns) -> list[Picture]:
    """Return who sends to whom in each step of instance *turns*."""
    members = tuple(range(SERVERS))
    sets = tuple(
        LinkSet(
            asking.say("circuits.step", step=k, stride=stride),
            "ring",
            tuple(ring_pairs(members, (stride,))),
        )
        for k, stride in enumerate(one.strides)
    )
    return [
        asking.picture(
            "circuits",
            ring(Frame(LayoutStep("choose", ""), "", sets, ()), SERVERS, (), asking.theme),
            asking.table(("name", "circuits"), [(s.name, _pairs_words(s)) for s in sets]),
            servers=SERVERS,
            steps="; ".join(f"{s.name}: {_pairs_words(s)}" for s in sets),
        )
    ]


def _pairs_words(links: LinkSet) -> str:
    return ", ".join(f"S{a} → S{b}" for a, b in links.pairs)


def layout(asking: Asking, one: Pairs) -> list[Picture]:
    """Return TopologyFinder's layout of instance *pairs*, as far as the step the slider is on; then its hops."""
    slider = asking.screen.slider
    by_degree = slider is not None and slider.key == "degree" and asking.value is not None
    degree = int(asking.value or PORTS) if by_degree else PORTS
    laid = one.layout(degree)
    steps = frames(laid)
    if by_degree or asking.value is None:
        shown, note = (
            Frame(steps[-1].step, "", (), steps[-1].circuits_laid),
            asking.say("layout.note_all", degree=degree),
        )
    else:
        shown, note = steps[min(int(asking.value), len(steps) - 1)], asking.say("layout.note")
        note = f"{shown.words} ({note})" if shown.words else note
    if by_degree and not asking.hides("tax", "tax_two"):
        note = asking.say("layout.tax", degree=degree, tax=f"{one.tax(degree):.4g}")
    every = (*shown.laid, *shown.added)
    pictures = [
        asking.picture(
            "layout",
            ring(shown, one.servers, (), asking.theme),
            asking.table(
                ("name", "circuits"), [(links.name, _pairs_words(links)) for links in every]
            ),
            note,
            servers=one.servers,
            names=", ".join(links.name for links in every) or "–",
        )
    ]
    if not asking.hides("hops", "tax", "tax_two"):
        matrix = laid.network.hop_matrix()
        most, n = laid.hops.diameter, len(matrix)
        counted = [(f"S{s}", *(int(v) for v in matrix[s])) for s in range(n)]
        pictures.append(
            asking.picture(
                "hops",
                hops(np.asarray(matrix), most, asking.theme),
                asking.table(("server",), counted, [f"S{s}" for s in range(n)]),
                servers=n,
                most=most,
            )
        )
    return pictures


def delay_lines(asking: Asking, one: Turns) -> list[Picture]:
    """Return the iteration of instance *turns* over the delay; circuits ahead of time once they were asked about."""
    slider, now = asking.screen.slider, float(asking.value or 0.0)
    delays = sorted({*(slider.values if slider else ()), 0.0, 20.0, now})
    values = {
        "static": [float(one.static_ms)] * len(delays),
        "reactive": [float(one.reactive_ms(delay)) for delay in delays],
    }
    if not asking.hides(*_AHEAD):
        values["provisioned"] = [float(one.provisioned_ms(delay)) for delay in delays]
    labels = {name: asking.say(f"delay.{name}") for name in values}
    return [_lines(asking, "delay", delays, values, labels, now, "delay")]


def size_lines(asking: Asking, one: Mix) -> list[Picture]:
    """Return both fabrics of instance *mix* over the size of the all-to-all; four ports once they were asked about."""
    slider, now = asking.screen.slider, float(asking.value or 0.0)
    last = slider.values[-1] if slider else 2.0 * one.sum_mb
    sizes = sorted({round(last * k / (SIZES - 1)) for k in range(SIZES)} | {round(now)})
    values: dict[str, list[float]] = {}
    for ports in (2,) if asking.hides(*_FOUR_PORTS) else (2, 4):
        more = "" if ports == 2 else ":4"
        times = [one.times_ms(size, ports) for size in sizes]
        values[f"static{more}"] = [static for static, _ in times]
        values[f"fat_tree{more}"] = [fat_tree for _, fat_tree in times]
    labels = {name: asking.say(f"lines.{name.replace(':', '')}") for name in values}
    return [
        _lines(asking, "lines", [*map(float, sizes)], values, labels, float(round(now)), "size")
    ]


def _lines(
    asking: Asking,
    kind: str,
    over: Sequence[float],
    values: Mapping[str, Sequence[float]],
    labels: Mapping[str, str],
    now: float,
    column: str,
) -> Picture:
    at = list(over).index(now)
    said = "; ".join(f"{labels[name]} {short(values[name][at])} ms" for name in values)
    rows = [(f"{x:g}", *(f"{values[name][k]:.6g}" for name in values)) for k, x in enumerate(over)]
    return asking.picture(
        kind,
        over_delay(over, values, labels, now, asking.theme, asking.say(f"{kind}.axis")),
        asking.table((column,), rows, [f"{labels[name]} (ms)" for name in values]),
        **{column: f"{now:g}"},
        values=said,
    )


# What draws a figure: of the instances of one generator alone, none while one of these values is
# asked for.
Part = tuple[type, tuple[str, ...], Callable[[Asking, Any], list[Picture]]]
# Figures of the instance alone; the table of what is given stands beside every screen.
_GIVEN: Mapping[str, tuple[Part, ...]] = {
    "hand_gantt": ((object, (), hand_schedules.by_hand),),
    "circuits": ((Turns, (), circuits),),
    "windows": ((Windows, (), instance_numbers.windows),),
    "round": ((FourJobs, (), instance_numbers.moves),),
}
_COMPUTED: Mapping[str, tuple[Part, ...]] = {
    "gantt": ((object, (), hand_schedules.plans),),
    "bound": ((object, (), hand_schedules.bounds),),
    "topology_steps": ((Pairs, (), layout),),
    "delay_curve": (
        (Turns, ("free", "static", "cross_reactive"), delay_lines),
        (
            Windows,
            ("ahead", "ahead_percent", "on_demand", "slowest_ahead", "slowest_on_demand"),
            instance_numbers.delay_costs,
        ),
    ),
    "two_lines": ((Mix, ("cross", "faster", "static_alone", "slope"), size_lines),),
    "cdf": ((Windows, ("share_longer",), instance_numbers.cdf),),
    "all_rounds": ((FourJobs, ("best",), instance_numbers.every_round),),
    "cost_bars": ((Price, ("photonic", "rail_only"), instance_numbers.bills),),
    "tornado": ((Price, ("mover", "saving"), instance_numbers.swings),),
}


def pictures_of(asking: Asking) -> list[Picture]:
    """Return the figures of a screen, in the order its file names them."""
    known = {**_GIVEN, **(_COMPUTED if asking.computed else {})}
    return [
        picture
        for name in asking.screen.show
        for kind, untold, draw in known.get(name, ())
        if asking.instance is not None and isinstance(asking.instance, kind)
        if not asking.hides(*untold)
        for picture in draw(asking, asking.instance)
    ]


def slider_of(screen: Screen, instance: object) -> Slider | None:
    """Return what can be moved on a screen: what its file says, or the steps of a layout."""
    if screen.slider is not None or screen.stage != "reveal":
        return screen.slider
    if "topology_steps" not in screen.show or not isinstance(instance, Pairs):
        return None
    steps = len(frames(instance.layout(PORTS)))
    return Slider("step", tuple(map(float, range(steps))))
