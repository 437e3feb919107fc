"""What a lab's screen shows: every figure that its file names, drawn of the screen's instance.

No figure shows a value that is still asked for (:func:`topox_core.labs.student.still_asked`), and
before the first reveal of an instance none shows anything that is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from topox_core.figures import instance_jobs, instance_rails, instance_schedules, instance_traffic
from topox_core.figures.picture import Asking, Picture
from topox_core.labs.lab import Screen, Slider

Draw = Callable[[Asking], list[Picture]]


def _delay_curve(asking: Asking) -> list[Picture]:
    return instance_traffic.delay_lines(asking) or instance_rails.delay_costs(asking)


# Figures of the instance alone; the table of what is given stands beside every screen.
_GIVEN: Mapping[str, Draw] = {
    "hand_gantt": instance_schedules.by_hand,
    "circuits": instance_traffic.circuits,
    "windows": instance_rails.windows,
    "round": instance_jobs.moves,
}
_COMPUTED: Mapping[str, Draw] = {
    "gantt": lambda asking: instance_schedules.plans(asking, "bound" in asking.screen.show),
    "bound": instance_schedules.bounds,
    "topology_steps": instance_traffic.layout,
    "delay_curve": _delay_curve,
    "two_lines": instance_traffic.size_lines,
    "cdf": instance_rails.cdf,
    "all_rounds": instance_jobs.every_round,
    "cost_bars": instance_jobs.bills,
    "tornado": instance_jobs.swings,
}


def pictures_of(asking: Asking) -> list[Picture]:
    """Return the figures of a screen, in the order its file names them."""
    if asking.instance is None:
        return []
    known = {**_GIVEN, **(_COMPUTED if asking.computed else {})}
    return [one for name in asking.screen.show if name in known for one in known[name](asking)]


def slider_of(screen: Screen, instance: object) -> Slider | None:
    """Return what can be moved on a screen: what its file says, or the steps of a layout."""
    if screen.slider is not None or screen.stage != "reveal":
        return screen.slider
    steps = instance_traffic.layout_steps(instance) if "topology_steps" in screen.show else 0
    return Slider("step", tuple(map(float, range(steps)))) if steps else None
