"""The samples: at the top of a checkout, or inside the package once installed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from topox_core.errors import InputError

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parent / "sample_data"
SAMPLE_FOLDER = _CHECKOUT if (_CHECKOUT / "index.json").is_file() else _PACKAGE / "sample_data"

Kind = TypeVar("Kind")


class SampleIndex(Mapping[str, Kind]):
    """Samples of one kind by name, read from ``index.json`` at the first use.

    Parameters
    ----------
    key
        Key of the index that lists them.
    kind
        Makes a sample from an entry's keywords, ``name`` among them.
    """

    def __init__(self, key: str, kind: Callable[..., Kind]) -> None:
        self._key, self._kind = key, kind

    @cached_property
    def _samples(self) -> dict[str, Kind]:
        index = json.loads((SAMPLE_FOLDER / "index.json").read_text(encoding="utf-8"))
        return {entry["name"]: self._kind(**entry) for entry in index[self._key]}

    def __getitem__(self, name: str) -> Kind:
        return self._samples[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    def named(self, name: str) -> Kind:
        """Return a sample.

        Raises
        ------
        InputError
            If there is none of that name.
        """
        if name not in self:
            raise InputError(
                f"must be one of {', '.join(self)} (got {name[:80]})", file="sample", field="name"
            )
        return self[name]
