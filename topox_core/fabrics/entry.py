"""What everybody must know of a fabric, in one record that stands beside its function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from topox_core.fabrics.run import Fabric

OnIdeal = Literal["", "circuits", "shares"]


@dataclass(frozen=True)
class FabricEntry:
    """One fabric, as every list, legend, palette, price, map and link knows it.

    Attributes
    ----------
    label
        Its name on pages and in tables.
    spoken
        The same within a sentence.
    plural
        Whether that is a plural: circuits *are* fastest, a fat-tree *is*.
    function
        The :class:`~topox_core.fabrics.run.Fabric` that runs it, or ``module:function`` of one,
        loaded when it is first asked for.
    letter
        What stands for it where there is no room for its name.
    colours
        On light and on dark ground; text of the ground's ink or of white reads on both.
    dash, mark
        Of its line, and of a point on it (Plotly's words): never colour alone.
    built_as
        The network of :data:`topox_core.economics.networks.NETWORKS` whose parts it is made of;
        empty for one that nobody sells, which is a yardstick and no contender.
    pays_delay
        Whether circuits change while it runs. Only such a fabric depends on the reconfiguration
        delay.
    by_rule
        Whether its controller follows a rule and makes no plan: a shorter delay can make its
        iteration longer.
    mapped
        Whether the crossover map shows it unless other fabrics are chosen.
    usual
        Whether a comparison runs it unless fabrics are named.
    options
        The fields of :class:`~topox_core.fabrics.options.FabricOptions` that it reads.
    alone_on
        Its collectives may choose their algorithms; each is run alone on these fabrics. Whoever is
        never behind another fabric tries what that one tries.
    on_ideal
        What its run is to the ideal switch, which does the same at least as fast: circuits without
        delay, or bytes that share links.
    """

    label: str
    spoken: str
    function: str | Fabric
    letter: str
    colours: tuple[str, str] = ("#999933", "#999933")
    dash: str = "longdash"
    mark: str = "circle-open"
    plural: bool = False
    built_as: str = ""
    pays_delay: bool = False
    by_rule: bool = False
    mapped: bool = False
    usual: bool = False
    options: tuple[str, ...] = ()
    alone_on: tuple[str, ...] = ()
    on_ideal: OnIdeal = ""
