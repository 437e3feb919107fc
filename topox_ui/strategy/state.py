"""What can be chosen on the page Plans."""

from typing import Annotated, Any, ClassVar, Literal, Self

from msgspec.structs import replace

from topox_core.model.quantities import DelayMs, Gbps
from topox_core.schema.fields import setting
from topox_core.strategy.models import MODELS
from topox_core.strategy.search.moves import SearchSettings
from topox_core.training.machine import MACHINES, Machine
from topox_ui.state.choices import Fabric
from topox_ui.state.loading import own_job
from topox_ui.state.session import Count, Index, Lasting, PageState, as_in

# The training job that is loaded, as a model, and what the page opens with where there is none.
LOADED, FIRST = "loaded", "candle-16"  # the search wins on it
# The contents and the name of the strategy file that the reader brought.
OWN_STRATEGY = Lasting[tuple[bytes, str]]("strategy_file")
Memory = Annotated[float, setting(ge=0, le=10_000)]


class StrategyState(PageState):
    """The model and how it is split, the search's choices, and those of the ranked plans.

    ``model`` and ``machine`` are None where the loaded job's hold, or the page's first ones; ``servers``,
    ``way``, ``memory_gb`` and ``batch`` where the model's own hold, ``gpus``, ``gpu_memory_gb`` and
    ``gpu_gbps`` where the machine's hold; ``plan`` is the place of a plan in the ranking. ``fabric``
    judges where ``network`` is a fabric, beside the fabrics of ``beside``; ``proposals`` are those of
    its search.
    """

    prefix = "strategy."
    resets: ClassVar = {
        "model": ("way", "servers", "memory_gb", "batch", "plan"),
        "machine": ("gpus", "gpu_memory_gb", "gpu_gbps", "plan"),
    }

    model: Annotated[str, setting(choices=(LOADED, *MODELS))] | None = None
    way: Literal["search", "plans"] | None = None
    servers: Annotated[int, setting(ge=1, le=65_536)] | None = None

    ports: Annotated[int, setting("Ports per server", ge=1, le=64, steps=(1, 2, 4, 6, 8))] = 4
    port_gbps: Gbps = 100.0
    network: Literal["switch", "circuits", "fabric"] = "switch"
    fabric: Fabric = "scheduled"
    beside: tuple[Fabric, ...] = ("static",)
    delay_ms: DelayMs = 0.01
    proposals: Annotated[
        int, as_in(SearchSettings, "proposals"), setting(steps=(0, 10, 30, 100, 300, 1_000))
    ] = 100
    budget: Annotated[int, as_in(SearchSettings, "proposals")] = SearchSettings.proposals
    memory_gb: Memory | None = None
    alpha: Annotated[float, as_in(SearchSettings, "alpha")] = SearchSettings.alpha
    seed: Annotated[int, as_in(SearchSettings, "seed")] = SearchSettings.seed
    import_as: Literal["fixed", "start"] = "fixed"

    machine: Annotated[str, setting(choices=MACHINES)] | None = None
    gpus: Annotated[int, as_in(Machine, "gpus_per_server")] | None = None
    gpu_memory_gb: Memory | None = None
    gpu_gbps: Annotated[float, as_in(Machine, "nic_gbps")] | None = None
    batch: Count | None = None
    plan: Index = 0

    @property
    def of(self) -> str:
        """The model that is split; while none was chosen that of the reader's job."""
        if self.model is not None and self.model != LOADED:
            return self.model
        return FIRST if own_job() is None else LOADED

    def changed(self, **changes: Any) -> Self:
        """Return the state with some choices made anew; what belongs to a model stays with it when a job is loaded."""
        own = not changes.keys().isdisjoint(self.resets["model"])
        now = replace(self, model=self.of) if own else self
        return super(StrategyState, now).changed(**changes)
