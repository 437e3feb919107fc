"""TopologyFinder's result: the layout, its rings, and a record of every step."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from topox_core.errors import InputError
from topox_core.model.execution import Layout
from topox_core.topology.routing import Hops, RoutedNetwork
from topox_core.topology.traffic import Group, Pair
from topox_core.topology.wiring import SwitchWiring


@dataclass(frozen=True)
class LinkSet:
    """Circuits that belong together: one stride of rings, one matching, the connecting ring.

    ``kind`` is ``ring``, ``matching``, ``connect`` or ``candidate`` (considered, not laid).
    """

    name: str
    kind: str
    pairs: tuple[Pair, ...]

    @property
    def laid(self) -> bool:
        """Whether these are circuits, not candidates."""
        return self.kind != "candidate"


@dataclass(frozen=True)
class LayoutStep:
    """One step of the algorithm.

    Attributes
    ----------
    kind
        ``split``, ``candidates``, ``choose``, ``connect``, ``matching`` or ``route``.
    text
        What happened, in one sentence.
    data
        The numbers behind it, as JSON would hold them (docs/topology.md lists the keys by kind).
    links
        The circuits that it lays or considers, in the order in which the player adds them.
    """

    kind: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)
    links: tuple[LinkSet, ...] = ()


@dataclass(frozen=True)
class LayoutResult:
    """A layout that TopologyFinder computed.

    Attributes
    ----------
    layout
        Circuits and routes.
    steps
        How it came about.
    variant, degree
        As asked for.
    degree_all_reduce, degree_model_parallel
        d_A and d_MP, the split of a server's ports.
    rings
        Groups that have circuits of their own, with the directed strides laid for them: member i to
        member i + p. A stride that stands twice has two parallel circuits a member.
    riding
        For every group of the demand the strides its rings should run on: its own, or the ones with
        fewest hops over other circuits.
    strides
        By group size the strides chosen (of rings in both directions one of p and n - p).
    wiring
        The circuits one by one, with the switch plane each lies on.
    """

    layout: Layout
    steps: tuple[LayoutStep, ...]
    variant: str
    degree: int
    degree_all_reduce: int
    degree_model_parallel: int
    rings: Mapping[Group, tuple[int, ...]]
    riding: Mapping[Group, tuple[int, ...]]
    strides: Mapping[int, tuple[int, ...]]
    wiring: SwitchWiring

    @cached_property
    def network(self) -> RoutedNetwork:
        """The circuits as a graph."""
        return RoutedNetwork(self.layout.circuits)

    @property
    def hops(self) -> Hops:
        """Diameter and mean hops over all ordered pairs of servers."""
        return self.network.hops

    @cached_property
    def longest_route(self) -> int:
        """Hops of the longest route between servers that exchange data; 0 if none do."""
        routes = self.layout.routes.values()
        return max((len(path) - 1 for paths in routes for path in paths), default=0)


def ring_strides(result: LayoutResult, members: Iterable[int]) -> tuple[int, ...]:
    """Return the strides for a group's all-reduces, one ring each with an equal share.

    Strides are in places within the group, as :class:`~topox_core.model.transfer_graph.Lowering`
    has them; one that stands twice has twice the circuits, so it gets two rings.

    Raises
    ------
    InputError
        If the group is none of the demand that the layout was found for.
    """
    group = tuple(members)
    if group not in result.riding:
        shown = ", ".join(map(str, group[:8])) + (", ..." if len(group) > 8 else "")
        problem = f"the layout was found for other groups than ({shown})"
        raise InputError(problem, file="topology", field="members")
    return result.riding[group]
