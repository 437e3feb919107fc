"""TOPO-X Workbench: what optical circuit switches would do for an ML training job.

>>> import topox_core
>>> graph, cluster = topox_core.load_sample("moe")
>>> result = topox_core.schedule_iteration(graph, cluster)
>>> topox_core.draw(result).show()

The functions live in :mod:`topox_core.api` and are loaded when they are first asked for, so that
commands and worker processes start at once. Nothing in this package imports streamlit.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topox_core.api import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    api = import_module("topox_core.api")
    if name in api.__all__:
        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    api = import_module("topox_core.api")
    return sorted([*globals(), *api.__all__])
