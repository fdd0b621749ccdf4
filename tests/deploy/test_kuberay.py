"""The manifests: commands that exist, labels that match, no root, no secret, and the schemas."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from driver.jobs.nightly.zoo_file import read_zoo

from .deployed import DEPLOY, Document, commanded, documents, everything, served

FOLDER = DEPLOY / "kuberay"
KUSTOMIZATION = documents(FOLDER / "kustomization.yaml")[0]
FILES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "kustomization.yaml")
MANIFESTS = [document for path in FILES for document in documents(path)]
CRDS = os.environ.get("TILEFARM_KUBERAY_CRDS", "")
KUBERNETES = "1.33"


def named(document: Document) -> str:
    metadata = document["metadata"]
    return f"{document['kind']}-{metadata.get('name') or metadata['generateName']}"


def of_kind(*kinds: str) -> list[Document]:
    return [document for document in MANIFESTS if document["kind"] in kinds]


def templates(document: Document) -> Iterator[Mapping[str, Any]]:
    """Every template of a pod."""
    for each in everything(document):
        if isinstance(each, Mapping) and "containers" in each.get("spec", {}):
            yield each


def containers(template: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    spec = template["spec"]
    return [*spec.get("initContainers", ()), *spec["containers"]]


PODS = [(named(document), pod) for document in MANIFESTS for pod in templates(document)]


def test_there_is_something_to_look_at() -> None:
    kinds = {document["kind"] for document in MANIFESTS}
    assert {"RayCluster", "RayJob", "RayCronJob", "CronJob", "NetworkPolicy"} <= kinds
    assert len(PODS) >= 7


def test_kustomize_has_every_file_but_the_samples() -> None:
    names = {path.name for path in FILES}
    (generated,) = KUSTOMIZATION["configMapGenerator"]
    assert names - set(KUSTOMIZATION["resources"]) == {"rayjob.yaml", "raycronjob.yaml"}
    assert all((FOLDER / file).is_file() for file in generated["files"])


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_a_server_of_the_cluster_has_the_options_that_it_is_given(kind: str) -> None:
    (document,) = of_kind(kind)
    (container,) = document["spec"]["template"]["spec"]["containers"]
    words = [word.replace("$(POD_NAME)", "sim-0") for word in container["args"]]
    options = served(words)
    mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
    for path in (options.tls, options.tokens, options.audit or options.folder):
        assert any(Path(path).is_relative_to(place) for place in mounted)


def test_jobs_run_commands_that_exist() -> None:
    (cron,) = of_kind("RayCronJob")
    options = commanded(cron["spec"]["jobTemplate"]["entrypoint"])
    assert options.zoo == Path("/nightly/zoo.toml")
    (job,) = of_kind("RayJob")
    options = commanded(job["spec"]["entrypoint"])
    assert options.zoo == Path("/nightly/zoo.toml")
    for document in (job, *of_kind("RayCluster")):
        (head,) = (p for p in templates(document) if _is_head(p))
        mounted = {mount["mountPath"] for mount in head["spec"]["containers"][0]["volumeMounts"]}
        assert {"/nightly", str(options.history), "/keys"} <= mounted


def _is_head(pod: Mapping[str, Any]) -> bool:
    return bool(pod["spec"]["containers"][0]["name"] == "ray-head")


def test_the_zoo_of_the_nights_has_no_fault_and_ends_before_the_job() -> None:
    zoo = read_zoo(FOLDER / "zoo.toml")
    assert not zoo.faults
    assert [row.trouble() for row in zoo.rows] == [""] * len(zoo.rows)
    (job,) = of_kind("RayJob")
    assert zoo.night.seconds < job["spec"]["activeDeadlineSeconds"]
    for row in zoo.rows:
        tune = commanded(shlex.join(["tilefarm", "tune", row.model, *row.words]))
        assert tune.tracker == "tracker:9190"
        assert {str(tune.tls), str(tune.token_file.parent)} == {"/keys"}


def test_selectors_find_their_pods() -> None:
    def labels(pod: Mapping[str, Any]) -> set[tuple[str, str]]:
        return set(pod["metadata"]["labels"].items())

    pods = [pod for _, pod in PODS]
    for document in of_kind("Service"):
        wanted = set(document["spec"]["selector"].items())
        assert [pod for pod in pods if wanted <= labels(pod)], named(document)
    for document in of_kind("NetworkPolicy"):
        for each in everything(document):
            if isinstance(each, Mapping) and "matchLabels" in each:
                wanted = set(each["matchLabels"].items())
                outside = ("app.kubernetes.io/name", "kuberay-operator") in wanted
                assert outside or [pod for pod in pods if wanted <= labels(pod)], each
    for document in of_kind("Deployment", "StatefulSet"):
        spec = document["spec"]
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]


@pytest.mark.parametrize(("name", "pod"), PODS, ids=[name for name, _ in PODS])
def test_no_pod_is_privileged_or_without_bounds(name: str, pod: Mapping[str, Any]) -> None:
    security = pod["spec"]["securityContext"]
    assert security["runAsNonRoot"]
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(pod):
        contained = container["securityContext"]
        assert not contained["allowPrivilegeEscalation"]
        assert contained["capabilities"] == {"drop": ["ALL"]}
        resources = container["resources"]
        assert set(resources["requests"]) == {"cpu", "memory"}
        assert "memory" in resources["limits"]
        assert container["image"].split(":")[0] in (
            "tilefarm",
            "tilefarm-device",
            "alpine/k8s",
        )


@pytest.mark.parametrize(("name", "pod"), PODS, ids=[name for name, _ in PODS])
def test_every_mount_has_its_volume(name: str, pod: Mapping[str, Any]) -> None:
    volumes = {volume["name"] for volume in pod["spec"].get("volumes", ())}
    used = {mount["name"] for c in containers(pod) for mount in c.get("volumeMounts", ())}
    assert used == volumes
    claims = {document["metadata"]["name"] for document in of_kind("PersistentVolumeClaim")}
    for volume in pod["spec"].get("volumes", ()):
        assert volume.get("persistentVolumeClaim", {}).get("claimName", "nights") in claims


def test_no_secret_is_written_here_and_those_that_are_used_are_told() -> None:
    assert not of_kind("Secret")
    used = {
        each["secretName"]
        for document in MANIFESTS
        for each in everything(document)
        if isinstance(each, Mapping) and "secretName" in each
    }
    guide = (DEPLOY / "README.md").read_text()
    assert used
    assert [name for name in used if f"secret generic {name}" not in guide] == []


def test_every_pod_finds_its_keys_in_the_secret_as_the_guide_makes_it(tmp_path: Path) -> None:
    (document,) = of_kind("StatefulSet")
    (keys,) = document["spec"]["template"]["spec"]["initContainers"]
    script = keys["command"][-1].replace("$(POD_NAME)", "sim-0")
    files = {"ca.pem", "identity.pem", "token", "artifacts.key"}
    for pod in ("sim-0", "sim-1"):
        (tmp_path / "farm-keys" / pod).mkdir(parents=True)
        for file in files:
            (tmp_path / "farm-keys" / pod / file).write_text(f"{pod} {file}")
    guide = (DEPLOY / "README.md").read_text()
    (words,) = re.findall(r"\$\(cd farm-keys && .*done\)", guide)
    told = subprocess.check_output(["/bin/sh", "-c", f"echo {words}"], cwd=tmp_path, text=True)
    for place in ("secrets", "keys"):
        (tmp_path / place).mkdir()
        script = script.replace(f"/{place}/", f"{tmp_path}/{place}/")
    (tmp_path / "secrets" / "tokens.json").write_text("hashes")
    for word in told.split():
        name, source = word.removeprefix("--from-file=").split("=")
        (tmp_path / "secrets" / name).write_text((tmp_path / source).read_text())
    subprocess.run(["/bin/sh", "-euc", script], check=True)
    made = {path.name: path.read_text() for path in (tmp_path / "keys").iterdir()}
    assert made == {file: f"sim-0 {file}" for file in files} | {"tokens.json": "hashes"}
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "keys").iterdir()} == {0}


def test_nights_do_not_overlap_and_end() -> None:
    (night,) = of_kind("CronJob")
    assert night["spec"]["concurrencyPolicy"] == "Forbid"
    (job,) = of_kind("RayJob")
    spec = job["spec"]
    assert spec["activeDeadlineSeconds"] < 86400
    assert spec["shutdownAfterJobFinishes"]
    assert spec["backoffLimit"] >= 1
    assert spec["ttlSecondsAfterFinished"] > 0


def test_all_nodes_of_ray_have_the_version_of_the_images() -> None:
    versions = {
        each["rayVersion"]
        for document in MANIFESTS
        for each in everything(document)
        if isinstance(each, Mapping) and "rayVersion" in each
    }
    constraints = (DEPLOY / "locks" / "constraints.txt").read_text()
    (version,) = versions
    assert f"\nray=={version}\n" in constraints


def strict(schema: object) -> object:
    """The schema, refusing fields that it does not name."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: strict(each) for name, each in schema.items()}
    closed = "properties" in schema and schema.get("type") == "object"
    return inner if not closed else {"additionalProperties": False} | inner


