"""The walk through an iteration's passes as it reads in words, pass by pass: what the compiled one must agree with."""

from collections.abc import Sequence
from graphlib import TopologicalSorter

from topox_core.training.costs.collectives import Call
from topox_core.training.job import Job
from topox_core.training.pipeline.program import Program, Step, instances
from topox_core.training.plan import pass_order

NEVER = float("inf")


def reference_walk(
    job: Job, forward_ms: Sequence[float], backward_ms: Sequence[float], message_ms: float
) -> tuple[list[float], list[float]]:
    """Run the passes of one replica."""
    ranks, chunks, many = job.plan.pipeline, job.chunks, job.plan.microbatches
    programs = [
        pass_order(rank, ranks, many, job.schedule.order, job.schedule.virtual)
        for rank in range(ranks)
    ]
    length = {"f": forward_ms, "b": backward_ms}
    # Of each chunk and microbatch, when what its pass needs is there.
    ready = {way: [[NEVER] * many for _ in range(chunks)] for way in "fb"}
    ready["f"][0] = [0.0] * many
    ready["b"][chunks - 1] = [0.0] * many
    step = {"f": 1, "b": -1}
    free, sent, at = [0.0] * ranks, [0.0] * ranks, [0] * ranks
    wait_ms = 0.0 if job.schedule.overlap_sends else message_ms
    waiting = list(range(ranks))
    while waiting:
        rank = waiting.pop()
        program, now, k = programs[rank], free[rank], at[rank]
        for way, m, local in program[k:]:
            chunk = local * ranks + rank
            begin = ready[way][chunk][m]
            if begin == NEVER:
                break
            now = max(now, begin) + length[way][chunk]
            after = chunk + step[way]
            if 0 <= after < chunks:
                ready[way][after][m] = now + message_ms
                now += wait_ms
                sent[rank] += wait_ms
                if (other := after % ranks) not in waiting:
                    waiting.append(other)
            k += 1
        free[rank], at[rank] = now, k
    assert all(program[-1][0] == "b" and program[-1][2] == 0 for program in programs)
    return free, sent


def own_ms(step: Step, job: Job) -> float:
    """How long a step takes with the network to itself."""
    if step.group is None:
        return step.ms
    each_bytes = step.size_bytes / step.calls
    return step.calls * Call(step.kind, each_bytes, step.group).ms(job)


def length_ms(built: Program) -> float:
    """How long a program takes if no two communications share a link."""
    steps = {step.name: step for step in built.steps}
    end: dict[str, float] = {}
    waits = {name: step.waits for name, step in steps.items()}
    for name in TopologicalSorter(waits).static_order():
        before = max((end[one] for one in waits[name]), default=0.0)
        end[name] = before + own_ms(steps[name], built.job)
    return max(end.values())


def copies(built: Program) -> list[int]:
    """How often each step is there in the whole job."""
    many = instances(built.job)
    return [max(many[step.spread]) + 1 for step in built.steps]
