"""What the photonic rails paper's authors measured: a window list, iteration times by delay.

The figures are those of the evaluation folder of their public artifact (opusfabric/Opus, MIT
licence); they belong to a later version of the system than the paper's first, so they are compared
in shape.
"""

from dataclasses import dataclass, replace

import numpy as np

from topox_core.errors import refuse_if
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.iteration import COMPUTE, RailIteration, Window

MAX = 1.0


def pass_factors(iteration: RailIteration, spread: float, seed: int) -> FloatArray:
    """Return of each node the factor on its computing time: one draw for each pass of each rank.

    Log-normal with mean 1 and standard deviation ``spread`` of the logarithm; communications have 1.
    The same seed gives the same factors.

    Raises
    ------
    InputError
        If ``spread`` is not from 0 to ``MAX``.
    """
    refuse_if(
        (not 0 <= spread <= MAX, f"must be from 0 to {MAX:g} (got {spread:g})"),
        file="settings",
        field="spread",
    )
    factors = np.ones(len(iteration))
    computes = np.flatnonzero(iteration.kind == COMPUTE)
    passes = np.stack((iteration.rank, iteration.work, iteration.microbatch))[:, computes]
    unique, of_node = np.unique(passes, axis=1, return_inverse=True)
    draws = np.random.default_rng(seed).standard_normal(unique.shape[1])
    factors[computes] = np.exp(spread * draws - spread**2 / 2)[of_node.ravel()]
    return factors


def jittered(iteration: RailIteration, spread: float, seed: int) -> RailIteration:
    """Return the iteration with every pass's computing times scaled by :func:`pass_factors`."""
    return replace(
        iteration, duration_ms=iteration.duration_ms * pass_factors(iteration, spread, seed)
    )


@dataclass(frozen=True)
class MeasuredSweep:
    """Mean iteration time against switching delay, emulated on Perlmutter.

    Attributes
    ----------
    provisioned
        False: circuits are asked for on demand.
    baseline_s
        The same job without the controller.
    rows
        (delay in ms, iteration in s).
    caveat
        What to know before comparing.
    """

    name: str
    gpus: int
    provisioned: bool
    baseline_s: float
    rows: tuple[tuple[float, float], ...]
    caveat: str


WINDOWS_ITERATION_MS = 13_817.6
WINDOWS_PROVENANCE = (
    "measured: one iteration of Llama 3 8B with TP, FSDP and PP on 16 GPUs (artifact opusfabric/Opus, "
    "evaluation/llama-3-3d-16-latency). A batch of 24, not the paper's; three pipeline phases are logged to "
    "end before they start and are taken as points"
)
# FSDP's traffic and the pipeline's take turns; neither begins nor bytes are told.
WINDOWS = tuple(
    Window(0, 0, *(("fsdp", "pp") if k % 2 == 0 else ("pp", "fsdp")), "", 0.0, length_ms, 0.0)
    for k, length_ms in enumerate(
        (32.9, 55.2, 36.7, 0.45, 0.84, 2221.8, 541.8, 1.73, 0.84, 331.2, 85.6, 1961.5, 2.05, 17.2)
    )
)

_DELAYS_MS = (0.0, 10.0, 50.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 2000.0, 3000.0)


def _rows(*seconds: float) -> tuple[tuple[float, float], ...]:
    return tuple(zip(_DELAYS_MS, seconds, strict=False))


SWEEPS = (
    MeasuredSweep(
        "Llama 3 8B, on demand",
        16,
        False,
        10.178,
        _rows(10.442, 10.461, 10.682, 10.904, 11.884, 13.108, 14.157, 15.401, 21.227, 27.323),
        "the controller alone costs 2.6 % at 0 ms; at 100 ms 7.1 % above no controller",
    ),
    MeasuredSweep(
        "Llama 3 8B, provisioned",
        16,
        True,
        10.178,
        _rows(10.222, 10.371, 10.320, 10.614, 11.269, 12.557, 13.954, 15.122, 20.347, 26.435),
        "at 100 ms 4.3 % above no controller; the dip at 50 ms is noise between runs",
    ),
    MeasuredSweep(
        "Llama 3 8B, on demand",
        64,
        False,
        14.499,
        _rows(14.709, 14.703, 14.933, 14.991, 15.766, 17.235, 18.332, 19.551),
        "not measured beyond 1,000 ms",
    ),
    MeasuredSweep(
        "Llama 3 8B, provisioned",
        64,
        True,
        14.499,
        _rows(13.973, 13.986, 14.093, 14.308, 15.027, 16.173, 17.593, 18.721),
        "faster than its own run without a controller up to 100 ms: no saving should be read into it",
    ),
)
