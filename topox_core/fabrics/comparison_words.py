"""Which fabric wins, by how much, and what the next one loses its time to, in plain sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

from topox_core.errors import InputError
from topox_core.fabrics.compare import EQUAL, fastest, same_time, undecided
from topox_core.fabrics.registry import ENTRIES, PAYS_DELAY, SPOKEN
from topox_core.fabrics.run import FabricRun
from topox_core.model.algorithm_choice import RING, RING_KINDS
from topox_core.schedule.result import gap
from topox_core.text.numbers import capitalised, enumeration, time

# The ideal switch is a yardstick that nobody can buy; it wins only where nothing else was run.
YARDSTICK = "ideal"
# Not built for the money of the others: a headline compares those, then says whether this one is as fast.
FULL = "fat_tree_full"
# A mean of hops above this is worth a word; below, nearly every byte goes direct.
NOTABLE_TAX = 1.02
# What the loser has more of, where it is not exposed transfer.
LOSES_BY = {
    "dark": "dark time, in which ports change their circuits",
    "waiting": "waiting for a port, a device or a slot",
    "compute": "compute on the critical path, where the order of tasks is worse",
}


def sentence(runs: Mapping[str, FabricRun]) -> str:
    """Return the headline of a comparison, why the next fabric takes longer, and whether a better plan may yet win.

    The reason is what grows most along the critical path from the winner to the next: dark time,
    exposed transfers, waiting or compute.
    """
    contenders = {name: run for name, run in runs.items() if name != YARDSTICK} or dict(runs)
    if not contenders:
        return "No fabric was run."
    words, first = headline(runs).replace("\u00a0", " "), fastest(contenders)
    winner, *others = sorted(contenders.values(), key=lambda run: run.iteration_ms)
    next_best = next((run for run in others if run.fabric not in first), None)
    if next_best is not None:
        name = next_best.fabric
        has = "have" if ENTRIES[name].plural else "has"
        words += f" {capitalised(SPOKEN[name])} {has} {_reason(winner, next_best)}."
    if undecided(contenders):
        plan = contenders["scheduled"]
        percent = 100 * gap(plan.iteration_ms, plan.bound_ms)
        words += f" The plan has a gap of {percent:.2g} % and may yet win."
    return words


def headline(runs: Mapping[str, FabricRun], spoken: Mapping[str, str] = SPOKEN) -> str:
    """Return whether changing circuits pays at the delay of these runs and by how much, as one would say it aloud.

    Parameters
    ----------
    spoken
        Names of the fabrics within a sentence.
    """
    rest = {name: run for name, run in runs.items() if name != YARDSTICK} or dict(runs)
    contenders = {name: run for name, run in rest.items() if name != FULL} or rest
    first = fastest(contenders)
    winner = min((contenders[name] for name in first), key=lambda run: run.iteration_ms)
    full = rest.get(FULL, winner)
    best = _fastest_of(runs, winner, full)
    slower = [full] if full.iteration_ms > winner.iteration_ms * (1 + EQUAL) else []
    words = _before_full(contenders, first, winner, spoken, best, slower)
    if full is winner or spoken[FULL] in words:
        return words
    told = "takes"
    if full.iteration_ms <= winner.iteration_ms * (1 + EQUAL):
        level = same_time(full.iteration_ms, winner.iteration_ms)
        told = f"is {'as fast' if level else 'faster still'}:"
    return f"{words} {capitalised(spoken[FULL])} {told} {time(full.iteration_ms)}."


def _fastest_of(runs: Mapping[str, FabricRun], winner: FabricRun, full: FabricRun) -> str:
    """Return of what the winner is the fastest: of all, or of less where a switch nobody builds or a dearer network is faster."""
    if full.iteration_ms * (1 + EQUAL) < winner.iteration_ms:
        return "the fastest at this cost"
    ideal = runs.get(YARDSTICK, winner)
    faster = ideal.iteration_ms * (1 + EQUAL) < winner.iteration_ms
    return "the fastest that can be built" if faster else "fastest"


def _before_full(
    contenders: Mapping[str, FabricRun],
    first: Sequence[str],
    winner: FabricRun,
    spoken: Mapping[str, str],
    best: str,
    slower: Sequence[FabricRun],
) -> str:
    """Return the headline of runs among which no full fat-tree is, or nothing else; ``slower``: one that the winner beats."""
    changing = _best_that_switches(contenders, spoken, winner.iteration_ms)
    stays = [name for name in first if not _switches(contenders[name])]
    if stays and changing:
        return (
            f"Switching does not pay here. {capitalised(spoken[stays[0]])} {_verb('need', stays[:1])} "
            f"{time(winner.iteration_ms)}, {changing}."
        )
    names, reached = (
        capitalised(enumeration([spoken[name] for name in first])),
        time(winner.iteration_ms),
    )
    others = [run for name, run in contenders.items() if name not in first]
    if not others:
        equal = len(first) > 1
        return (
            f"It makes no difference: {names[:1].lower()}{names[1:]} take {reached}."
            if equal
            else f"{names} {_verb('take', first)} {reached}."
        )
    beaten = sorted([*others, *slower], key=lambda run: run.iteration_ms)
    told = [run for run in beaten if run is beaten[0] or run.fabric in ("fat_tree", FULL)]
    takes = f"{_verb('take', [beaten[0].fabric])} "
    times = [
        f"{spoken[run.fabric]} {takes * (run is beaten[0])}{time(run.iteration_ms)}" for run in told
    ]
    verb = "is" if _verb("take", first) == "takes" else "are"
    return f"{names} {verb} {best}: {reached}; {enumeration(times)}."


def _switches(run: FabricRun) -> bool:
    """Return whether circuits may change in a run; a plan may keep them fixed because that is faster."""
    return run.fabric in PAYS_DELAY and not (run.result and run.result.switching == "fixed")


def _best_that_switches(
    runs: Mapping[str, FabricRun], spoken: Mapping[str, str], than_ms: float
) -> str:
    """Return which way of changing circuits comes closest, and its time, where none is as fast as ``than_ms``."""
    times = {spoken[name]: run.iteration_ms for name, run in runs.items() if _switches(run)}
    plan = runs.get("scheduled")
    if plan is not None and plan.result is not None and plan.result.alternative is not None:
        times["the best plan that changes circuits"] = plan.result.alternative.makespan_ms or 0.0
    if not times:
        return ""
    name = min(times, key=lambda one: times[one])
    return f"{name} {time(times[name])}" if times[name] > than_ms * (1 + EQUAL) else ""


def _verb(plural: str, names: Sequence[str]) -> str:
    """Return a verb in the number of what it is said of."""
    return plural if len(names) > 1 or ENTRIES[names[0]].plural else f"{plural}s"


def _reason(winner: FabricRun, loser: FabricRun) -> str:
    """Return what the loser spends more of along its critical path, the largest part of it."""
    ours, theirs = winner.breakdown, loser.breakdown
    more = {
        "dark": theirs.dark_ms - ours.dark_ms,
        "exposed": theirs.exposed_ms - ours.exposed_ms,
        "waiting": theirs.waiting_ms - ours.waiting_ms,
        "compute": theirs.compute_ms - ours.compute_ms,
    }
    what = max(more, key=lambda key: more[key])
    longer = _ms(more[what])
    if what in LOSES_BY:
        return f"{longer} more {LOSES_BY[what]}"
    because = ""
    if loser.traffic.bandwidth_tax > max(NOTABLE_TAX, winner.traffic.bandwidth_tax):
        because = f", its bytes travelling {loser.traffic.mean_hops:.3g} hops on average"
    elif loser.result is not None and (
        # Rounding to slots alone raises the bound by more than a twentieth.
        loser.result.bound_ms > 1.05 * loser.result.unrounded_bound_ms
    ):
        because = f", every one being rounded up to slots of {loser.result.slot_ms:g} ms"
    elif (
        0
        < (rings := _rings_on_circuits(loser))
        < (ports := loser.execution.cluster.ports_per_server)
    ):
        because = f", its collectives on {rings} ring{'s' if rings > 1 else ''} using {rings} of {ports} ports"
    return f"{longer} more of exposed transfer{because}"


def _rings_on_circuits(run: FabricRun) -> int:
    """Return the rings of ring collectives whose transfers have one circuit each; 0 if none."""
    graph = run.execution.graph
    if not len(run.execution.circuits) or not any(
        kind in RING_KINDS for kind in set(graph.task_kind)
    ):
        return 0
    if any(name != RING for name in graph.algorithm.values()):
        return 0
    return len(graph.lowering.strides) or graph.lowering.rings


def ahead_of_time(runs: Mapping[str, FabricRun]) -> str:
    """Say why circuits set up ahead of time are no faster than those on demand; empty where they are, or one was not run."""
    if not {"reactive", "provisioned"} <= runs.keys():
        return ""
    on_demand, ahead = runs["reactive"], runs["provisioned"]
    if not same_time(on_demand.iteration_ms, ahead.iteration_ms):
        return ""
    if not ahead.circuits_changed:
        why = "no circuit changes, so none can be set up ahead of time"
    elif not ahead.execution.cluster.reconfiguration_ms:
        why = "without a delay, a circuit set up ahead of time is no earlier"
    else:
        why = "hardly any port on the critical path is idle before it changes, so asking ahead gains next to nothing"
    return (
        f"{capitalised(SPOKEN['reactive'])} and {SPOKEN['provisioned']} take the same time: {why}."
    )


def _ms(value: float) -> str:
    return f"{value:.4g} ms" if value < 10_000 else f"{value:,.0f} ms"


def first_iterations(runs: Mapping[str, FabricRun]) -> str:
    """Return how long first iterations take where later ones take longer; empty where none differs."""
    firsts = [f"{name} {_ms(run.first_ms)}" for name, run in runs.items() if run.first_ms]
    if not firsts:
        return ""
    return f"The first iteration, whose first circuits are set up before it begins: {', '.join(firsts)}."


def why_not(refused: Mapping[str, InputError], labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line for each reason why fabrics cannot run, with the fabrics that it holds for."""
    reasons: dict[str, list[str]] = {}
    for name, error in refused.items():
        item = error.item.removeprefix(f"fabric {name}").removeprefix(", ")
        problem = str(InputError(error.problem, file=error.file, item=item, field=error.field))
        reasons.setdefault(problem, []).append(labels[name])
    return tuple(f"{', '.join(names)} cannot run: {problem}" for problem, names in reasons.items())


def time_rows(runs: Mapping[str, FabricRun], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the table of a comparison: where each iteration's time goes, its bound and its traffic."""
    return [
        {
            "fabric": labels[name],
            "iteration (ms)": run.iteration_ms,
            "first iteration (ms)": run.iteration_ms if run.first_ms is None else run.first_ms,
            "compute (ms)": run.breakdown.compute_ms,
            "exposed transfer (ms)": run.breakdown.exposed_ms,
            "dark (ms)": run.breakdown.dark_ms,
            "waiting for a slot (ms)": run.breakdown.waiting_ms,
            "bound (ms)": run.bound_ms,
            "what binds": run.bound_by,
            "circuit changes": run.circuits_changed,
            "dark, all circuits (ms)": run.dark_ms,
            "bandwidth tax": run.traffic.bandwidth_tax,
            "mean hops": run.traffic.mean_hops,
            "longest hops": run.traffic.longest_hops,
        }
        for name, run in runs.items()
    ]
