"""Measured iterations to compare predictions with: published ones, and files with the columns of a published table."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from topox_core.errors import InputError, errors_in_file, printable, refuse_if, shown
from topox_core.io.limits import MEASURED, check_count, number_in
from topox_core.io.tables import read_table
from topox_core.training.job import JOBS, Job
from topox_core.training.machine import MACHINES, Machine
from topox_core.training.plan import Plan, Schedule
from topox_core.training.shape import SHAPES, Shape, gpt

# The columns that vTrain published.
MODEL, GPUS, BATCH, MICRO = "Parameters (billion)", "# GPUs", "global batch", "micro batch"
HIDDEN, HEADS, LAYERS, SEQUENCE = "hidden size", "attention heads", "# layers", "sequence length"
TENSOR, DATA, PIPELINE = "tensor parallelism", "data parallelism", "pipeline parallelism"
TIME = "iteration time (ms)"
WHOLE = (GPUS, BATCH, MICRO, HIDDEN, HEADS, LAYERS, SEQUENCE, TENSOR, DATA, PIPELINE)
COLUMNS = (MODEL, *WHOLE, TIME)
# How far a stated parameter count may be from the shape's own; beyond it is in another unit.
_PARAMETERS_WITHIN = 1.5
CALIBRATION_FILE = Path(__file__).parent / "vtrain_multi_node_a.csv"


@dataclass(frozen=True)
class Measured:
    """One measured iteration.

    Attributes
    ----------
    row
        Where it stands: the row of its file, or of its table.
    model
        Its size in billions of parameters, as its source writes it.
    job
        What ran.
    measured_ms
        How long an iteration took.
    """

    row: int
    model: str
    job: Job
    measured_ms: float


def read_measured(data: bytes, file: str, machine: Machine | None = None) -> list[Measured]:
    """Read measured iterations of Megatron-DeepSpeed from a table with vTrain's columns.

    They ran with full recomputing, 1F1B, unfused attention, FP16 gradients that are reduced after the
    last backward pass, and a GPT with tied tables, learned positions and dropout.

    Parameters
    ----------
    machine
        What they ran on; vTrain's A100 servers if not given.

    Raises
    ------
    InputError
        If a column is missing, unknown or in another unit, a cell is empty or no number, or a row is a
        job that cannot be; row and column are named.
    """
    file = printable(file, 200) if file else "measurements"
    example = ",".join(COLUMNS[:3]) + ",..."
    table = read_table(data, file, MEASURED, COLUMNS, example, COLUMNS)
    found: list[Measured] = []
    for number, cells in table.records(file):
        check_count(len(found) + 1, MEASURED.entries, "rows a file may have", file)
        with errors_in_file(file, f"row {number}"):
            row = dict.fromkeys(COLUMNS, "") | cells
            found.append(_measured(row, number, machine or MACHINES["vtrain"]))
    refuse_if((not found, "holds no row"), file=file)
    return found


def _measured(row: Mapping[str, str], number: int, machine: Machine) -> Measured:
    values = {column: _number(row[column], column) for column in COLUMNS}
    whole = {column: int(values[column]) for column in WHOLE}
    gpus = whole[TENSOR] * whole[DATA] * whole[PIPELINE]
    refuse_if(
        (gpus != whole[GPUS], f"must be tensor x data x pipeline = {gpus:,} (got {whole[GPUS]:,})"),
        field=GPUS,
    )
    step = whole[DATA] * whole[MICRO]
    refuse_if(
        (
            whole[BATCH] % step != 0,
            f"must be a multiple of data parallelism x micro batch = {step:,} (got {whole[BATCH]:,})",
        ),
        field=BATCH,
    )
    try:
        job = _job(whole, row[MODEL], machine)
    except InputError as error:
        column = _COLUMN_OF.get(error.field, error.field)
        raise InputError(error.problem, field=column) from None
    billions = job.shape.parameters / 1e9
    refuse_if(
        (
            not 1 / _PARAMETERS_WITHIN < billions / values[MODEL] < _PARAMETERS_WITHIN,
            f"must be near the {billions:,.3g} billion of this shape (got {shown(row[MODEL])})",
        ),
        field=MODEL,
    )
    return Measured(number, row[MODEL], job, values[TIME])


_COLUMN_OF = {
    "tensor": TENSOR,
    "data": DATA,
    "pipeline": PIPELINE,
    "microbatches": BATCH,
    "microbatch_size": MICRO,
    "layers": LAYERS,
    "hidden": HIDDEN,
    "heads": HEADS,
    "sequence": SEQUENCE,
}


def _number(cell: str, column: str) -> float:
    refuse_if((not cell, "is empty"), field=column)
    kind = "a whole number of at least 1" if column in WHOLE else "a number above 0"
    value = number_in(cell)
    refuse_if(
        (
            not (0 < value <= 1e12 and (column not in WHOLE or value == int(value))),
            f"must be {kind}, without a unit (got {shown(cell)})",
        ),
        field=column,
    )
    return value


def _job(whole: Mapping[str, int], model: str, machine: Machine) -> Job:
    plan = Plan(
        tensor=whole[TENSOR],
        data=whole[DATA],
        pipeline=whole[PIPELINE],
        microbatches=whole[BATCH] // (whole[DATA] * whole[MICRO]),
        microbatch_size=whole[MICRO],
        gradient_bytes=2,
    )
    name = printable(f"gpt-{model}b", 40)
    shape = gpt(name, whole[LAYERS], whole[HIDDEN], whole[HEADS], whole[SEQUENCE])
    schedule = Schedule(recompute="full", attention="full", overlap_gradients=False)
    return Job(shape, plan, machine, schedule, name=name)


def calibration_rows() -> list[Measured]:
    """Return the rows of vTrain that matrix and memory share were fitted to."""
    return read_measured(CALIBRATION_FILE.read_bytes(), CALIBRATION_FILE.name)


# Model, layers, hidden, heads, stages, virtual stages, batch, microbatch, seconds with full and with
# selective recomputing.
_TABLE_5 = (
    ("22", 48, 6144, 64, 1, 1, 4, 4, 1.42, 1.10),
    ("175", 96, 12_288, 96, 8, 3, 64, 1, 18.13, 13.75),
    ("530", 105, 20_480, 128, 35, 3, 280, 1, 49.05, 37.83),
    ("1000", 128, 25_600, 160, 64, 1, 512, 1, 94.42, 71.49),
)


def megatron_rows() -> list[Measured]:
    """Return Table 5 of Korthikanti et al. (MLSys 2023): A100, tensor parallel 8, nothing refitted.

    Odd rows recompute in full, even ones the attention scores alone, with sequence parallelism.
    """
    asked = product(_TABLE_5, enumerate(("full", "selective")))
    return [
        Measured(
            number,
            name,
            Job(
                gpt(f"gpt-{name}b", layers, hidden, heads),
                Plan(
                    tensor=8,
                    pipeline=stages,
                    microbatches=batch // size,
                    microbatch_size=size,
                    gradient_bytes=2,
                    sequence_parallel=bool(split),
                ),
                MACHINES["a100"],
                Schedule(
                    order="interleaved" if virtual > 1 else "1f1b",
                    virtual=virtual,
                    recompute=recompute,
                    attention="full",
                    overlap_gradients=False,
                ),
                name=f"gpt-{name}b",
            ),
            seconds[split] * 1e3,
        )
        for number, (
            (name, layers, hidden, heads, stages, virtual, batch, size, *seconds),
            (split, recompute),
        ) in enumerate(asked, 1)
    ]


# Llama 3 Herd (arXiv 2407.21783), table 4: BF16 TFLOP/s a GPU. The paper does not say whether
# attention is counted; here it is not, six operations a parameter and token.
_HERD_TFLOPS = {"llama3.1-405b-8192": 430.0, "llama3.1-405b-16384": 400.0}
# As many virtual stages as leave none of the 126 layers' chunks empty.
_INTERLEAVED = {"schedule__order": "interleaved", "schedule__virtual": 7}


def uncalibrated_rows() -> list[Measured]:
    """Return published iterations where nothing was calibrated; rows of Llama 3.1 once in 1F1B order, once interleaved.

    Times of Llama 3.1 405B are derived from its published speed. The orders are assumed: the papers do
    not print them.
    """
    found: list[Measured] = []
    for name, tflops in _HERD_TFLOPS.items():
        job = JOBS[name]
        operations = 6.0 * job.shape.parameters * job.plan.batch * job.shape.sequence
        derived_ms = operations / (job.plan.gpus * tflops * 1e9)
        for changes in ({}, _INTERLEAVED):
            found.append(Measured(len(found) + 1, "405", job.changed(**changes), derived_ms))
    return found


# Rows that the factor of production runs was fitted to: those of MT-NLG, the first ones.
FITTED = 3
_MACHINE = MACHINES["a100-production"]
_RECOMPUTED = Schedule(recompute="full", attention="full")
# Smith et al. (arXiv 2201.11990): replicas, and seconds of an iteration of 1,920 sequences.
_MT_NLG = ((8, 60.1), (10, 50.2), (12, 44.4))
# BigScience's BLOOM (arXiv 2211.05100): about 105 s on 384 GPUs.
_BLOOM = Shape(
    *("bloom-176b", "BLOOM 176B", "BLOOM (arXiv 2211.05100), table 3"),
    *(70, 14_336, 112, 14_336, 57_344, 2, 250_880, 2048),
    tied=True,
)
# LLaMA (arXiv 2302.13971), section 2.4: tokens a second and GPU, of 2,048.
_LLAMA_SPEED = 380.0
_LLAMA = Shape(
    *("llama-65b", "LLaMA 65B", "LLaMA (arXiv 2302.13971), table 2"),
    *(80, 8192, 64, 8192, 22_016, 3, 32_000, 2048),
)
# MegaScale (NSDI 2024), table 2: its baseline, Megatron-LM, with 12,288 GPUs.
_MEGASCALE_S = 8.57


def production_rows() -> list[Measured]:
    """Return published production runs, as the production figures of the A100 predict them.

    The order of GPT-3 is assumed, and the plan of LLaMA 65B, which is not printed: the fastest of those tried.
    """
    mt_nlg = gpt("mt-nlg-530b", 105, 20_480, 128)
    sharded = Plan(tensor=4, data=512, microbatch_size=4, sequence_parallel=True, zero=3)
    rows = (
        *(
            (
                ("530", mt_nlg, "MT-NLG 530B", seconds),
                Plan(tensor=8, pipeline=35, data=data, microbatches=1920 // data),
                _RECOMPUTED,
            )
            for data, seconds in _MT_NLG
        ),
        (
            ("176", _BLOOM, "BLOOM 176B", 105.0),
            Plan(tensor=4, pipeline=12, data=8, microbatches=128, microbatch_size=2, zero=1),
            _RECOMPUTED,
        ),
        (
            (
                "65",
                _LLAMA,
                "LLaMA 65B",
                sharded.batch * _LLAMA.sequence / (sharded.gpus * _LLAMA_SPEED),
            ),
            sharded,
            Schedule(),
        ),
        (
            ("175", SHAPES["gpt3-175b"], "GPT-3 175B", _MEGASCALE_S),
            Plan(tensor=8, data=192, pipeline=8, microbatches=32, sequence_parallel=True, zero=1),
            Schedule("interleaved", 6, recompute="selective"),
        ),
    )
    return [
        Measured(
            number,
            model,
            Job(
                shape,
                plan,
                _MACHINE,
                schedule,
                f"{shape.name}-{plan.gpus}",
                f"{words} on {plan.gpus:,} A100",
            ),
            seconds * 1e3,
        )
        for number, ((model, shape, words, seconds), plan, schedule) in enumerate(rows, 1)
    ]


def benchmark_rows() -> list[Measured]:
    """Return the same runs as the benchmark figures of the A100 predict them."""
    benchmark = MACHINES["a100"]
    return [replace(row, job=replace(row.job, machine=benchmark)) for row in production_rows()]
