"""``tdm-jobs``: write the drafts' large set-up, drawn and deployed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, write
from topox_core.cli.options import JSON, Option, add_options, number, whole, wrong_option
from topox_core.cli.printing import as_json, figure, table

_NUMBERS: tuple[tuple[str, Callable[[str], object], str, str], ...] = (
    ("jobs", whole, "N", "how many (default 256)"),
    ("context", whole, "N", "tokens of one context (default 8192)"),
    ("seed", whole, "N", "of everything drawn (default 0)"),
    ("pod_groups", whole, "N", "default 32"),
    ("pods_per_group", whole, "N", "default 8"),
    ("ports_per_pod", whole, "N", "default 16"),
    ("port_gbps", number, "X", "default 150"),
    ("tor_gbps", number, "X", "into a pod (default: ports times their speed)"),
    ("reconfiguration_ms", number, "X", "default 0.5"),
    ("degree_min", whole, "N", "fewest parallel units of a job (default 2)"),
    ("degree_max", whole, "N", "most parallel units of a job (default 16)"),
    ("gpus_per_pod", whole, "N", "default 2048"),
    ("gpu_tflops", number, "X", "peak of a GPU (default 26)"),
    ("efficiency", number, "X", "share of the peak reached (default 0.4)"),
)


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command = given.add_command(
        commands,
        "tdm-jobs",
        run,
        "write jobs for tdm: Llama 3 models drawn at random and deployed",
        "Write the large set-up of the draft on time-division multiplexing: Llama 3 models, collectives and parallel "
        "degrees drawn at random, placed so that traffic is even (section IV).",
    )
    for key, kind, metavar, words in _NUMBERS:
        command.add_argument(
            f"--{key.replace('_', '-')}", dest=key, type=kind, metavar=metavar, help=words
        )
    add_options(
        command,
        Option("--literal-eq8", bool, "train a whole replica on one GPU, as eq. 8 is printed"),
        Option("--mix PS,RING,A2A", _mix, "weights of the collectives (default 1,1,1)"),
        Option("--output FILE", str, "the jobs: .jobs.json, may be .gz"),
        JSON,
    )


def _mix(text: str) -> tuple[float, ...]:
    weights = tuple(number(part) for part in text.split(","))
    if len(weights) != 3:
        raise argparse.ArgumentTypeError(
            f"must be three numbers separated by commas (got {text!r})"
        )
    return weights


def run(options: argparse.Namespace) -> int:
    """Draw, deploy, write."""
    from topox_core.tdm.mixes.deployment import SetUp, deploy
    from topox_core.tdm.model.jobs import COLLECTIVES
    from topox_core.tdm.model.jobs_file import dump_jobs

    if options.output is None:
        raise wrong_option("--output", "must be given: the file to write")
    must_be_writable(options.output)
    keys = (*(key for key, _, _, _ in _NUMBERS), "mix")
    changes = {key: value for key in keys if (value := getattr(options, key)) is not None}
    jobs = deploy(SetUp(**changes, literal_eq8=options.literal_eq8))
    write(options.output, dump_jobs(jobs))
    kinds = {kind: sum(job.collective == kind for job in jobs.jobs) for kind in COLLECTIVES}
    record = {
        "name": jobs.name,
        "jobs": len(jobs),
        "units": sum(job.units for job in jobs.jobs),
        "collectives": kinds,
        "pods": jobs.network.pod_groups * jobs.network.pods_per_group,
        "digest": jobs.digest,
        "output": options.output,
    }
    if options.json:
        as_json(record)
    else:
        network = jobs.network
        table(
            ("jobs", jobs.name),
            ("collectives", ", ".join(f"{n:,} {kind}" for kind, n in kinds.items())),
            (
                "network",
                f"{network.pod_groups:,} groups of {network.pods_per_group} pods, {network.ports_per_pod} ports of "
                f"{figure(network.port_gbps, 'Gbit/s')}",
            ),
            ("written", options.output),
        )
    return 0
