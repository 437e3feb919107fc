"""``iteration``: one training iteration in closed form, piece by piece, and predictions beside measurements."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import cluster_beside, must_be_writable, read, write, write_graph
from topox_core.cli.options import JSON, Option, wrong_option
from topox_core.cli.printing import as_json, figure, percent, show, table

if TYPE_CHECKING:
    from topox_core.training.iteration import Iteration
    from topox_core.training.job import Job
    from topox_core.training.machine import Machine
    from topox_core.training.validation import Agreement, Compared


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command and its subcommands to the command line."""
    command = commands.add_parser(
        "iteration",
        allow_abbrev=False,
        help="a training iteration in closed form; predicted against measured",
        description="One training iteration of a transformer in closed form, and how far such predictions are from measured ones.",
    )
    parts = command.add_subparsers(dest="part", metavar="PART", required=True)
    _add_show(parts)
    _add_validate(parts)
    _add_machines(parts)


def _add_show(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "show",
        _show,
        "what an iteration consists of",
        "Print the pieces of a job's iteration, which add up, with utilisation, tokens a second and memory.",
        Option("job JOB", str, "a job: .job.json, or the name of a known one", nargs="?"),
        Option(
            "--set PART.FIELD=VALUE",
            str,
            "change one field, such as plan.tensor=4; may be given several times",
            [],
            dest="changes",
            repeated=True,
        ),
        Option("--output FILE", str, "write the job: .job.json"),
        Option("--graph FILE", str, "write its task graph, and beside it a cluster that suits it"),
        Option("--list", bool, "show the known jobs", dest="listing"),
        JSON,
    )


def _add_machines(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "machines",
        _machines,
        "the machines, and where their figures are from",
        "Print the known machines; with a NAME every figure of it, its source and how sure it is.",
        Option("name NAME", str, "a machine, such as h100", nargs="?"),
        JSON,
    )


def _add_validate(parts: argparse._SubParsersAction[Any]) -> None:
    given.add_command(
        parts,
        "validate",
        _validate,
        "predictions beside measured iterations",
        "Predict every row of a table of measured iterations (vTrain's columns) and say how far predictions are. "
        "vtrain and megatron name the two sets of measurements that come with this program, uncalibrated published "
        "iterations where nothing was fitted, production published runs of weeks on A100.",
        Option("file FILE", str, "a table (.csv), or vtrain, megatron, uncalibrated or production"),
        Option("--machine NAME", str, "what the rows of a file ran on (default vtrain)"),
        JSON,
    )


def _show(options: argparse.Namespace) -> int:
    from topox_core.training.iteration import iteration
    from topox_core.training.job_file import dump_job
    from topox_core.training.jobs import JOBS

    if options.listing:
        return show(
            options,
            {"jobs": [{"name": one.name, "title": one.title} for one in JOBS.values()]},
            lambda: table(*((one.name, one.title) for one in JOBS.values())),
        )
    if options.job is None:
        raise wrong_option("JOB", "a job must be named (--list shows them)")
    if options.output is not None:
        must_be_writable(options.output)
    beside = options.graph and cluster_beside(options.graph)
    job = _changed(_job(options.job), options.changes)
    one = iteration(job)
    if options.output is not None:
        write(options.output, dump_job(job))
    if options.graph is not None:
        from topox_core.training.graph import suggested_cluster, task_graph

        write_graph(options.graph, task_graph(job), beside, suggested_cluster(job))
    return show(options, _record(one), lambda: _print(one))


def _job(name: str) -> Job:
    """Return the job of a file, or the known one of that name."""
    from topox_core.training.job_file import load_job
    from topox_core.training.jobs import JOBS, job_of

    if name in JOBS or not (Path(name).exists() or name.endswith((".json", ".gz"))):
        return job_of(name)
    return load_job(read(name), Path(name).name)


def _changed(job: Job, changes: list[str]) -> Job:
    """Return a job with fields replaced; values are read as a file has them, words without quotes."""
    values: dict[str, object] = {}
    for change in changes:
        key, sign, text = change.partition("=")
        part, dot, field = key.strip().partition(".")
        if not (sign and dot and part in ("shape", "plan", "machine", "schedule")):
            problem = f"must be PART.FIELD=VALUE such as plan.tensor=4 (got {change[:60]!r})"
            raise wrong_option("--set", problem)
        values[f"{part}__{field}"] = given.value_of(text)
    return job.changed(**values)


def _record(one: Iteration) -> dict[str, Any]:
    from topox_core.training.machine import status_of
    from topox_core.training.memory import memory
    from topox_core.training.pieces import pieces

    job, used = one.job, memory(one.job)
    return {
        "job": job.name,
        "words": job.words,
        "gpus": job.plan.gpus,
        "parameters": job.shape.parameters,
        "model_operations": job.operations,
        "tokens": job.plan.batch * job.shape.sequence,
        "iteration_ms": one.total_ms,
        "utilisation": one.utilisation,
        "tokens_per_s": one.tokens_per_s,
        "rank": one.busiest_rank,
        "pieces": [asdict(piece) for piece in pieces(one)],
        "passes": [
            {"forward_ms": each.forward.total_ms, "backward_ms": each.backward.total_ms}
            for each in one.passes
        ],
        "memory": {
            **asdict(used),
            "total_bytes": used.total_bytes,
            "fits": used.total_bytes <= job.machine.memory_gb * 1e9,
        },
        "machine": {"name": job.machine.name, "status": status_of(job.machine)},
    }


