"""The samples: at the top of a checkout, or inside the package once installed."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from topox_core.io.limits import check_one_of

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parent / "sample_data"
SAMPLE_FOLDER = _CHECKOUT if (_CHECKOUT / "index.json").is_file() else _PACKAGE / "sample_data"

Kind = TypeVar("Kind")


def samples_of(key: str, kind: Callable[..., Kind]) -> dict[str, Kind]:
    """Return the samples of one kind by name, from ``index.json``.

    Parameters
    ----------
    key
        Key of the index that lists them.
    kind
        Makes a sample from an entry's keywords, ``name`` among them.
    """
    index = json.loads((SAMPLE_FOLDER / "index.json").read_text(encoding="utf-8"))
    return {entry["name"]: kind(**entry) for entry in index[key]}


def named_sample(samples: Mapping[str, Kind], name: str) -> Kind:
    """Return a sample.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    check_one_of(name, samples, file="sample", field="name")
    return samples[name]
