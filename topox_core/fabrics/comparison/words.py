"""Which fabric wins, by how much, and what the next one loses its time to, in plain sentences."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import EQUAL, fastest, same_time, undecided
from topox_core.fabrics.registry import ENTRIES, PAYS_DELAY, SPOKEN
from topox_core.fabrics.run import FabricRun
from topox_core.model.lowering.algorithm_choice import RING, RING_KINDS
from topox_core.schedule.results.result import gap
from topox_core.text.numbers import (
    at_delay,
    capitalised,
    enumeration,
    first_that_holds,
    from_to,
    short,
    time,
)

# The ideal switch is a yardstick that nobody can buy; it wins only where nothing else was run.
YARDSTICK = "ideal"
# Not built for the money of the others: a headline compares those, then says whether this one is as fast.
FULL = "fat_tree_full"
# What circuits that stay are built as; the best of them is always told.
PATCH_PANEL = "topoopt_patch_panel"
NO_PLAN = "no plan found gains from switching"
# Its bounds hold for it alone: fabrics that change circuits and forward beside have others.
CHANGING_PLAN = "the best plan found that changes circuits and forwards nothing"
# A mean of hops above this is worth a word; below, nearly every byte goes direct.
NOTABLE_TAX = 1.02
# Of how much longer the loser takes, what the largest part leaves is worth a word above this share.
NOTABLE_REST = 0.05
# What the loser has more of, where it is not exposed transfer.
LOSES_BY = {
    "dark": "dark time, in which ports change their circuits",
    "waiting": "waiting for a port, a device or a slot",
    "compute": "compute on the critical path, where the order of tasks is worse",
}


def sentence(runs: Mapping[str, FabricRun]) -> str:
    """Return the headline of a comparison, why the next fabric takes longer, and whether a better plan may yet win."""
    if not runs:
        return "No fabric was run."
    return f"{headline(runs)} {why_longer(runs)}".replace("\u00a0", " ").strip()


def why_longer(runs: Mapping[str, FabricRun], spoken: Mapping[str, str] = SPOKEN) -> str:
    """Return why the next fabric takes longer than the fastest, and whether a better plan may yet win; may be empty.

    The reason is what grows most along the critical path from the winner to the next: dark time,
    exposed transfers, waiting or compute.
    """
    contenders = {name: run for name, run in runs.items() if name != YARDSTICK} or dict(runs)
    winner, *others = sorted(contenders.values(), key=lambda run: run.iteration_ms)
    first, said = fastest(contenders), []
    next_best = next((run for run in others if run.fabric not in first), None)
    if next_best is not None:
        name, than = next_best.fabric, spoken[winner.fabric]
        takes = f"{capitalised(spoken[name])} {_verb('take', [name])}"
        longer = f"{short(next_best.iteration_ms - winner.iteration_ms)} ms longer than {than}"
        said.append(f"{takes} {longer}: {_reason(winner, next_best)}.")
    if undecided(contenders):
        plan = contenders["scheduled"]
        if plan.result is not None and plan.result.switching == "fixed":
            said.append(f"Shorter fixed circuits are not excluded (bound {time(plan.bound_ms)}).")
        else:
            percent = 100 * gap(plan.iteration_ms, plan.bound_ms)
            said.append(f"The plan has a gap of {percent:.2g} % and may yet win.")
    return " ".join(said)


def headline(
    runs: Mapping[str, FabricRun],
    spoken: Mapping[str, str] = SPOKEN,
    excludes: Callable[[float, float], bool] | None = None,
) -> str:
    """Return whether changing circuits pays at the delay of these runs and by how much, as one would say it aloud.

    Parameters
    ----------
    spoken
        Names of the fabrics within a sentence.
    excludes
        As of a verdict that is known: whether at a delay no plan that changes circuits gains on a time.
    """
    rest = {name: run for name, run in runs.items() if name != YARDSTICK} or dict(runs)
    contenders = {name: run for name, run in rest.items() if name != FULL} or rest
    first = fastest(contenders)
    winner = min((contenders[name] for name in first), key=lambda run: run.iteration_ms)
    words, full = _without_full(contenders, first, winner, spoken, excludes), rest.get(FULL, winner)
    if full is winner:
        return words
    told = first_that_holds(
        (same_time(full.iteration_ms, winner.iteration_ms), "is as fast:"),
        (full.iteration_ms < winner.iteration_ms, "is faster:"),
        (True, "takes"),
    )
    return f"{words} {capitalised(spoken[FULL])} {told} {_full_taken(runs, full)}."


def _full_taken(runs: Mapping[str, FabricRun], full: FabricRun) -> str:
    """Return what a full fat-tree takes as it is run here, and at most if its hosts send in the order of the ideal switch.

    Its links carry whatever the ideal switch does, so that it can do the same in the same order.
    """
    ordered = runs.get(YARDSTICK, full)
    if ordered.iteration_ms * (1 + EQUAL) >= full.iteration_ms:
        return time(full.iteration_ms)
    return (
        f"{time(full.iteration_ms)} where its hosts share links and at most {time(ordered.iteration_ms)} "
        "where they send in an order"
    )


def _without_full(
    contenders: Mapping[str, FabricRun],
    first: Sequence[str],
    winner: FabricRun,
    spoken: Mapping[str, str],
    excludes: Callable[[float, float], bool] | None,
) -> str:
    """Return whether switching pays among runs without a full fat-tree, or of nothing else, and what the best of each kind take."""
    delay_ms = winner.execution.cluster.reconfiguration_ms
    where = at_delay(delay_ms)
    changing = _best_that_switches(contenders, spoken, winner.iteration_ms)
    stays = [name for name in first if not _switches(contenders[name])]
    plan = contenders["scheduled"].result if "scheduled" in contenders else None
    # A longer look may find one, unless a bound excludes it.
    proved = plan is None or plan.excludes_change(winner.iteration_ms / (1 + EQUAL))
    unsure = not (proved or (excludes is not None and excludes(delay_ms, winner.iteration_ms)))
    if stays and changing:
        return (
            f"{where} {NO_PLAN if unsure else 'switching does not pay'}: {spoken[stays[0]]} {_verb('need', stays[:1])} "
            f"{time(winner.iteration_ms)}, {changing}."
        )
    names = enumeration([spoken[name] for name in first])
    takes = (
        f"{names} {_verb('take', first)} {from_to(contenders[name].iteration_ms for name in first)}"
    )
    others = [run for name, run in contenders.items() if name not in first]
    if not others and len(first) > 1:
        return f"It makes no difference: {takes}."
    rivals = [run for run in others if not _switches(run)]
    if stays and len(stays) < len(first):
        said = NO_PLAN if unsure else "switching gains nothing"
        rivals, takes = others, f"{where} {said}: {takes}"
    elif rivals and any(contenders[name].circuits_changed for name in first):
        takes = f"{where} switching pays: {takes}"
    else:
        rivals, takes = others, capitalised(takes)
    fixed = [run for run in rivals if ENTRIES[run.fabric].built_as == PATCH_PANEL]
    rivals.sort(key=lambda run: run.iteration_ms)
    best_fixed = min(fixed, key=lambda run: run.iteration_ms, default=None)
    told = [run for run in rivals if run in (rivals[0], best_fixed) or run.fabric == "fat_tree"]
    times = [f"{spoken[run.fabric]} {time(run.iteration_ms)}" for run in told]
    return f"{takes}, {enumeration(times)}." if told else f"{takes}."


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
        times[CHANGING_PLAN] = plan.result.alternative.makespan_ms or 0.0
    if not times:
        return ""
    name = min(times, key=lambda one: times[one])
    return f"{name} {time(times[name])}" if times[name] > than_ms * (1 + EQUAL) else ""


def _verb(plural: str, names: Sequence[str]) -> str:
    """Return a verb in the number of what it is said of."""
    return plural if len(names) > 1 or ENTRIES[names[0]].plural else f"{plural}s"


def _reason(winner: FabricRun, loser: FabricRun) -> str:
    """Return what the loser has more of along its critical path: the part that grows most, then the rest."""
    ours, theirs = winner.breakdown, loser.breakdown
    more = {
        "dark": theirs.dark_ms - ours.dark_ms,
        "exposed": theirs.exposed_ms - ours.exposed_ms,
        "waiting": theirs.waiting_ms - ours.waiting_ms,
        "compute": theirs.compute_ms - ours.compute_ms,
    }
    what = max(more, key=lambda key: more[key])
    longer_ms = loser.iteration_ms - winner.iteration_ms
    rest_ms, because = longer_ms - more[what], ""
    said = f"{short(more[what])} ms more"
    rest = f", {short(abs(rest_ms))} ms {'more' if rest_ms > 0 else 'less'} of all else"
    rest *= abs(rest_ms) > NOTABLE_REST * longer_ms
    if what in LOSES_BY:
        return f"{said} {LOSES_BY[what]}{rest}"
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
    return f"{said} of exposed transfer{because}{rest}"


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
