"""``tdm-jobs``: write the drafts' large set-up, drawn and deployed."""

from __future__ import annotations

import argparse

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import write
from topox_core.cli.options import JSON, Option, given_of, number, whole
from topox_core.cli.printing import figure, table

_NUMBERS = (
    Option("--jobs N", whole, "how many (default 256)"),
    Option("--context N", whole, "tokens of one context (default 8192)"),
    Option("--seed N", whole, "of everything drawn (default 0)"),
    Option("--pod-groups N", whole, "default 32"),
    Option("--pods-per-group N", whole, "default 8"),
    Option("--ports-per-pod N", whole, "default 16"),
    Option("--port-gbps X", number, "default 150"),
    Option("--tor-gbps X", number, "into a pod (default: ports times their speed)"),
    Option("--reconfiguration-ms X", number, "default 0.5"),
    Option("--degree-min N", whole, "fewest parallel units of a job (default 2)"),
    Option("--degree-max N", whole, "most parallel units of a job (default 16)"),
    Option("--gpus-per-pod N", whole, "default 2048"),
    Option("--gpu-tflops X", number, "peak of a GPU (default 26)"),
    Option("--efficiency X", number, "share of the peak reached (default 0.4)"),
)


def _mix(text: str) -> tuple[float, ...]:
    weights = tuple(number(part) for part in text.split(","))
    if len(weights) != 3:
        raise argparse.ArgumentTypeError(
            f"must be three numbers separated by commas (got {text!r})"
        )
    return weights


@command(
    "tdm-jobs",
    "write jobs for tdm: Llama 3 models drawn at random and deployed",
    "Write the large set-up of the draft on time-division multiplexing: Llama 3 models, collectives and parallel "
    "degrees drawn at random, placed so that traffic is even (section IV).",
    *_NUMBERS,
    Option("--literal-eq8", bool, "train a whole replica on one GPU, as eq. 8 is printed"),
    Option("--mix PS,RING,A2A", _mix, "weights of the collectives (default 1,1,1)"),
    Option(
        "--output FILE",
        str,
        "the jobs: .jobs.json, may be .gz",
        needed="must be given: the file to write",
        over=(),
    ),
    JSON,
)
def run(options: Arguments) -> Answer:
    """Draw, deploy, write."""
    from topox_core.tdm.mixes.deployment import SetUp, deploy
    from topox_core.tdm.model.jobs import COLLECTIVES
    from topox_core.tdm.model.jobs_file import dump_jobs

    changes = given_of(options, (*(one.key for one in _NUMBERS), "mix"))
    jobs = deploy(SetUp(**changes, literal_eq8=options.literal_eq8))
    write(options.output, dump_jobs(jobs))
    kinds = {kind: sum(job.collective == kind for job in jobs.jobs) for kind in COLLECTIVES}
    network = jobs.network
    record = {
        "name": jobs.name,
        "jobs": len(jobs),
        "units": sum(job.units for job in jobs.jobs),
        "collectives": kinds,
        "pods": network.pod_groups * network.pods_per_group,
        "digest": jobs.digest,
        "output": options.output,
    }
    lines = table(
        ("jobs", jobs.name),
        ("collectives", ", ".join(f"{n:,} {kind}" for kind, n in kinds.items())),
        (
            "network",
            f"{network.pod_groups:,} groups of {network.pods_per_group} pods, {network.ports_per_pod} ports of "
            f"{figure(network.port_gbps, 'Gbit/s')}",
        ),
        ("written", options.output),
    )
    return Answer(record, [lines])
