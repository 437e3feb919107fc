"""What everybody must know of a fabric, in one record that stands beside its function."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from topox_core.schema.fields import PRINTABLE, setting
from topox_core.schema.records import check_fields

MAX_NAME = 40  # characters that legends have room for
# What draws a point, filled or open, and a line.
SHAPES = (
    *("circle", "square", "diamond", "cross", "x", "pentagon", "hexagon", "star"),
    *("triangle-up", "triangle-down", "triangle-left", "triangle-right"),
)
MARKS = (*SHAPES, *(f"{shape}-open" for shape in SHAPES))
DASHES = r"^(solid|dot|dash|longdash|dashdot|longdashdot|\d+px(,\d+px)*)$"
_name = setting(min_length=1, max_length=MAX_NAME, without=PRINTABLE)
_colour = setting(pattern="^#[0-9A-Fa-f]{6}$", like="a colour such as #4B3FA8")
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
        loaded when it is first asked for. (Its type would load what computes.)
    letter
        What stands for it where there is no room for its name.
    colours
        On light and on dark ground, as ``#rrggbb``.
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

    Raises
    ------
    InputError
        If a field is not as it says.
    """

    label: Annotated[str, _name]
    spoken: Annotated[str, _name]
    function: Any
    letter: Annotated[str, setting(min_length=1, max_length=1, without=PRINTABLE)]
    colours: Annotated[tuple[Annotated[str, _colour], ...], setting(min_length=2, max_length=2)] = (
        "#999933",
        "#999933",
    )
    dash: Annotated[str, setting(pattern=DASHES, like="a dash such as longdash or 6px,3px")] = (
        "longdash"
    )
    mark: Annotated[str, setting(choices=MARKS)] = "circle-open"
    plural: bool = False
    built_as: str = ""
    pays_delay: bool = False
    by_rule: bool = False
    mapped: bool = False
    usual: bool = False
    options: tuple[str, ...] = ()
    alone_on: tuple[str, ...] = ()
    on_ideal: OnIdeal = ""

    def __post_init__(self) -> None:
        check_fields(self)
