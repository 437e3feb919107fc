"""What a server asks the rail for: the shim's manager merges calls into few requests.

All GPUs of a scale-up domain go through the same phases, so one request stands for all their rails;
and calls that follow one another within a group need only the first request.
"""

from __future__ import annotations


class Demand:
    """The group that each side of a server's NIC was last asked for."""

    def __init__(self) -> None:
        self._group: dict[int, int] = {}
        self.coalesced = 0

    def holds(self, group: int, sides: tuple[int, ...]) -> None:
        """Note circuits that stand without having been asked for."""
        for side in sides:
            self._group[side] = group

    def changes(self, group: int, sides: tuple[int, ...]) -> bool:
        """Note a call; return whether circuits must be asked for (another group had a side)."""
        changed = False
        for side in sides:
            if self._group.get(side) != group:
                self._group[side] = group
                changed = True
        self.coalesced += not changed
        return changed
