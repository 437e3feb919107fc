"""A layer's pass in stretches: what it computes, and what it exchanges with other servers in between."""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.training.groups import Groups
from topox_core.training.iteration import Iteration
from topox_core.training.job import Job
from topox_core.training.layer import BACKWARD, expert_share, layer_time
from topox_core.training.passes import layer_passes
from topox_core.training.units import Unit


@dataclass(frozen=True)
class PassSegment:
    """What a pass does without a break: it computes, or it exchanges.

    Attributes
    ----------
    word
        Follows the word of the pass in the name of the step.
    ms, loaded_ms
        Of computing, and how much of that grows with the rows that experts are sent.
    parallelism
        cp or ep of an exchange; empty of computing.
    homeward
        Whether tokens come home from the experts.
    """

    word: str
    ms: float = 0.0
    loaded_ms: float = 0.0
    parallelism: str = ""
    homeward: bool = False


def layered(job: Job) -> bool:
    """Return whether layers exchange one by one, and something of it crosses servers or is uneven."""
    groups = Groups.of(job)
    crosses = groups.context.crosses or groups.experts.crosses
    return job.schedule.exchanges == "layer" and (crosses or job.plan.skew > 0)


def stretches(one: Iteration, way: str, unit: Unit) -> list[PassSegment]:
    """Return the pass of one layer in stretches.

    Forward a layer attends, its tokens travel to their experts (GShard, ICLR 2021), the experts work,
    the tokens travel home. Backward the gradients go the same way; what is recomputed in full is
    exchanged again before. What is not the experts' own counts as attention.
    """
    job, keys = one.job, PassSegment("cp", parallelism="cp")
    if job.shape.experts == 1:
        return [PassSegment("", unit.ms), keys]
    forward, backward = _experts_ms(one)
    if way == "f":
        attend = PassSegment("", unit.ms - forward.ms)
        return [attend, keys, *_visit(forward, "")]
    rest_ms = unit.ms - backward.ms
    again: list[PassSegment] = []
    if job.schedule.recompute == "full":
        layer = layer_passes(job).forward
        attend_ms = one.factor * (layer.compute_ms + layer.tensor_ms) - forward.ms
        again = [PassSegment(".again", attend_ms), *_visit(forward, ".again")]
        rest_ms -= attend_ms + forward.ms
    return [*again, *_visit(backward, ""), PassSegment("", rest_ms), keys]


def _visit(experts: PassSegment, ending: str) -> list[PassSegment]:
    """Return tokens' way to the experts, what those do, and the way home."""
    out = PassSegment(f"ep{ending}.out", parallelism="ep")
    home = PassSegment(f"ep{ending}.home", parallelism="ep", homeward=True)
    return [out, PassSegment(f".experts{ending}", experts.ms, experts.loaded_ms), home]


def _experts_ms(one: Iteration) -> tuple[PassSegment, PassSegment]:
    """Return what the experts of a layer compute forward and backward, the latter without what is computed again.

    Half of the layer's tensor-parallel exchanges is theirs.
    """
    job = one.job
    time, passes = layer_time(job), layer_passes(job)
    loaded_ms = one.factor * (time.block_ms + time.activation_ms)
    added_up = (2 * job.plan.gradient_bytes + 2) * expert_share(job)
    sums_ms = one.factor * job.machine.moved_ms(added_up)
    tensor = passes.forward.tensor_ms, passes.backward.tensor_ms
    if job.schedule.recompute == "full":
        tensor = tensor[0], tensor[1] - tensor[0]
    halves = [one.factor * ms / 2 for ms in tensor]
    back_ms = BACKWARD * loaded_ms
    return (
        PassSegment("", loaded_ms + halves[0], loaded_ms),
        PassSegment("", back_ms + sums_ms + halves[1], back_ms),
    )
