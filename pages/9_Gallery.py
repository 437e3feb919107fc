"""Published results: published tables and figures, run here, with a verdict on every number."""

from topox_ui.gallery.card_run import answer_of, kicker, run_controls
from topox_ui.gallery.card_view import draw_answer, finding
from topox_ui.gallery.controls import chosen_card, switches
from topox_ui.shell.page import frame, headline, quiet, size_switch

theme = frame("Published results")
card = chosen_card()
settings = switches(card)
size_switch()

answer = answer_of(card, settings)
headline(kicker(card), finding(card, answer))
run_controls(card, settings, answer)
if answer is not None:
    quiet(f"{card.shows}")
    draw_answer(card, answer, theme)
else:
    quiet(
        "Nothing here is stored: every number of ours is computed on this machine when you run the card, "
        "and is the same on every run with the same choices."
    )
quiet(
    "The cards cover all-reduce and all-to-all on fixed and changing circuits, the bandwidth tax of TopologyFinder’s "
    "layouts, and shared clusters against fat-trees of the same cost."
)
