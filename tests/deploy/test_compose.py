"""compose.yaml: its commands are ours, its keys are private, its ports are the host's own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from .deployed import DEPLOY, commanded, documents, served

(COMPOSE,) = documents(DEPLOY / "compose.yaml")
SERVICES: dict[str, Any] = COMPOSE["services"]
SERVERS = ("tracker", "sim0", "sim1")
SCHEMA = os.environ.get("TILEFARM_COMPOSE_SCHEMA", "")


def mounts(service: str) -> dict[str, str]:
    """Volume by the folder that a service has it in."""
    split = (mount.split(":") for mount in SERVICES[service].get("volumes", ()))
    return {place: volume for volume, place, *_ in split if not volume.startswith(".")}


@pytest.mark.parametrize("service", SERVERS)
def test_a_server_is_started_with_options_that_it_has(service: str) -> None:
    options = served(SERVICES[service]["command"])
    keys = {options.tls, options.tokens.parent} | {getattr(options, "signing_key", options.tls)}
    assert all(str(path).startswith(f"/keys/{service}") for path in keys)
    host, _, port = options.listen.rpartition(":")
    assert host in ("0.0.0.0", service)
    assert SERVICES[service]["environment"]["TILEFARM_PORT"] == port
    if service != "tracker":
        assert options.name == service
        assert options.tracker == f"tracker:{served(SERVICES['tracker']['command']).listen[-4:]}"


def test_the_example_has_options_that_there_are() -> None:
    text = (DEPLOY / "compose.yaml").read_text().replace("\\\n#", "")
    (line,) = re.findall(r"exec head (tilefarm .*)", text)
    options = commanded(line)
    assert options.tracker == "tracker:9190"
    assert str(options.tls) in mounts("head")


def test_everyone_has_keys_of_their_own_and_only_the_maker_has_the_authority() -> None:
    declared = set(COMPOSE["volumes"])
    assert {volume for service in SERVICES for volume in mounts(service).values()} == declared
    assert [service for service in SERVICES if "keys" in mounts(service).values()] == ["keys"]
    for service in (*SERVERS, "head"):
        own = {place: v for place, v in mounts(service).items() if place.startswith("/keys")}
        assert own == {f"/keys/{service}": f"{service}-keys"}
        assert mounts("keys")[f"/keys/{service}"] == f"{service}-keys"


def test_all_wait_for_their_keys_and_nothing_is_published_but_on_loopback() -> None:
    for name, service in SERVICES.items():
        waits = service.get("depends_on", {})
        assert name == "keys" or waits["keys"] == {"condition": "service_completed_successfully"}
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        assert name == "keys" or service["cap_drop"] == ["ALL"]


def test_images_are_built_from_files_that_are_there() -> None:
    for service in SERVICES.values():
        context = (DEPLOY / service["build"]["context"]).resolve()
        assert (context / service["build"]["dockerfile"]).is_file()
    assert "./issue.sh:/issue.sh:ro" in SERVICES["keys"]["volumes"]
    assert (DEPLOY / "issue.sh").is_file()


def test_it_takes_nothing_that_only_some_engines_have() -> None:
    assert set(COMPOSE) - {"name", "services", "volumes"} == {"x-server", "x-device"}
    for name in (*SERVERS, "head"):  # an image in OCI's format says nothing of health
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


def test_the_health_of_a_server_is_asked_as_its_image_does() -> None:
    image = (DEPLOY / "images" / "device.Dockerfile").read_text().replace("\\\n", "")
    (own,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", image, flags=re.M)
    for name in SERVERS:
        assert SERVICES[name]["healthcheck"]["test"] == ["CMD", *json.loads(own)]


@pytest.mark.skipif(not SCHEMA, reason="TILEFARM_COMPOSE_SCHEMA names no compose-spec.json")
def test_it_is_a_compose_file() -> None:
    schema = json.loads(Path(SCHEMA).read_text())
    assert [error.message for error in Draft7Validator(schema).iter_errors(COMPOSE)] == []


def test_keys_belong_to_their_readers_from_the_first_moment() -> None:
    """A server that starts while they are renewed would otherwise find them closed."""
    (script,) = SERVICES["keys"]["command"]
    lines = [line.strip() for line in script.splitlines()]
    writing = [line for line in lines if re.search(r"/issue\.sh|\b(cp|mv) ", line)]
    assert len(writing) == 4
    assert all("theirs " in line for line in writing)
    assert lines.index("chown -R 10001:10001 /keys") < lines.index(writing[0])


@pytest.mark.slow
def test_keys_are_made_once_and_certificates_each_time(tmp_path: Path) -> None:
    (script,) = SERVICES["keys"]["command"]
    script = script.replace("$$", "$").replace("/issue.sh", str(DEPLOY / "issue.sh"))
    script = script.replace("/keys", str(tmp_path)).replace("chown -R 10001:10001", "ls -d")
    script = script.replace("setpriv --reuid=10001 --regid=10001 --clear-groups", "env")
    for service in (*SERVERS, "head"):
        (tmp_path / service).mkdir()  # a volume
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    made = []
    for _ in range(2):
        subprocess.run(["/bin/sh", "-euc", script], check=True, env={**os.environ, "PATH": path})
        made.append({p.relative_to(tmp_path): p.read_text() for p in tmp_path.rglob("*.*")})
    for service in SERVERS:
        options = served(SERVICES[service]["command"])
        keys = (options.tokens, getattr(options, "token_file", None) or options.tokens)
        assert all((tmp_path / path.relative_to("/keys")).is_file() for path in keys)
    changed = {path.name for path in made[0] if made[0][path] != made[1][path]}
    assert changed == {"identity.pem", "issued.txt"}
    assert (tmp_path / "head" / "ray_token").stat().st_mode & 0o077 == 0
