"""``--keep``: the answer of a command put into the run library, with the files it was computed from."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from topox_core.cli.library_options import LIBRARY, opened
from topox_core.cli.options import Option, add_options, wrong_option
from topox_core.cli.printing import note
from topox_core.text.numbers import plural

if TYPE_CHECKING:
    from topox_core.fabrics.options import FabricOptions
    from topox_core.library.record import RunRecord
    from topox_core.model.cluster import Cluster
    from topox_core.schedule.settings import Settings
    from topox_core.studies.kept_run import Kept

_KEEP = Option(
    "--keep NAME",
    str,
    "keep the answer in the run library, under this name if one is given",
    nargs="?",
    const="",
)


def add_keep(command: argparse.ArgumentParser) -> None:
    """Add ``--keep`` and ``--library``."""
    add_options(command, _KEEP, LIBRARY)


def check_keep(options: argparse.Namespace) -> None:
    """Refuse now a library that could not be written to later.

    Raises
    ------
    InputError
        If there is one to be written to and it cannot be.
    """
    if options.keep is not None:
        with opened(options, to_write=True):
            return
    if options.library is not None:
        raise wrong_option("--library", "says where to keep the answer: give --keep too")


def keep(
    options: argparse.Namespace,
    cluster: Cluster,
    settings: Settings,
    fabric: FabricOptions,
    records: Callable[[Kept], list[RunRecord]],
) -> None:
    """Keep the answer if the user said so, and say under which number.

    Parameters
    ----------
    records
        What was computed, as records of the library.

    Raises
    ------
    InputError
        If the library cannot be written to, or the network of the answer cannot be priced.
    """
    if options.keep is None:
        return
    from topox_core.economics.price_sets import SET_BY_SPEED, price_set
    from topox_core.studies.kept_run import Kept
    from topox_core.studies.subject import Subject, resolve

    resolved = resolve(Subject("files", {"graph": options.graph, "cluster": options.cluster}))
    prices = price_set(SET_BY_SPEED)
    kept = Kept(resolved, cluster, settings, fabric, prices, SET_BY_SPEED, name=options.keep)
    made = records(kept)
    with opened(options, to_write=True) as library:
        for one in resolved.files:
            library.keep_input(one.digest, one.kind, one.name, one.content)
        runs = library.add(made)
        for run in runs if options.keep else ():
            library.rename(run, options.keep)
    numbers = ", ".join(map(str, runs)) or "none"
    note(f"kept in {library.path}: {plural(len(runs), 'run')} ({numbers})")
