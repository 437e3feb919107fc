"""One graph on one cluster under one model: what every answer belongs to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import TaskGraph
from topox_core.schedule.settings import Settings
from topox_ui.state.loading import Loaded
from topox_ui.state.scenario import Scenario


@dataclass(frozen=True)
class Case:
    """One graph on one cluster under one model: what a result belongs to."""

    graph: TaskGraph
    cluster: Cluster
    settings: Settings

    @cached_property
    def key(self) -> str:
        """Digest of everything that a schedule depends on; who solves and for how long does not count.

        The names count: sessions share results, and no session may read those of another one's files.
        """
        return f"{self.cluster.digest}|{self.job_key}"

    @cached_property
    def job_key(self) -> str:
        """The same without the cluster: what plans for several clusters have in common."""
        model = replace(self.settings, engine="list", time_limit_s=60.0, gap=0.0, seed=0, threads=1)
        return f"{self.graph.digest}|{self.names!r}|{model}"

    @property
    def names(self) -> tuple[str, str]:
        """What graph and cluster are called, which their digests leave out."""
        return self.graph.name, self.cluster.name

    def at_delay(self, delay_ms: float) -> Case:
        """Return the same case with another reconfiguration delay."""
        return replace(self, cluster=self.cluster.changed(reconfiguration_ms=delay_ms))


def listing(settings: Settings) -> Settings:
    """Return the settings of a list schedule, which the limits of exact solves do not concern."""
    return replace(settings, engine="list", time_limit_s=Settings.time_limit_s)


def case_of(loaded: Loaded, scenario: Scenario) -> Case:
    """Return the case of what is loaded and chosen; raises InputError where choices do not go together."""
    return Case(loaded.graph, scenario.cluster(loaded.cluster), scenario.settings())
