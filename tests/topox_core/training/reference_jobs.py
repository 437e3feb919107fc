"""The six jobs of the reference on training iterations, and every figure that it states for them."""

from topox_core.training.job import Job
from topox_core.training.machine import MACHINES
from topox_core.training.plan import Plan, Schedule
from topox_core.training.shape import SHAPES

_AFTER = Schedule(overlap_gradients=False)

R1 = Job(
    SHAPES["llama3-8b"],
    Plan(tensor=8, pipeline=4, data=2, microbatches=8),
    MACHINES["h100"],
    _AFTER,
    name="R1",
)
R2 = R1.changed(
    plan__sequence_parallel=True,
    plan__zero=1,
    schedule__recompute="full",
    schedule__order="interleaved",
    schedule__virtual=2,
    name="R2",
)
R3 = Job(
    SHAPES["llama3-8b"],
    Plan(tensor=4, data=2, pipeline=2, microbatches=2, zero=3),
    MACHINES["perlmutter"],
    Schedule(recompute="full", split_sends=False, overlap_gradients=False),
    name="R3",
)
R4 = Job(
    SHAPES["gpt3-175b"],
    Plan(tensor=8, data=4, pipeline=16, microbatches=128, microbatch_size=3, gradient_bytes=2),
    MACHINES["vtrain"],
    Schedule(recompute="full", attention="full", overlap_gradients=False),
    name="R4",
)
R5 = Job(
    SHAPES["mixtral-8x7b"],
    Plan(
        tensor=8,
        pipeline=4,
        data=8,
        expert=8,
        microbatches=8,
        capacity=1.25,
        sequence_parallel=True,
    ),
    MACHINES["h100"],
    Schedule(recompute="selective", overlap_gradients=False),
    name="R5",
)
R6 = Job(
    SHAPES["llama3-405b"],
    Plan(
        tensor=8,
        context=2,
        pipeline=16,
        data=32,
        microbatches=32,
        sequence_parallel=True,
        zero=1,
    ),
    MACHINES["h100"],
    name="R6",
)
JOBS = {job.name: job for job in (R1, R2, R3, R4, R5, R6)}

# The reference's table; times in ms, a column a job.
TABLE = """
parameters | 8,030,261,248 | 8,030,261,248 | 8,030,261,248 | 174,577,692,672 | 46,702,792,704 | 405,853,388,800
model operations | 7.5907534e+15 | 7.5907534e+15 | 1.89768835e+15 | 3.38619675e+18 | 4.68589866e+16 | 2.20236577e+19
tokens | 8,192 | 8,192 | 8,192 | 6,144 | 8,192 | 4,096
layer forward | 1.14788846 | 0.897482249 | 5.07170224 | 13.7775103 | 1.77925781 | 4.88705886
layer backward | 2.45738567 | 2.8540555 | 15.9773576 | 42.2846592 | 3.81083058 | 11.5626674
tensor forward | 0.84438662 | 0.92638662 | 0.997411368 | 2.47550484 | 0.92638662 | 1.61317324
tensor backward | 0.84438662 | 1.85277324 | 1.99482274 | 4.95100968 | 0.92638662 | 1.61317324
context forward | 0 | 0 | 0 | 0 | 0 | 0.0926033778
context backward | 0 | 0 | 0 | 0 | 0 | 0.0926033778
experts forward | 0 | 0 | 0 | 0 | 0.907559111 | 0
experts backward | 0 | 0 | 0 | 0 | 0.907559111 | 0
pass forward first | 16.3603939 | 7.52707213 | 100.07399 | 98.755843 | 29.137225 | 46.5531416
pass backward first | 26.4141783 | 18.827315 | 294.917285 | 283.414013 | 45.1582104 | 92.8791084
pass forward last | 18.0867392 | 9.44401406 | 110.83544 | 101.523436 | 29.4631686 | 49.3828109
pass backward last | 31.1334488 | 23.3559888 | 317.936301 | 292.662458 | 46.5048875 | 99.7483268
message bytes | 8,388,608 | 8,388,608 | 67,108,864 | 18,874,368 | 8,388,608 | 16,777,216
message | 0.464010166 | 0.232413511 | 3.02861618 | 2.36309781 | 0.232413511 | 0.418827022
held first | 283,779,072 | 283,779,072 | 1,003,782,144 | 1,440,761,856 | 234,528,768 | 3,051,909,120
held last | 283,779,584 | 283,779,584 | 1,003,783,168 | 1,437,617,664 | 234,529,280 | 3,051,911,168
reduced bytes | 1,135,116,288 | 1,135,116,288 | 4,015,128,576 | 2,881,523,712 | 233,472,000 | 12,207,636,480
gradients | 25.2758519 | 12.658426 | 0 | 384.274162 | 9.19054631 | 279.280083
exposed | 25.2758519 | 12.658426 | 0 | 384.274162 | 9.19054631 | 187.787384
gather after update | 0 | 6.35221298 | 0 | 0 | 0 | 139.818042
tied | 0 | 0 | 0 | 14.0320133 | 0 | 0
update | 3.38841294 | 1.69420647 | 12.9103944 | 28.2640874 | 2.80034961 | 0.59472086
pipeline | 527.272966 | 557.417096 | 1261.62061 | 56542.0201 | 833.188937 | 7466.97818
iteration | 555.937186 | 578.121919 | 1274.531 | 56968.5904 | 845.179753 | 7795.17833
utilisation | 0.215716265 | 0.207438413 | 0.298263364 | 0.372093565 | 0.218981562 | 0.348720243
"""
EXPECTED = {
    (name, line.split("|")[0].strip()): float(cell.replace(",", ""))
    for line in TABLE.strip().splitlines()
    for name, cell in zip(JOBS, line.split("|")[1:], strict=True)
}
