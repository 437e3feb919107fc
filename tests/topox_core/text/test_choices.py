"""What was chosen, in words."""

from topox_core.model.lowering_choices import Lowering
from topox_core.schedule.settings import FREE
from topox_core.text.choices import chosen_words


def plain(text: str) -> str:
    return text.replace("\u202f", " ").replace("\u00a0", " ")


def test_rings_and_algorithms_are_named_with_the_tensors_they_were_chosen_for() -> None:
    words = {
        "all_reduce:8:2.68e+08": "halving_doubling*2",
        "all_reduce:8:1e+06": "halving_doubling*2",
        "all_to_all:16:3e+04": "two_level(4)",
        "broadcast": "default",
    }
    assert plain(chosen_words(Lowering(rings=2, algorithm=words), FREE)) == (
        "collectives on 2 rings, all-reduces of 1 MB and 268 MB by halving-doubling in 2 parts "
        "and all-to-alls of 30 kB by two levels of 4"
    )


def test_what_was_fixed_is_no_choice() -> None:
    fixed = Lowering(rings=2, algorithm={"all_reduce": "tree"})
    assert chosen_words(fixed, ()) == ""
    assert chosen_words(fixed, ("algorithm",)) == ""
    assert chosen_words(Lowering(), FREE) == ""
