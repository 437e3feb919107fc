"""The cache of machine code, whoever made its folder and whatever became of its files."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numba
import pytest

import topox_core.compiled as kernel_cache
from tests.real_inputs import ROOT
from topox_core.compiled import choose_folder, compiled, stays_ours, trusted, working_s

OWNERS = pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders have no owner here")


def doubled(number: int) -> int:
    return 2 * number


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder for the kernels that a test compiles."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kernels"))
    (tmp_path / "kernels").mkdir()
    return tmp_path / "kernels"


def hits() -> int:
    """Ask a fresh copy of the kernel; return how often it found its code in the cache."""
    kernel = compiled(doubled)
    assert kernel(21) == 42
    return sum(kernel.stats.cache_hits.values())  # type: ignore[attr-defined]


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    """Change one byte in the middle, where the machine code is."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


def kept(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


@pytest.mark.parametrize("damage", [cut, flipped, lambda _: b"", lambda _: os.urandom(500)])
def test_damaged_code_is_compiled_again_and_kept(
    folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    assert (hits(), hits()) == (0, 1)
    (file,) = kept(folder)
    file.write_bytes(damage(file.read_bytes()))
    assert (hits(), hits()) == (0, 1)  # whatever it finds, the answer is right


def test_code_of_another_signature_is_never_taken_for_a_function_s_own(folder: Path) -> None:
    assert hits() == 0
    (whole,) = kept(folder)
    kernel = compiled(doubled)
    assert kernel(0.25) == 0.5  # type: ignore[arg-type]
    (real,) = {*kept(folder)} - {whole}
    whole.write_bytes(real.read_bytes())
    assert (hits(), hits()) == (0, 1)


def test_without_a_folder_to_write_to_kernels_are_compiled_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "file" / "kernels"))
    assert (hits(), hits()) == (0, 0)


def test_a_full_disk_costs_time_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        assert (hits(), hits()) == (0, 0)
    assert not kept(folder)
    assert (hits(), hits()) == (0, 1)


@pytest.mark.long
def test_processes_that_compile_one_kernel_at_once_leave_code_that_all_can_use(
    folder: Path,
) -> None:
    program = "from tests.faults.test_kernel_cache import hits\nprint(hits())"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    asked = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    assert all(one.communicate()[0].strip() in ("0", "1") for one in asked)
    assert len(kept(folder)) == 1  # nothing half done lies beside it
    assert hits() == 1


@OWNERS
def test_a_folder_that_somebody_else_may_have_written_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mine := tmp_path / "mine").mkdir()
    for mode in (0o770, 0o707, 0o777, 0o700):
        mine.chmod(mode)
        assert trusted(mine) == (mode == 0o700)
    (tmp_path / "link").symlink_to(mine)
    assert not trusted(tmp_path / "link")
    monkeypatch.setattr(os, "getuid", lambda: mine.stat().st_uid + 1)
    assert not trusted(mine)
    # Who owns the code can run code anyway, and no more than that may write beside it.
    (code := tmp_path / "code").mkdir(mode=0o755)
    assert trusted(mine, code)
    mine.chmod(0o775)
    assert not trusted(mine, code)
    code.chmod(0o775)
    assert trusted(mine, code)


@OWNERS
@pytest.mark.parametrize(
    ("mode", "ours"), [(0o700, True), (0o755, True), (0o777, False), (0o775, False), (0o1777, True)]
)
def test_a_folder_below_one_that_others_may_change_can_be_swapped_after_it_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, ours: bool
) -> None:
    monkeypatch.setattr(kernel_cache, "_of_one", lambda _group: False)
    (shared := tmp_path / "shared").mkdir()
    (below := shared / "a" / "b").mkdir(parents=True)
    shared.chmod(mode)
    assert stays_ours(below) == ours
    (link := tmp_path / "link").symlink_to(below)
    assert stays_ours(link / "c") == ours


@OWNERS
def test_a_folder_below_one_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    (package := tmp_path / "package").touch()
    assert choose_folder(package, "k").is_relative_to(tmp_path)
    tmp_path.chmod(0o777)
    assert not choose_folder(package, "k").is_relative_to(tmp_path)


@OWNERS
def test_where_the_checkout_is_read_only_kernels_are_kept_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (package := tmp_path / "package").touch()  # nothing can be made in it
    ours = choose_folder(package, "kernels-1")
    assert ours == kernel_cache.user_cache() / "kernels-1"
    assert stat.S_IMODE(ours.stat().st_mode) == 0o700
    assert choose_folder(package, "kernels-1") == ours
    ours.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")  # so that it is put back
    fresh = choose_folder(package, "kernels-1")
    assert fresh != ours and stat.S_IMODE(fresh.stat().st_mode) == 0o700
    assert os.environ["NUMBA_CACHE_DIR"] == str(fresh)


def test_the_first_use_says_in_a_line_why_it_takes_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernel_cache, "_announced", False)
    hits()
    hits()
    assert capsys.readouterr().err == kernel_cache.FIRST_USE


@pytest.mark.long
def test_the_working_clock_stands_still_while_kernels_are_compiled_or_loaded(folder: Path) -> None:
    program = (
        "import time\nfrom topox_core.compiled import working_s\n"
        "from tests.faults.test_kernel_cache import hits\n"
        "began, clock = time.monotonic(), working_s()\nhits()\n"
        "print((working_s() - clock) / (time.monotonic() - began) < 0.5)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    for _ in ("compiled", "loaded"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == "True"
    assert working_s() <= working_s()
