"""The image is what docs/serving.md says; no container engine is asked."""

from __future__ import annotations

import re

from tests.real_inputs import ROOT
from topox_core.compiled import COMPILED
from topox_core.warm_up import PARTS

LINES = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text("utf-8")).splitlines()


def said(word: str) -> list[str]:
    return [line.removeprefix(f"{word} ") for line in LINES if line.startswith(f"{word} ")]


def place(start: str) -> int:
    return next(i for i, line in enumerate(LINES) if line.startswith(start))


def test_it_runs_as_a_user_who_owns_none_of_the_code() -> None:
    assert said("USER") == ["topox"]
    assert place("USER topox") > max(i for i, line in enumerate(LINES) if line.startswith("COPY"))
    assert not any("--chown" in line or "chmod" in line for line in LINES)
    assert "--uid 10001" in said("RUN")[0]


def test_packages_come_from_the_lock_with_hashes() -> None:
    installs = [line for line in said("RUN") if "pip install" in line]
    assert len(installs) == 1 and '--require-hashes -r "locks/${LOCK}.txt"' in installs[0]
    assert said("ARG") == ["LOCK=run"]
    assert re.fullmatch(r"docker\.io/library/python:3\.1[123]-slim", said("FROM")[0])


def test_all_kernels_are_compiled_at_build_time_by_the_user_who_runs_them() -> None:
    (warm_up,) = [line for line in said("RUN") if "warm_up" in line]
    assert warm_up.count("topox_core.warm_up") == len(PARTS)
    assert all(warm_up.count(f"topox_core.warm_up {part}".rstrip()) for part in PARTS)
    assert place("USER topox") < place("RUN /opt/topox/bin/python -m topox_core.warm_up")
    assert COMPILED


def test_nothing_is_written_to_the_root_file_system_and_signals_reach_the_server() -> None:
    assert "PYTHONDONTWRITEBYTECODE=1" in said("ENV")[0]
    assert said("ENTRYPOINT") == ['["/opt/topox/bin/python", "-m", "topox_ui.serve"]']
    assert not said("VOLUME") and not said("ADD")


def test_everything_that_is_copied_is_there_and_let_in() -> None:
    let_in = {
        line[1:]
        for line in (ROOT / ".containerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    }
    copied = {source for line in said("COPY") for source in line.split()[:-1]}
    assert {source.split("/")[0] for source in copied} == let_in
    assert all((ROOT / source).exists() for source in copied)


def test_the_document_names_every_limit_and_says_that_no_engine_was_at_hand() -> None:
    text = (ROOT / "docs" / "serving.md").read_text("utf-8")
    from topox_ui.runs.limits import ServerLimits

    for one in ServerLimits.__dataclass_fields__.values():
        a_core = one.name in ("solver_places", "schedule_workers")
        default = "one a core" if a_core else str(one.default)
        default = default.removesuffix(".0")
        assert re.search(rf"\| `{one.metadata['variable']}` \| `?{re.escape(default)}", text)
    assert "It was not run" in text
    assert "--read-only" in text
