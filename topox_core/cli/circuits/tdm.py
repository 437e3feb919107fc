"""``tdm``: jobs that share a fabric, taking turns on its circuits; ``tdm-jobs``: the drafts' large set-up, drawn."""

import time
from collections.abc import Callable
from dataclasses import replace

from topox_core.check.report import CheckReport
from topox_core.check.round import check_round
from topox_core.cli.shared.command import Answer, Arguments, Lines, command, ctrl_c_stops
from topox_core.cli.shared.files import write, write_result
from topox_core.cli.shared.options import (
    JSON,
    Group,
    Option,
    above_zero,
    given_of,
    of_options,
    options_of,
    reader,
)
from topox_core.cli.shared.printing import ended, figure, note, percent, table
from topox_core.io.content import read, record_of
from topox_core.io.limits import check_one_of
from topox_core.tdm.algorithms.catalogue import ALGORITHMS, BASELINE, solve
from topox_core.tdm.algorithms.round_bounds import bounded
from topox_core.tdm.mixes.deployment import SetUp, deploy
from topox_core.tdm.model.bottleneck import bottlenecks
from topox_core.tdm.model.jobs import (
    COLLECTIVES,
    Jobs,
    PodNetwork,
    Reading,
    Round,
    RoundTracePoint,
    TdmSettings,
)
from topox_core.tdm.model.jobs_file import dump_jobs, load_jobs, validated
from topox_core.tdm.model.round_file import to_record
from topox_core.tdm.model.rounds import iterations_alike
from topox_core.tdm.model.traffic import TooFewPortsError

PROGRESS_EVERY_S = 1.0
SHOWN_STAGES = 8
_NETWORK = ("ports_per_pod", "port_gbps", "tor_gbps", "reconfiguration_ms")


def _list(_: Arguments) -> Answer:
    """Return the algorithms."""
    found = [
        {"name": name, **record_of(one, "title family"), "meaning": one.explanation}
        for name, one in ALGORITHMS.items()
    ]
    rows = ((name, one.explanation) for name, one in ALGORITHMS.items())
    return Answer({"algorithms": found}, table(*rows))


@command(
    "Deal jobs to groups that communicate in turns while the others train, and lay the circuits of every stage; "
    "print the round beside the one without turns, and a lower bound. --list shows the algorithms.",
    Option(
        "jobs JOBS",
        str,
        "jobs and their network: .jobs.json, may be .gz",
        nargs="?",
        needed="a file must be named",
    ),
    Option("--list", bool, "show the algorithms, solve nothing", dest="listing"),
    *options_of(
        TdmSettings,
        *("algorithm", "time_limit_s", "seed", "steps"),
        written={"time_limit_s": ("--time-limit S", above_zero)},
    ),
    Option("--output FILE", str, "write the whole round (.round.json)", over=("jobs",)),
    JSON,
    Group("how the draft is read", options_of(Reading, switches=True)),
    Group("network, in place of the file's", options_of(PodNetwork, *_NETWORK, prefix="network_")),
    listing=_list,
)
def run(options: Arguments) -> Answer:
    """Solve; 1 if ports are too few for any round, or the checker disagrees."""
    settings = of_options(TdmSettings, options, reading=of_options(Reading, options))
    check_one_of(settings.algorithm, ALGORITHMS, file="command line", field="--algorithm")
    jobs = _jobs(options)
    with ctrl_c_stops() as stop:
        try:
            together: Round | None = solve(jobs, replace(settings, algorithm=BASELINE), stop)
        except TooFewPortsError:  # for all jobs at once, while turns may still do
            together = None
        try:
            answer = solve(jobs, settings, stop, _progress())
        except TooFewPortsError as error:
            refused = {"status": "infeasible", "round_s": None, "message": str(error)}
            return Answer(refused, str(error), 1)
        if answer.stopped_by != "cancelled":
            answer = bounded(answer)
    report = check_round(answer)
    non_tdm_s = None if together is None else together.round_s
    record = to_record(answer, non_tdm_s=non_tdm_s, settings=settings)
    holds = report.ok and answer.status != "infeasible"
    checked = {"checked": report.ok, "violations": list(report.lines())}
    write_result(options, options.output, record, checked)
    lines = _lines(answer, non_tdm_s, record.get("reduction"), report)
    return Answer(record | checked, lines, 0 if holds else 1)


