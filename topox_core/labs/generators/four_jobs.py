"""Generator ``four_jobs``: four jobs in two pod groups behind one barrier, where no single move helps and two do."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

from topox_core.labs.generators.generator import Generator, GivenTable, Instance
from topox_core.tdm.algorithms.round_bounds import lower_bound
from topox_core.tdm.model.jobs import Job, Jobs, PodNetwork, Reading
from topox_core.tdm.model.jobs_file import validated

NAMES = ("amber", "blue", "coral", "denim")
GROUPINGS = tuple("A" + "".join(rest) for rest in product("AB", repeat=3))
LONGER_TRAINING = 3
PORT_GBPS = 100.0


@dataclass(frozen=True)
class FourJobs(Instance):
    """One instance.

    Attributes
    ----------
    sending_s, training_s
        Of each job, in the order of :data:`NAMES`; the first two share a pod group, the last two
        another.
    asked
        The job whose single move is asked for.
    """

    sending_s: tuple[int, ...]
    training_s: tuple[int, ...]
    asked: str

    def round_s(self, grouping: str, longer: int = 1) -> int:
        """Return the round of a grouping, such as ABBA, by hand.

        Parameters
        ----------
        longer
            How many times as long training takes.
        """

        def of_group(group: str) -> tuple[int, int]:
            inside = [k for k in range(len(NAMES)) if grouping[k] == group]
            sums = (sum(self.sending_s[k] for k in inside if k // 2 == half) for half in (0, 1))
            train = longer * max((self.training_s[k] for k in inside), default=0)
            return max(sums), train

        (send_a, train_a), (send_b, train_b) = of_group("A"), of_group("B")
        return 2 * (max(send_a, train_b) + max(send_b, train_a))

    @cached_property
    def best_s(self) -> int:
        """The shortest of all eight rounds."""
        return min(self.round_s(grouping) for grouping in GROUPINGS)

    @cached_property
    def climb(self) -> tuple[int, int]:
        """Moves and round of hill climbing from all jobs in one group (Algorithm 1)."""
        at, moves = GROUPINGS[0], 0
        while self.round_s(best := self._best_move(at)) < self.round_s(at):
            at, moves = best, moves + 1
        return moves, self.round_s(at)

    def _best_move(self, grouping: str) -> str:
        return min((_moved(grouping, k) for k in range(len(NAMES))), key=self.round_s)

    @property
    def moves(self) -> str:
        """How many moves hill climbing makes, as an option."""
        return ("none", "one", "two", "three")[min(3, self.climb[0])]

    @property
    def bound_s(self) -> float:
        """What no grouping, whatever its rings, is below."""
        return lower_bound(self.jobs(), Reading()).round_s

    @property
    def longer_training(self) -> str:
        """What turns are worth if training takes three times as long."""
        saved = [
            1 - min(self.round_s(one, longer) for one in GROUPINGS) / self.round_s("AAAA", longer)
            for longer in (1, LONGER_TRAINING)
        ]
        return "same" if saved[0] == saved[1] else "more" if saved[1] > saved[0] else "less"

    def jobs(self) -> Jobs:
        """Return the instance as jobs on their network."""
        network = PodNetwork(2, 2, 2, PORT_GBPS, 400.0, 0.0)
        jobs = [
            Job(
                name,
                "ring_all_reduce",
                k // 2,
                (1, 1),
                PORT_GBPS * self.sending_s[k],
                float(self.training_s[k]),
            )
            for k, name in enumerate(NAMES)
        ]
        return validated(f"four jobs, seed {self.seed}", network, jobs, "four jobs")

    def given(self) -> GivenTable:
        """Return the jobs."""
        return GivenTable(
            ("job", "pod group", "sends alone", "trains"),
            tuple(
                (name, str(k // 2), f"{self.sending_s[k]} s", f"{self.training_s[k]} s")
                for k, name in enumerate(NAMES)
            ),
        )


def _moved(grouping: str, job: int) -> str:
    other = "B" if grouping[job] == "A" else "A"
    return grouping_of(grouping[:job] + other + grouping[job + 1 :])


def grouping_of(grouping: str) -> str:
    """Return letters of four jobs as one of :data:`GROUPINGS`: theirs or the mirror, whichever has the first job in A."""
    return grouping if grouping[0] == "A" else grouping.translate(str.maketrans("AB", "BA"))


def _is_hard(one: FourJobs) -> bool:
    """Whether hill climbing stays well above the one best round, which beats all jobs together."""
    rounds = sorted(one.round_s(grouping) for grouping in GROUPINGS)
    best = rounds[0]
    return one.climb[1] >= 1.15 * best and rounds[1] > best and best < one.round_s(GROUPINGS[0])


GENERATOR = Generator(
    "four_jobs",
    1,
    "g",
    FourJobs,
    lambda draws: {
        "sending_s": draws.row("m", len(NAMES), 6, 14),
        "training_s": draws.row("t", len(NAMES), 6, 14),
        "asked": draws.pick("asked", NAMES[1:]),
    },
    _is_hard,
    {
        "sending": lambda one: ", ".join(map(str, one.sending_s)),
        "training": lambda one: ", ".join(map(str, one.training_s)),
        "job": "asked",
    },
    {
        # With all jobs in one group.
        "together": lambda one: one.round_s(GROUPINGS[0]),
        # After the move that is asked for.
        "asked": lambda one: one.round_s(_moved(GROUPINGS[0], NAMES.index(one.asked))),
        "best": "best_s",
        "best_grouping": lambda one: min(GROUPINGS, key=one.round_s),
        "moves": "moves",
        # How one knows that a round is best: all were tried; the bound, where it is reached.
        "proof": lambda one: (
            ("tried", "bound") if abs(one.bound_s - one.best_s) <= 1e-6 * one.best_s else ("tried",)
        ),
        "longer_training": "longer_training",
        # As if both pod groups sent one after the other.
        "serial": lambda one: 2 * (sum(one.sending_s) + max(one.training_s)),
        "bound": "bound_s",
        "hill": lambda one: one.climb[1],
        "same_group": lambda _: "AABB",  # both jobs of a pod group together
    },
)
