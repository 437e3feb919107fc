"""The Pareto front: the points that no other point beats in one measure without losing in another."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from topox_core.model.transfer_graph import FloatArray

# A measure of some points; None where a point has no value of it.
Column = Sequence[float | None]


def front_of(columns: Sequence[Column], more_is_better: Sequence[bool] = ()) -> NDArray[np.bool_]:
    """Return of each point whether it is on the front over some measures, one column each.

    Equal points are all on it, or none is; a point without a value of a measure is not.

    Parameters
    ----------
    more_is_better
        Of each measure; by default less is better in all of them.
    """
    signs = [-1.0 if better else 1.0 for better in more_is_better or [False] * len(columns)]
    values = np.array(
        [
            [np.nan if value is None else sign * value for value in column]
            for sign, column in zip(signs, columns, strict=True)
        ],
        np.float64,
    ).T
    known = np.isfinite(values).all(axis=1)
    on = np.zeros(len(values), bool)
    on[known] = _least(values[known])
    return on


def _least(values: FloatArray) -> NDArray[np.bool_]:
    """Return which rows no other row is below in one column and above in none.

    In order of the first column, then the next: no row can be beaten by one that comes later.
    """
    on = np.zeros(len(values), bool)
    kept = np.empty((0, values.shape[1]))
    for row in np.lexsort(values.T[::-1]):
        as_good = np.all(kept <= values[row], axis=1)
        if not np.any(as_good & np.any(kept < values[row], axis=1)):
            kept = np.vstack([kept, values[row]])
            on[row] = True
    return on