def _jobs(options: Arguments) -> Jobs:
    """Read the file and put the network's options on top."""
    jobs = load_jobs(read(options.jobs), options.jobs)
    changes = given_of(options, _NETWORK, "network_")
    return (
        validated(jobs.name, replace(jobs.network, **changes), jobs.jobs, "command line")
        if changes
        else jobs
    )


def _progress() -> Callable[[RoundTracePoint], None]:
    """Return what notes the progress of the search on standard error, once a second."""
    last = time.monotonic()

    def tell(point: RoundTracePoint) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_EVERY_S:
            last = time.monotonic()
            note(
                f"{point.elapsed_s:.1f} s, step {point.step:,}: best {figure(point.round_s, 's')}, bound "
                f"{figure(point.bound_s, 's')} ({point.source})"
            )

    return tell


def _lines(
    answer: Round, non_tdm_s: float | None, saved: float | None, report: CheckReport
) -> Lines:
    sizes = ", ".join(
        f"{chr(65 + k)} {sum(g == k for g in answer.group):,}" for k in range(answer.groups)
    )
    groups, how = answer.jobs.network.pod_groups, ended(answer.stopped_by, answer.wall_s)
    without = f"{figure(non_tdm_s, 's')}; saved: {percent(saved)}"
    held = f"{figure(answer.bound_s, 's')} for {answer.bound.holds_for}"
    each = iterations_alike(answer.jobs)
    of_each = f"{figure(answer.round_s / max(each, 1), 's')}: a round has {each:g} of each job"
    mean = f"{figure(answer.mean_round_s, 's')}; every pod group has its own barrier"
    yield table(
        ("jobs", f"{len(answer.jobs):,} in {groups:,} pod groups; groups {sizes}"),
        ("round", f"{figure(answer.round_s, 's')} by {answer.algorithm}, {how}"),
        each > 1 and ("iteration", of_each),
        ("non-TDM", "ports are too few for all jobs at once" if non_tdm_s is None else without),
        ("bound", f"{held}, gap {percent(answer.gap)}: {answer.bound.by}"),
        len(answer.cycles) > 1 and ("mean round", mean),
        ("checked", "every rule holds" if report.ok else "; ".join(report.lines(3))),
    )
    yield answer.message or None
    yield from (one.words(answer) for one in bottlenecks(answer)[:SHOWN_STAGES])


_MIX = "three numbers separated by commas"
_weights = reader(
    lambda text: tuple(map(float, text.split(","))), _MIX, lambda weights: len(weights) == 3, _MIX
)


@command(
    "Write the large set-up of the draft on time-division multiplexing: Llama 3 models, collectives and parallel "
    "degrees drawn at random, placed so that traffic is even (section IV).",
    *options_of(SetUp, written={"mix": ("--mix PS,RING,A2A", _weights)}, switches=True),
    Option(
        "--output FILE",
        str,
        "the jobs: .jobs.json, may be .gz",
        needed="must be given: the file to write",
        over=(),
    ),
    JSON,
)
def draw(options: Arguments) -> Answer:
    """Draw, deploy, write."""
    jobs = deploy(of_options(SetUp, options))
    write(options.output, dump_jobs(jobs))
    kinds = {kind: sum(job.collective == kind for job in jobs.jobs) for kind in COLLECTIVES}
    network = jobs.network
    return Answer(
        {
            "name": jobs.name,
            "jobs": len(jobs),
            "units": sum(job.units for job in jobs.jobs),
            "collectives": kinds,
            "pods": network.pod_groups * network.pods_per_group,
            "digest": jobs.digest,
            "output": options.output,
        },
        table(
            ("jobs", jobs.name),
            ("collectives", ", ".join(f"{n:,} {kind}" for kind, n in kinds.items())),
            (
                "network",
                f"{network.pod_groups:,} groups of {network.pods_per_group} pods, {network.ports_per_pod} ports of "
                f"{figure(network.port_gbps, 'Gbit/s')}",
            ),
            ("written", options.output),
        ),
    )
