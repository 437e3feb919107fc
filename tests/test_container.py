"""The image is what docs/serving.md says; no container engine is asked."""

import re

from tests.real_inputs import ROOT
from topox_core.schema.fields import fields_of
from topox_core.warm_up import PARTS
from topox_ui.runs.limits import ServerLimits

LINES = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text("utf-8")).splitlines()


def said(word: str) -> list[str]:
    return [line.removeprefix(f"{word} ") for line in LINES if line.startswith(f"{word} ")]


def test_it_runs_as_a_user_who_owns_none_of_the_code() -> None:
    assert said("USER") == ["topox"]
    assert not [line for line in LINES[LINES.index("USER topox") :] if line.startswith("COPY")]
    assert not [line for line in LINES if "--chown" in line or "chmod" in line]


def test_packages_come_from_the_lock_with_hashes() -> None:
    installs = [line for line in said("RUN") if "pip install" in line]
    assert len(installs) == 1 and '--require-hashes -r "locks/${LOCK}.txt"' in installs[0]
    assert said("ARG") == ["LOCK=run"]
    assert re.fullmatch(r"docker\.io/library/python:3\.1[123]-slim", said("FROM")[0])


def test_all_kernels_are_compiled_at_build_time_by_the_user_who_runs_them() -> None:
    (warm_up,) = [line for line in said("RUN") if "warm_up" in line]
    assert all(warm_up.count(f"topox_core.warm_up {part}".rstrip()) for part in PARTS)
    assert LINES.index("USER topox") < LINES.index(f"RUN {warm_up}")


def test_signals_reach_the_server() -> None:
    assert said("ENTRYPOINT") == ['["/opt/topox/bin/python", "-m", "topox_ui.serve"]']


def test_everything_that_is_copied_is_there_and_let_in() -> None:
    let_in = re.findall(r"^!(.*)$", (ROOT / ".containerignore").read_text("utf-8"), re.MULTILINE)
    copied = {source for line in said("COPY") for source in line.split()[:-1]}
    assert {source.split("/")[0] for source in copied} == {*let_in}
    assert all((ROOT / source).exists() for source in copied)


def test_the_document_names_every_limit() -> None:
    text = (ROOT / "docs" / "serving.md").read_text("utf-8")
    own_words = {"solver_places": "one a core", "schedule_workers": "one a core", "hosts": ""}
    for name, one in fields_of(ServerLimits).items():
        default = own_words.get(name, str(one.default).removesuffix(".0"))
        assert re.search(rf"\| `TOPOX_{name.upper()}` \| `?{re.escape(default)}", text), name
