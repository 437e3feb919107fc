"""Small jobs of all kinds, to try what must hold of any."""

from hypothesis import strategies as st

from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
from topox_core.training.plan import Plan, Schedule
from topox_core.training.shape import Shape


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Small jobs of all kinds."""
    order = draw(st.sampled_from(["1f1b", "afab", "interleaved"]))
    stages = draw(st.sampled_from([2, 3] if order == "interleaved" else [1, 2, 3, 5]))
    experts, expert = draw(st.sampled_from([(1, 1), (4, 1), (4, 2)]))
    shape = Shape(
        *(
            "tiny",
            "Tiny",
            "made up",
            12,
            256,
            8,
            128,
            512,
            draw(st.sampled_from([2, 3])),
            1024,
            128,
        ),
        experts=experts,
        top_k=min(2, experts),
        tied=draw(st.booleans()),
        dropout=draw(st.booleans()),
    )
    plan = Plan(
        tensor=draw(st.sampled_from([1, 2, 4])),
        context=draw(st.sampled_from([1, 2])),
        data=expert * draw(st.sampled_from([1, 2, 3])),
        pipeline=stages,
        expert=expert,
        microbatches=stages * draw(st.integers(1, 4))
        if order == "interleaved"
        else draw(st.integers(1, 9)),
        microbatch_size=draw(st.sampled_from([1, 3])),
        sequence_parallel=draw(st.booleans()),
        zero=draw(st.sampled_from([0, 1, 2, 3])),
    )
    by_layer = draw(st.booleans())
    schedule = Schedule(
        order=order,
        virtual=2 if order == "interleaved" else 1,
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        attention=draw(st.sampled_from(["flash", "full"])),
        overlap_gradients=draw(st.booleans()),
        overlap_sends=draw(st.booleans()),
        split_sends=draw(st.booleans()),
        tensor_overlap=draw(st.sampled_from(["none", "backward"])),
        exchanges="layer" if by_layer else "pass",
        overlap_exchanges=by_layer and plan.zero < 3 and draw(st.booleans()),
    )
    return Job(shape, plan, MACHINES["perlmutter"], schedule)
