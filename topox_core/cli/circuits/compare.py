"""One task graph on several fabrics: ``compare`` side by side, ``verdict`` up to which delay, ``failures`` after one."""

import re
from collections.abc import Callable, Iterator

from topox_core.cli.shared.command import Answer, Arguments, command, ctrl_c_stops
from topox_core.cli.shared.files import (
    FIGURE,
    check_figure,
    failed_assertions,
    read_graph_and_cluster,
    write_figure,
)
from topox_core.cli.shared.library import KEEP, check_keep, keep
from topox_core.cli.shared.options import FILES, JSON, Group, Option, reader
from topox_core.cli.shared.printing import Says, columns, figure, note, percent
from topox_core.cli.shared.settings import (
    CLUSTER_KEYS,
    FABRICS,
    ITERATION,
    LIMITS,
    LOWERING,
    SOLVE,
    cluster_overrides,
    fabric_options,
    planner,
    settings,
)
from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.errors import printable, refuse_if
from topox_core.fabrics.comparison.compare import chosen, compare, fastest
from topox_core.fabrics.comparison.failures import FixedCircuits, after_failure
from topox_core.fabrics.comparison.words import first_iterations, sentence
from topox_core.fabrics.crossover.verdict import verdict as verdict_of
from topox_core.fabrics.fluid.links import SLOWER_BY_PRICE
from topox_core.fabrics.registry import UNUSUAL, USUAL
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.io.assertions import FAILED
from topox_core.io.content import record_of
from topox_core.studies.buying.offers import sources_of
from topox_core.text.choices import chosen_by_all
from topox_core.topology.failures import Failure

# What each kind of failure is followed by, and how many numbers that is.
KINDS = {
    "fibre": ("the circuit from server A to B", 2),
    "port": ("server and port", 2),
    "switch": ("switch", 1),
    "server": ("server, and the one that takes its tasks over", 2),
}


@command(
    "Run one task graph under every fabric and controller; print who wins and why.",
    *FILES,
    Option(
        "--fabrics LIST",
        str,
        f"names separated by commas (default: {','.join(USUAL)}; also {', '.join(UNUSUAL)})",
    ),
    Group(
        "the scheduled fabric", planner("list|auto|highs|printed", "who plans it (default list)")
    ),
    JSON,
    FIGURE,
    *KEEP,
    FABRICS,
    *SOLVE,
)
def run(options: Arguments) -> int:
    """Run the fabrics one after the other and print them; 1 if it was stopped before the last."""
    check_figure(options)
    check_keep(options)
    asked = settings(options, engine="list")
    listed = ",".join(USUAL) if options.fabrics is None else options.fabrics
    names = chosen(name.strip() for name in listed.split(",") if name.strip())
    graph, cluster = read_graph_and_cluster(
        options.graph, options.cluster, cluster_overrides(options)
    )
    fabric = fabric_options(options, cluster)
    with ctrl_c_stops() as stop:
        runs = compare(
            graph,
            cluster,
            asked,
            names,
            fabric,
            stop,
            lambda run: note(f"{run.fabric}: {figure(run.iteration_ms, 'ms')}"),
        )
    words = sentence(runs)
    record = {
        "fabrics": {name: one.as_record() for name, one in runs.items()},
        "fastest": list(fastest(runs)),
        "sentence": words,
    }
    # What was found is printed even if it cannot be drawn or kept.
    Answer(record, _lines(runs, words)).show(options)
    write_figure(options, runs)
    keep(options, cluster, asked, fabric, runs)
    return 0 if len(runs) == len(names) else 1


def _lines(runs: dict[str, FabricRun], words: str) -> Iterator[str]:
    """Return one row per fabric; the four middle columns are the critical chain and add up to the iteration."""

    def share(part: str) -> Callable[[FabricRun], str]:
        return lambda run: percent(
            round(getattr(run.breakdown, part) / run.iteration_ms, 6) if run.iteration_ms else 0.0
        )

    yield columns(
        runs.values(),
        {
            "fabric": "fabric",
            "iteration": lambda run: figure(run.iteration_ms, "ms"),
            "compute": share("compute_ms"),
            "exposed": share("exposed_ms"),
            "dark": share("dark_ms"),
            "waiting": share("waiting_ms"),
            "bound": lambda run: figure(run.bound_ms, "ms"),
            "changes": lambda run: f"{run.circuits_changed:,}",
            "tax": lambda run: f"{run.traffic.bandwidth_tax:.3g}",
            "what binds": "bound_by",
        },
    )
    yield from filter(
        None,
        (
            first_iterations(runs),
            chosen_by_all({name: run.chosen_words for name, run in runs.items()}),
        ),
    )
    for run in runs.values():
        if run.message and (run.fabric == "scheduled" or SLOWER_BY_PRICE in run.message):
            yield run.message if run.fabric == "scheduled" else f"{run.fabric}: {run.message}."
    yield words