def crd_schemas() -> dict[tuple[str, str], Any]:
    found = {}
    for path in Path(CRDS).glob("*.yaml"):
        spec = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)["spec"]
        for version in spec["versions"]:
            kind = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            found[kind] = version["schema"]["openAPIV3Schema"]
    return found


@pytest.mark.slow
@pytest.mark.skipif(not CRDS, reason="TILEFARM_KUBERAY_CRDS names no folder with KubeRay's CRDs")
def test_kuberay_takes_its_own_kinds() -> None:
    schemas = crd_schemas()
    checked = [document for document in MANIFESTS if document["apiVersion"].startswith("ray.io/")]
    for document in checked:
        schema: Any = strict(schemas[document["apiVersion"], document["kind"]])
        schema["properties"]["metadata"] = {"type": "object"}
        errors = [error.message for error in Draft7Validator(schema).iter_errors(document)]
        assert errors == [], named(document)
    assert len(checked) == 3


@pytest.mark.slow
@pytest.mark.skipif(
    not find_spec("kubernetes_validate"), reason="needs: pip install kubernetes-validate"
)
@pytest.mark.parametrize("document", MANIFESTS, ids=named)
def test_kubernetes_takes_the_others(document: Document) -> None:
    import kubernetes_validate

    if not document["apiVersion"].startswith("ray.io/"):
        kubernetes_validate.validate(dict(document), KUBERNETES, strict=True)
