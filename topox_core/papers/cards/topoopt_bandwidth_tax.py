"""TopoOpt's figure 13: traffic that host forwarding adds as DLRM's batch, and with it the all-to-all, grows."""

from topox_core.papers.card import Call, CardRun, Rows
from topox_core.papers.rows import Row, drawn, judged
from topox_core.papers.topoopt_jobs import BATCHES, DEGREES, SERVERS, bandwidth_taxes

NEAR = 0.02  # of the printed tax


def calls(run: CardRun) -> list[Call]:
    """Return a call for every batch."""
    settings = run.settings
    return [
        Call(
            batch,
            bandwidth_taxes,
            (f"dlrm-batch/{batch}/{settings['bytes']}", SERVERS, DEGREES, settings["variant"]),
        )
        for batch in BATCHES
    ]


def rows(run: CardRun) -> Rows:
    batches = [batch for batch in BATCHES if batch in run.answers]
    for place, degree in enumerate(DEGREES):
        yield from drawn([_tax(batch, degree, place, run) for batch in batches], rising=True)
    if BATCHES[-1] in run.answers:
        yield run.row("share", f"batch {BATCHES[-1]}", run.answers[BATCHES[-1]][0][1])


def _tax(batch: int, degree: int, place: int, run: CardRun) -> Row:
    series, item, tax = f"d{degree}", f"batch {batch}", run.answers[batch][place][0]
    theirs = run.card.printed.get(f"{series}/{item}")
    if theirs is None:
        return run.row(series, item, tax, off=0.0)
    off = abs(tax - theirs)
    # The tax is read from 1 on: 1.01 against 1.11 is no match.
    verdict = "match" if off <= NEAR else judged(theirs - 1, tax - 1)
    return run.row(series, item, tax, verdict=verdict, off=off)
