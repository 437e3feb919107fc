"""``tdm-jobs``: write the drafts' large set-up, drawn and deployed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from topox_core.cli import options as given
from topox_core.cli.files import must_be_writable, write
from topox_core.cli.printing import as_json, figure, table
from topox_core.errors import InputError

_NUMBERS: tuple[tuple[str, Callable[[str], object], str, str], ...] = (
    ("jobs", given.whole, "N", "how many (default 256)"),
    ("context", given.whole, "N", "tokens of one context (default 8192)"),
    ("seed", given.whole, "N", "of everything drawn (default 0)"),
    ("pod_groups", given.whole, "N", "default 32"),
    ("pods_per_group", given.whole, "N", "default 8"),
    ("ports_per_pod", given.whole, "N", "default 16"),
    ("port_gbps", given.number, "X", "default 150"),
    ("tor_gbps", given.number, "X", "into a pod (default: ports times their speed)"),
    ("reconfiguration_ms", given.number, "X", "default 0.5"),
    ("degree_min", given.whole, "N", "fewest parallel units of a job (default 2)"),
    ("degree_max", given.whole, "N", "most parallel units of a job (default 16)"),
    ("gpus_per_pod", given.whole, "N", "default 2048"),
    ("gpu_tflops", given.number, "X", "peak of a GPU (default 26)"),
    ("efficiency", given.number, "X", "share of the peak reached (default 0.4)"),
)


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the command line."""
    command = commands.add_parser(
        "tdm-jobs",
        allow_abbrev=False,
        help="write jobs for tdm: Llama 3 models drawn at random and deployed",
        description="Write the large set-up of the draft on time-division multiplexing: Llama 3 models, collectives and parallel "
        "degrees drawn at random, placed so that traffic is even (section IV).",
    )
    for key, kind, metavar, words in _NUMBERS:
        command.add_argument(
            f"--{key.replace('_', '-')}", dest=key, type=kind, metavar=metavar, help=words
        )
    command.add_argument(
        "--literal-eq8",
        action="store_true",
        help="train a whole replica on one GPU, as eq. 8 is printed",
    )
    command.add_argument(
        "--mix", type=_mix, metavar="PS,RING,A2A", help="weights of the collectives (default 1,1,1)"
    )
    command.add_argument("--output", metavar="FILE", help="the jobs: .jobs.json, may be .gz")
    given.add_json(command)
    command.set_defaults(run=run)


def _mix(text: str) -> tuple[float, ...]:
    weights = tuple(given.number(part) for part in text.split(","))
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
        raise InputError("must be given: the file to write", file="command line", field="--output")
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
            [
                ("jobs", jobs.name),
                ("collectives", ", ".join(f"{n:,} {kind}" for kind, n in kinds.items())),
                (
                    "network",
                    f"{network.pod_groups:,} groups of {network.pods_per_group} pods, {network.ports_per_pod} ports of "
                    f"{figure(network.port_gbps, 'Gbit/s')}",
                ),
                ("written", options.output),
            ]
        )
    return 0