@command(
    "Say up to which reconfiguration delay changing circuits pays for a job, against the best fixed circuits found, "
    "a fat-tree of the same cost and a full one, and from which delay on no plan can.",
    *FILES,
    Option(
        "--effort list|search|prove",
        str,
        "a few plans by rules (default), as many as the bracket needs, or exact engines besides",
        default="list",
    ),
    ITERATION,
    JSON,
    LOWERING,
    LIMITS,
    CLUSTER_KEYS,
)
def verdict(options: Arguments) -> Answer:
    """Find the verdict; 1 where no rival can run the job, 3 where its job asserts another one."""
    asked = settings(options)
    graph, cluster = read_graph_and_cluster(
        options.graph, options.cluster, cluster_overrides(options)
    )
    with ctrl_c_stops() as stop:
        found = verdict_of(
            graph,
            cluster,
            asked,
            options.effort,
            stop=stop,
            on_step=lambda step: note(
                "; ".join(
                    f"{one.name} {figure(one.pays_up_to_ms)} to {figure(one.cannot_pay_from_ms, 'ms')}"
                    for one in step.brackets
                )
            ),
        )
    says: Says = {
        "rival": "name",
        "iteration": lambda one: figure(one.iteration_ms, "ms"),
        "pays at least up to": lambda one: (
            "never" if one.pays_up_to_ms is None else figure(one.pays_up_to_ms, "ms")
        ),
        "cannot pay from": lambda one: figure(one.cannot_pay_from_ms, "ms"),
        "cheaper up to": lambda one: _cheaper(one.cheaper_up_to_usd),
        "laid by": lambda one: one.laid_by or "-",
    }
    lines = (
        found.sentence,
        *([columns(found.brackets, says)] if found.brackets else ()),
        *(f"{name} cannot run: {why}" for name, why in found.refused.items()),
    )
    prices = sources_of(prices=PRICE_SETS[SET_BY_SPEED])
    status = 0 if found.brackets else 1
    if found.hardest is not None and failed_assertions(
        options.graph,
        {name: getattr(found.hardest, name) for name in ("pays_up_to_ms", "cannot_pay_from_ms")},
    ):
        status = FAILED
    return Answer(found.as_record(), lines, status, prices)


def _cheaper(usd: float | None) -> str:
    return "-" if usd is None else f"${usd:,.0f} per port" if usd >= 0 else "not even free"


def failure_of(text: str) -> Failure:
    """Return the failure that an option names.

    Raises
    ------
    InputError
        If it is written otherwise.
    """
    kind, _, where = text.partition(":")
    numbers = (
        [int(part) for part in where.split("-")]
        if re.fullmatch(r"\d{1,9}(-\d{1,9})?", where)
        else []
    )
    expected = "; ".join(
        f"{name}:{'-'.join('AB'[:count])} ({words})" for name, (words, count) in KINDS.items()
    )
    refuse_if(
        (
            kind not in KINDS or len(numbers) != KINDS[kind][1],
            f"must be {expected} (got {printable(text)[:80]})",
        ),
        file="command line",
        field="--fail",
    )
    makers: dict[str, Callable[..., Failure]] = {
        "fibre": Failure.fibre,
        "port": Failure.of_port,
        "switch": Failure.of_switch,
        "server": Failure.of_server,
    }
    return makers[kind](*numbers)


@command(
    "Say what an iteration takes after a failure: fixed circuits with traffic forwarded and repaired, planned circuits "
    "planned again for the rest of this iteration and for the next ones.",
    *FILES,
    Option(
        "--fail KIND:WHERE",
        str,
        "fibre:A-B, port:SERVER-PORT, switch:N or server:A-B (B takes over); may be repeated",
        [],
        dest="failures",
        repeated=True,
        needed="is needed: what fails",
    ),
    Option(
        "--at-percent X",
        reader(float, "a number", lambda share: 0 <= share < 100, "from 0 to below 100"),
        "when it fails, as a share of the planned iteration (default 0)",
        0.0,
    ),
    *planner("list|auto|highs", "who plans (default list)"),
    JSON,
    FABRICS,
    *SOLVE,
)
def failures(options: Arguments) -> Answer:
    """Run fixed and planned circuits, then each failure on them; 1 if nothing goes on after one."""
    taken_out = {text: failure_of(text) for text in options.failures}
    asked = settings(options, engine="list")
    graph, cluster = read_graph_and_cluster(
        options.graph, options.cluster, cluster_overrides(options)
    )
    fabric = fabric_options(options, cluster)
    found = {}
    with ctrl_c_stops() as stop:
        runs = compare(graph, cluster, asked, ("static", "scheduled"), fabric, stop)
        if "scheduled" not in runs:
            return Answer(status=1)
        job = JobRequest(graph, cluster, asked, fabric, runs)
        fixed = FixedCircuits.of(job)
        for text, failure in taken_out.items():
            if stop():
                break
            note(text)
            outcomes = after_failure(job, fixed, failure, options.at_percent / 100)
            found[text] = [
                record_of(one, "label fabric before_ms after_ms") | {"done": list(one.done)}
                for one in outcomes
            ]
    lines = columns(
        ({"failure": text, **one} for text, rows in found.items() for one in rows),
        {
            "failure": "failure",
            "goes on": "label",
            "before": lambda one: figure(one["before_ms"], "ms"),
            "after": lambda one: figure(one["after_ms"], "ms"),
            "over": lambda one: (
                None
                if one["after_ms"] is None
                else f"{one['after_ms'] / one['before_ms'] - 1:+.1%}"
            ),
            "how": lambda one: " ".join(one["done"]),
        },
    )
    goes_on = all(any(one["after_ms"] is not None for one in rows) for rows in found.values())
    return Answer(found, lines, 0 if goes_on and len(found) == len(taken_out) else 1)
