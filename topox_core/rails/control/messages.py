"""What shims and controller of a rail say to each other, written down after a run from its times.

Messages take no time, and what shims say changes no decision of the controller.
"""

from collections.abc import Iterable, Iterator
from operator import itemgetter

import numpy as np

from topox_core.model.arrays.csr import row_of_entry
from topox_core.rails.control.jobs import Ahead, OnDemand
from topox_core.rails.iteration import COMPUTE, Message
from topox_core.rails.timing import SIDES

# A communication is announced; the answer names the network that carries it: the rail (0) or the
# scale-up domain (1).
COMM, CHECKIN_ACK = "COMM", "CHECKIN_ACK"
# Circuits of a group are asked for; the answer is that they are switched, or that nothing had to
# change.
CONFIG_REQ, CONFIG_ACK, NACK = "CONFIG_REQ", "CONFIG_ACK", "NACK"
_ANSWERS = {CONFIG_ACK: "", NACK: "nothing to change"}
_ASKED = (COMM, CONFIG_REQ)  # of the controller; every other word is its answer
# At one time: what the iteration before left comes first, then ends, calls, and what is served.
_LEFT, _ENDED, _CALLED, _SERVED = -1, 0, 1, 2
_AHEAD = "ahead of the call"
# When, and in which place at that time; group; communication, or turn where asked ahead; rank, -1 of
# an answer to all that asked; the label of a call, _AHEAD, or the answer.
_Event = tuple[tuple[float, int, int, int], int, int, int, str]


class Log:
    """Messages of the shims, which speak for the ranks of a rail, and of its controller.

    A shim announces a call (``COMM``), or asks for circuits (``CONFIG_REQ``) where a side of its NIC was
    last asked for by another group: with the call, or with a profile right after the traffic before.

    Every message is counted and the first ones are kept: of announcements as many as of requests, so
    that the many of the former do not push out the latter.
    """

    def __init__(self, run: OnDemand | Ahead, keep: int) -> None:
        self._run, self.sent = run, 0
        self._room = dict.fromkeys((COMM, CHECKIN_ACK, CONFIG_REQ, CONFIG_ACK), keep)
        self._kept: list[Message] = []
        # The group that each side of a server's NIC was last asked for.
        self._asked_for: dict[int, int] = {}
        for group in run.standing.groups:
            self._asks(group, run.program.use.sides[group])
        self._write()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages kept, by time; at one time in the order in which they were sent."""
        return tuple(sorted(self._kept, key=lambda one: one.at_ms))

    def _write(self) -> None:
        run, asking = self._run, dict[int, list[int]]()
        ahead = isinstance(run, Ahead)
        asked = _asked_ahead(run) if isinstance(run, Ahead) else _served(run)
        for (at_ms, *_), group, unit, rank, note in sorted(
            [*asked, *_calls(run)], key=itemgetter(0)
        ):
            if rank < 0:
                if note == CONFIG_ACK:
                    at_ms += run.rail.reconfiguration_ms
                for one in asking.pop(unit, ()):
                    self._note(at_ms, one, group, note, _ANSWERS[note])
                continue
            sides = [side for side in run.program.use.sides[group] if side // SIDES == rank]
            if ahead == (note is _AHEAD) and self._asks(group, sides):
                asking.setdefault(unit, []).append(rank)
                self._note(at_ms, rank, group, CONFIG_REQ, note)
            elif note is not _AHEAD:
                self._note(at_ms, rank, group, COMM, note)
                self._note(at_ms, rank, group, CHECKIN_ACK, "rail" if sides else "scale-up domain")

    def _asks(self, group: int, sides: Iterable[int]) -> bool:
        """Note who has sides next; return whether circuits must be asked for (another group had one)."""
        changed = any(self._asked_for.get(side) != group for side in sides)
        self._asked_for.update(dict.fromkeys(sides, group))
        return changed

    def _note(self, at_ms: float, rank: int, group: int, word: str, note: str) -> None:
        """Note what a rank says to the controller, or the controller to it."""
        self.sent += 1
        kind = CONFIG_ACK if word in _ANSWERS else word
        if self._room[kind] > 0:
            self._room[kind] -= 1
            ends = f"server {rank}", "controller"
            sender, receiver = ends if word in _ASKED else ends[::-1]
            name = self._run.program.iteration.groups[group].name
            self._kept.append(Message(at_ms, sender, receiver, word, name, note))


def _calls(run: OnDemand | Ahead) -> Iterator[_Event]:
    """Yield when each rank calls its communications: once it has computed for one; who only waits, with the last of these."""
    iteration, before, after = run.program.iteration, run.program.before, run.program.after
    computes, ended_ms = iteration.kind == COMPUTE, np.array(run.end_ms[: len(iteration)])
    called = iteration.issue_idx.astype(np.int64) * iteration.ranks + row_of_entry(
        iteration.issue_ptr
    )
    codes = np.unique(called[~computes[iteration.issue_idx]])
    if not len(codes):
        return
    node, rank = np.divmod(codes, iteration.ranks)
    # A rank may wait for a communication that it takes no part in; that is no call of its own.
    own = after * iteration.ranks + iteration.rank[before]
    place = np.searchsorted(codes, own).clip(max=len(codes) - 1)
    local = computes[before] & (codes[place] == own)
    all_ms, own_ms = np.zeros(len(iteration)), np.full(len(codes), -np.inf)
    np.maximum.at(all_ms, after[~local], ended_ms[before[~local]])
    np.maximum.at(own_ms, place[local], ended_ms[before[local]])
    waits, at_ms = own_ms < 0, np.maximum(own_ms, all_ms[node])
    np.maximum.at(all_ms, node, at_ms)
    at_ms[waits] = all_ms[node[waits]]
    for turn, k in enumerate(np.lexsort((codes, waits, node, at_ms)).tolist()):
        one = int(node[k])
        when = float(at_ms[k]), _CALLED, turn, 0
        yield when, run.program.group[one], one, int(rank[k]), iteration.label[one]


def _served(run: OnDemand) -> Iterator[_Event]:
    """Yield what is answered where circuits are asked for with a call: when it is served."""
    for k, (node, _, at_ms, changed) in enumerate(run.served):
        answer = CONFIG_ACK if changed else NACK
        yield (at_ms, _SERVED, k, 0), run.program.group[node], node, -1, answer


def _asked_ahead(run: Ahead) -> Iterator[_Event]:
    """Yield when each rank's traffic before a turn has ended, so that it asks for the turn; and the answer after the last."""
    last = [max((run.end_ms[node], node) for node in turn.nodes) for turn in run.turns]
    for number, turn in enumerate(run.turns):
        asks: dict[int, tuple[float, int, int, int]] = {}
        for side, earlier in turn.before.items():
            if earlier < 0:
                when = (run.standing.left_ms[side], _LEFT, side, 0)
            else:
                ended_ms, node = last[earlier]
                order = run.program.use.sides[run.turns[earlier].group].index(side)
                when = (ended_ms, _ENDED, node, order)
            rank = side // SIDES
            asks[rank] = max(when, asks.get(rank, when))
        for rank, when in asks.items():
            yield when, turn.group, number, rank, _AHEAD
        answer = CONFIG_ACK if turn.changed else NACK
        yield max(asks.values()), turn.group, number, -1, answer
