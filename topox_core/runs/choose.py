"""Who computes: worker processes here, or those of a Dask scheduler; the numbers are the same."""

from __future__ import annotations

import os

from topox_core.errors import InputError
from topox_core.runs.executor import Executor, LocalExecutor

SCHEDULER_VARIABLE = "DASK_SCHEDULER_ADDRESS"


def executor_for(scheduler: str | None = None, workers: int | None = None) -> Executor:
    """Return an executor, which the caller ends with ``kill``.

    Parameters
    ----------
    scheduler
        Address of a Dask scheduler; without one that of the environment variable
        ``DASK_SCHEDULER_ADDRESS``, unless ``workers`` are asked for; ``""`` for this machine.
    workers
        Processes on this machine; by default one a core.

    Raises
    ------
    InputError
        If both are given, and as :class:`~topox_core.runs.dask_executor.DaskExecutor` does.
    """
    if scheduler and workers:
        raise InputError(
            "a scheduler has workers of its own: give one or the other", field="workers"
        )
    if scheduler is None and workers is None:
        scheduler = os.environ.get(SCHEDULER_VARIABLE, "")
    if not scheduler:
        return LocalExecutor(workers)
    from topox_core.runs.dask_executor import DaskExecutor

    return DaskExecutor(scheduler)
