"""The child of :mod:`topox_core.runs.child_processes`: calls in, answers out, until nobody listens any more."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from typing import IO, Any

from topox_core.runs.child_processes import receive, send


def _listen(pipe: IO[bytes], calls: queue.SimpleQueue[bytes]) -> None:
    """Pass calls on; the end of the input means that the parent is gone, and with it the reason to go on."""
    try:
        while True:
            calls.put(receive(pipe))
    except (EOFError, OSError):
        os._exit(0)


def answer(call: bytes) -> bytes:
    """Return what a pickled call gives, or the exception it raises, pickled."""
    try:
        function, args, kwargs = pickle.loads(call)
        return pickle.dumps((True, function(*args, **kwargs)))
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> bytes:
    try:
        told = pickle.dumps((False, error))
        pickle.loads(told)  # some exceptions can be written but not read
    except Exception:
        plain: tuple[bool, Any] = (False, RuntimeError(f"{type(error).__name__}: {error}"))
        told = pickle.dumps(plain)
    return told


def main() -> None:
    """Answer calls until the input ends."""
    # The parent decides about an interrupt from the terminal.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever a library prints goes to standard error, so that it cannot come between the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, calls), daemon=True).start()
    while True:
        try:
            send(out, answer(calls.get()))
        except OSError:
            os._exit(0)


if __name__ == "__main__":
    main()
