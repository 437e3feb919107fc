"""compose.yaml names what the image has; no container engine is asked."""

import os
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.real_inputs import ROOT
from topox_core.runs.cells import SCHEDULER_VARIABLE
from topox_core.runs.dask_executor import _checked

yaml = pytest.importorskip("yaml", reason="needs the packages of locks/dev.txt")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))[
    "services"
]
IMAGE = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text("utf-8"))
DASK = [name for name in SERVICES if name != "app"]


def test_its_own_schema_finds_nothing_wrong() -> None:
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    file = ROOT / "compose.yaml"
    said = subprocess.run([*check, str(file)], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_rights_and_writes_to_one_volume(name: str) -> None:
    one = SERVICES[name]
    assert f"--uid {one['user']} topox" in IMAGE and "HOME=/home/topox" in IMAGE
    assert one["read_only"] and one["cap_drop"] == ["ALL"]
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert one["volumes"] == ["home:/home/topox"]
    assert [place.split(":")[0] for place in one["tmpfs"]] == ["/tmp"]


def test_the_app_s_health_is_asked_for() -> None:
    assert "/_stcore/health" in IMAGE and "healthcheck" not in SERVICES["app"]


def test_there_are_the_app_a_scheduler_and_two_workers_of_one_image() -> None:
    assert {one["image"] for one in SERVICES.values()} == {"topox-dask"}
    for one in SERVICES.values():
        build = one["build"]
        assert (ROOT / build["context"] / build["dockerfile"]).is_file()
        for name, value in build["args"].items():
            assert f"ARG {name}=" in IMAGE
            assert (ROOT / "locks" / f"{value}.txt").is_file()


def test_the_image_has_the_python_the_folders_and_the_port_that_are_named() -> None:
    for name in DASK:
        one = SERVICES[name]
        assert one["entrypoint"][0] in IMAGE
        assert f"WORKDIR {one['environment']['PYTHONPATH']}" in IMAGE
        assert not one.get("ports")  # whoever reaches the scheduler can run code
    (published,) = SERVICES["app"]["ports"]
    address, outside, inside = published.split(":")
    assert address == "127.0.0.1" and outside == inside
    assert f"TOPOX_PORT={inside}" in IMAGE


def test_workers_and_the_app_know_the_scheduler_s_address() -> None:
    port = SERVICES["scheduler"]["command"][SERVICES["scheduler"]["command"].index("--port") + 1]
    address = f"tcp://scheduler:{port}"
    assert SERVICES["app"]["environment"][SCHEDULER_VARIABLE] == address
    for name in ("worker-1", "worker-2"):
        assert SERVICES[name]["command"][:2] == ["worker", address]
    pytest.importorskip("distributed", reason="needs Dask: pip install .[dask], or make test")
    assert _checked(address) == address


@pytest.mark.parametrize("name", DASK)
def test_dask_knows_every_option_and_setting(name: str) -> None:
    pytest.importorskip("distributed", reason="needs Dask: pip install .[dask], or make test")
    import dask
    import distributed  # noqa: F401 (it adds its settings to Dask's)

    _, module, program = SERVICES[name]["entrypoint"]
    command = SERVICES[name]["command"]
    said = subprocess.run(
        [sys.executable, module, program, command[0], "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "200"},
    ).stdout
    for word in command:
        if word.startswith("--"):
            assert re.search(rf"{word}\b", said), word
    for variable in SERVICES[name]["environment"]:
        if variable.startswith("DASK_"):
            setting = variable.removeprefix("DASK_").lower().replace("__", ".")
            assert dask.config.get(setting) is not None
