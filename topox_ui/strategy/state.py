"""What can be chosen on the page Plans."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from topox_core.fabrics.registry import FABRICS
from topox_core.strategy.models import MODELS
from topox_core.training.machine import MACHINES
from topox_ui.state.page_state import Index, NotNegative, PageState, one_of, some_of
from topox_ui.state.session import Lasting

# The contents and the name of the strategy file that the reader brought.
OWN_STRATEGY = Lasting[tuple[bytes, str]]("strategy_file")

Memory = Annotated[float, Field(ge=0, le=10_000)]
Speed = Annotated[float, Field(gt=0, le=1e6)]
Number = Annotated[int, Field(ge=1, le=1_000_000)]


class StrategyState(PageState):
    """The model and how it is split, the search's choices, and those of the ranked plans.

    ``servers``, ``way``, ``memory_gb`` and ``batch`` are None where the model's own holds, ``gpus``,
    ``gpu_memory_gb`` and ``gpu_gbps`` where the machine's holds; ``plan`` is the place of a plan in the
    ranking. ``fabric`` judges where ``network`` is a fabric, beside the fabrics of
    ``beside``; ``proposals`` are those of its search.
    """

    prefix = "strategy."
    resets: ClassVar = {
        "model": ("way", "servers", "memory_gb", "batch", "plan"),
        "machine": ("gpus", "gpu_memory_gb", "gpu_gbps", "plan"),
    }

    model: Annotated[str, one_of(MODELS)] = "candle-16"  # the search wins on it
    way: Literal["search", "plans"] | None = None
    servers: Annotated[int, Field(ge=1, le=65_536)] | None = None

    ports: Annotated[int, Field(ge=1, le=64)] = 4
    port_gbps: Speed = 100.0
    network: Literal["switch", "circuits", "fabric"] = "switch"
    fabric: Annotated[str, one_of(FABRICS)] = "scheduled"
    beside: Annotated[tuple[str, ...], *some_of(FABRICS)] = ("static",)
    delay_ms: NotNegative = 0.01
    proposals: Index = 100
    budget: Index = 1_000
    memory_gb: Memory | None = None
    alpha: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    seed: Index = 0
    import_as: Literal["fixed", "start"] = "fixed"

    machine: Annotated[str, one_of(MACHINES)] = "h100"
    gpus: Number | None = None
    gpu_memory_gb: Memory | None = None
    gpu_gbps: Speed | None = None
    batch: Number | None = None
    plan: Index = 0
