"""Optical switching technologies: delay, ports, and GPUs with one switch a rail (Table 3)."""

from dataclasses import dataclass

from topox_core.errors import look_up, refuse_if

PORTS_PER_GPU = 2  # a ring takes two ports of the switch: 2-port NIC, transceivers that carry both ways (Table 3)
SCALE_UP = {"GB200": 72, "H200": 8}  # GPUs of one scale-up domain
SPLIT_NOTE = (
    "a rail split over several switches: the simulation assumes circuits between any two of its servers; "
    "fibres that join the switches are not counted"
)
_PUBLISHED = "published: Photonic Rails in ML Datacenters (arXiv 2507.08119), Table 3"


@dataclass(frozen=True)
class Technology:
    """One kind of optical circuit switch.

    Attributes
    ----------
    reconfiguration_ms
        Until a changed circuit carries light again.
    radix
        Ports of one switch.
    provenance
        Where the figures are from.
    """

    key: str
    name: str
    vendor: str
    reconfiguration_ms: float
    radix: int
    provenance: str = _PUBLISHED

    @property
    def title(self) -> str:
        """Its name and its ports, as menus have it."""
        return f"{self.name} ({self.radix:,})"


TECHNOLOGIES = (
    Technology("plzt", "PLZT", "EpiPhotonics", 0.00001, 16),
    Technology("sip", "Silicon photonics", "Lightmatter", 0.007, 32),
    Technology("rotornet", "RotorNet", "InFocus", 0.01, 128),
    Technology("mems", "3D MEMS", "Calient", 15.0, 320),
    Technology("piezo", "Piezo", "Polatis", 25.0, 576),
    Technology("lc", "Liquid crystal", "Coherent", 100.0, 512),
    Technology("robotic", "Robotic", "Telescent", 120_000.0, 1008),
)
# Of those that switch within a second, as a job needs it.
WIDEST = max(
    (one for one in TECHNOLOGIES if one.reconfiguration_ms < 1000), key=lambda one: one.radix
)
BY_KEY = {one.key: one for one in TECHNOLOGIES}


# What the lecture's table of optical switches has: no product, so no ports; radix 0 is not known.
_LECTURE = "lecture on networks for machine learning, table of optical switches"
LECTURE = (
    Technology("patch-panel", "Patch panel", "minutes; two taken", 120_000.0, 0, _LECTURE),
    Technology("mems-10", "3D MEMS, current practice", "about 10 ms", 10.0, 0, _LECTURE),
)


def technology(key: str) -> Technology:
    """Return a technology of table 3 by its key.

    Raises
    ------
    InputError
        If there is none of that key; the nearest one is named.
    """
    return look_up(key, BY_KEY, "technology", file="settings", field="technology")


def servers(one: Technology) -> int:
    """Return the servers (scale-up domains) that one switch can join on a rail."""
    return one.radix // PORTS_PER_GPU


def gpus(one: Technology, scale_up: int) -> int:
    """Return the most GPUs with one switch a rail: scale-up domain times radix / 2."""
    return scale_up * servers(one)


def fits(one: Technology, on_rail: int, split: bool = False) -> int:
    """Return how many switches of this technology a rail of ``on_rail`` servers needs at least.

    More than one only when ``split``. A job's rings and pairs together reach every server of its
    rail, so some of them cross from part to part, whatever lies on which: what joins the switches
    is not counted (``SPLIT_NOTE``).

    Raises
    ------
    InputError
        If the rail is wider than the switch and may not be split.
    """
    most = servers(one)
    refuse_if(
        (
            on_rail > most and not split,
            f"a rail of {on_rail:,} servers needs {PORTS_PER_GPU * on_rail:,} ports, more than the {one.radix:,} of "
            f"{one.name} ({one.vendor}): at most {most:,} servers per switch, or split the rail",
        ),
        file="settings",
        field="technology",
    )
    return -(-on_rail // most)