def _print(one: Iteration) -> None:
    from topox_core.training.machine import status_of, trust
    from topox_core.training.memory import memory
    from topox_core.training.pieces import pieces

    job, used = one.job, memory(one.job)
    print(job.words)
    rows = [("piece", "ms", "share", "hidden ms", "what", "bytes", "calls", "among")]
    for piece in pieces(one):
        among = ""
        if piece.group is not None:
            where = "across servers" if piece.group.crosses else "in a server"
            among = f"{piece.group.size:,} GPUs {where}"
        rows.append(
            (
                piece.name,
                figure(piece.exposed_ms),
                percent(piece.exposed_ms / one.total_ms),
                figure(piece.hidden_ms) if piece.hidden_ms else "",
                piece.kind.replace("_", "-"),
                f"{piece.size_bytes:,.0f}" if piece.calls else "",
                f"{piece.calls:,}" if piece.calls else "",
                among,
            )
        )
    rows.append(("iteration", figure(one.total_ms), "100 %", "", "", "", "", ""))
    table(*rows)
    verdict = "fits" if used.total_bytes <= job.machine.memory_gb * 1e9 else "DOES NOT FIT"
    print(
        f"pieces of stage {one.busiest_rank}, the busiest; utilisation {percent(one.utilisation)}, "
        f"{one.tokens_per_s:,.0f} tokens a second"
    )
    print(
        f"memory of a GPU of stage {used.stage}: {used.total_bytes / 1e9:.3g} GB, "
        f"{verdict} in {job.machine.memory_gb:g} GB"
    )
    print(
        f"figures of the machine: {status_of(job.machine)}; closed form, nobody else on the network"
    )
    print(trust(job.machine))


def _machines(options: argparse.Namespace) -> int:
    from topox_core.training.machine import MACHINES, figures

    shown = [_machine(options.name, "NAME")] if options.name else list(MACHINES.values())
    if options.json:
        sources = ({"sources": [asdict(one) for one in figures(machine)]} for machine in shown)
        found = [{**asdict(machine), **each} for machine, each in zip(shown, sources, strict=True)]
        as_json({"machines": found})
    elif options.name is None:
        table(*((one.name, one.title, one.status) for one in shown))
    else:
        table(
            ("figure", "value", "status", "source"),
            *(
                (one.field, figure(getattr(shown[0], one.field), one.unit), one.status, one.source)
                for one in figures(shown[0])
            ),
        )
    return 0


def _machine(name: str, field: str) -> Machine:
    """Return a known machine; an option that names none is refused."""
    from topox_core.training.machine import MACHINES

    if name not in MACHINES:
        raise wrong_option(field, f"must be one of {', '.join(MACHINES)} (got {name[:60]})")
    return MACHINES[name]


def _validate(options: argparse.Namespace) -> int:
    from topox_core.training.measurements import read_measured
    from topox_core.training.validation import BUILT_IN, agreement, by_model, predicted

    machine = None if options.machine is None else _machine(options.machine, "--machine")
    if options.file in BUILT_IN:
        rows = BUILT_IN[options.file]()
    else:
        rows = read_measured(read(options.file), Path(options.file).name, machine)
    compared = predicted(rows, Path(options.file).name)
    whole, models = agreement(compared), by_model(compared)
    if options.json:
        as_json(
            {
                "file": options.file,
                **_agreement(whole),
                "by_model": {model: _agreement(one) for model, one in models.items()},
                "predictions": [_compared(row) for row in compared],
            }
        )
        return 0
    table(
        ("row", "model", "plan", "measured ms", "predicted ms", "error", ""),
        *(
            (
                str(row.measured.row),
                f"{row.measured.model} B",
                f"{row.measured.job.plan.words}, {row.measured.job.schedule.words}",
                figure(row.measured.measured_ms),
                figure(row.predicted_ms),
                f"{row.error:+.1%}",
                row.note,
            )
            for row in compared
        ),
    )
    print()
    table(
        ("model", "rows", "mean", "median", "worst", "within 10 %", "rank correlation"),
        *(
            (
                f"{model} B" if model else "all",
                str(one.rows),
                percent(one.mean),
                percent(one.median),
                percent(one.worst),
                str(one.within[10]),
                "-" if one.rank_correlation is None else f"{one.rank_correlation:.3f}",
            )
            for model, one in [("", whole), *models.items()]
        ),
    )
    print(
        "matmul and memory share were fitted to the rows of vtrain, how much longer production runs take to rows "
        "1 to 3 of production; nothing was fitted to any other row"
    )
    return 0


def _agreement(one: Agreement) -> dict[str, Any]:
    """Return the agreement as JSON has it; errors are shares of what was measured."""
    return {
        "rows": one.rows,
        "mean_absolute_error": one.mean,
        "median_absolute_error": one.median,
        "worst_absolute_error": one.worst,
        "rows_within_percent": one.within,
        "rank_correlation": one.rank_correlation,
    }


def _compared(row: Compared) -> dict[str, Any]:
    return {
        "row": row.measured.row,
        "model": row.measured.model,
        "plan": row.measured.job.plan.words,
        "schedule": row.measured.job.schedule.words,
        "measured_ms": row.measured.measured_ms,
        "predicted_ms": row.predicted_ms,
        "error": row.error,
        "contradicts_row": row.contradicts or None,
        "note": row.note,
    }
