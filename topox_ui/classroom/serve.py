"""Hold a class on this machine: ``make class COURSE=NET-401 FOLDER=class``; it is ``make serve`` with a profile.

Asks once, compiles everything before the address is printed, and becomes the server. With ``--clean``
it deletes the folder's answers instead, after asking.
"""

import argparse
import os
import secrets
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from topox_core.errors import InputError
from topox_core.labs.classroom.class_folder import clean, read_secret
from topox_core.warm_up import warm_up, warm_up_fabrics
from topox_ui.classroom.held import COURSE, FOLDER, SHOWN_AT, WORD, profile_of
from topox_ui.runs.limits import ServerLimits, only_this_machine
from topox_ui.serve import BAD_INPUT, main as serve

# Of the word to join by, which nobody guesses: without the letters that are read as others.
LETTERS, WORD_LETTERS = "abcdefghjkmnpqrstuvwxyz", 6
EVERYBODY = "0.0.0.0"
# What a class needs of the server besides; whoever sets one of them has it their way.
OF_A_CLASS = {
    "TOPOX_ADDRESS": EVERYBODY,
    "TOPOX_SOLVER_PLACES": "1",
    "TOPOX_SCHEDULE_WORKERS": "1",
    "TOPOX_SESSION_MB": "20",
    "TOPOX_RUN_LIBRARY": "no",
    "TOPOX_REJOIN_S": "600",
    # Students bring answers, of which none is larger than a quarter of that (MB).
    "STREAMLIT_SERVER_MAX_UPLOAD_SIZE": "1",
}


def environment_of(course: str, folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a class's server; raises InputError where course, folder or a variable is wrong."""
    environment = {**OF_A_CLASS, **{name: text for name, text in given.items() if text}}
    environment |= {COURSE: course, FOLDER: str(folder.resolve())}
    environment.setdefault(WORD, "".join(secrets.choice(LETTERS) for _ in range(WORD_LETTERS)))
    profile_of(environment)
    limits = ServerLimits.of(environment)
    own = _own_address(limits.address)
    environment[SHOWN_AT] = f"http://{own}:{limits.port}"
    # Streamlit would ask a server outside for the address of this machine.
    environment["STREAMLIT_BROWSER_SERVER_ADDRESS"] = own
    return environment


def _own_address(address: str) -> str:
    """Return the address under which others in this network reach a server; no packet is sent for it."""
    if address != EVERYBODY:
        return address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def main(arguments: Sequence[str] | None = None) -> None:
    """Hold a class, or clean up after one; exit with 2 on bad input and with 1 where the answer is no."""
    parser = argparse.ArgumentParser(prog="make class", description=__doc__)
    parser.add_argument("--course", default="", help="such as NET-401")
    parser.add_argument("--folder", type=Path, required=True, help="where answers are kept")
    parser.add_argument("--clean", action="store_true", help="delete the answers of the folder")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.clean:
            _clean(chosen.folder, chosen.yes)
            return
        environment = environment_of(chosen.course, chosen.folder, os.environ)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(BAD_INPUT) from None
    if not only_this_machine(environment["TOPOX_ADDRESS"]):
        _ask("Everybody in this network who knows the word can open this page. Go on?", chosen.yes)
    print("Compiling and loading (half a minute after a new installation)", flush=True)
    warm_up()
    warm_up_fabrics()
    os.environ.update(environment)
    print(
        f"Class {environment[COURSE]}: students open {environment[SHOWN_AT]} and type the word "
        f"{environment[WORD]}.\nYou open http://127.0.0.1:{ServerLimits.of(environment).port}/Learn?view=present on this machine. "
        f"Answers are kept in {environment[FOLDER]}.",
        flush=True,
    )
    serve()


def _clean(folder: Path, yes: bool) -> None:
    read_secret(folder)
    _ask(f"Delete all answers in {folder}?", yes)
    gone, left = clean(folder)
    print(f"{gone} files are deleted." + (f" Left in {folder}: {', '.join(left)}" if left else ""))


def _ask(question: str, yes: bool) -> None:
    if yes:
        return
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().casefold() not in ("y", "yes"):
        print("Nothing was done.")
        raise SystemExit(1)


if __name__ == "__main__":
    main()
