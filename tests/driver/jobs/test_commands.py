"""`submit`, `jobs`, `logs`, `cancel` and `fetch` against a stand-in for a Ray dashboard."""

from __future__ import annotations

import json
import shlex
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.farm.ray_dashboard import CLUSTER_TOKEN, RayDashboard
from kit.networks.onnx_models import model, saved, saved_beside
from tilefarm.digest import Digest

from driver import cli
from driver.jobs.responses import RayJob
from driver.network import Graph, forget_plugins, import_model
from driver.network.examples import DEMO_CALIBRATION, DEMO_MODEL
from driver.network.graph.ir import Custom
from driver.tune.settings import TuneSettings

Said = Callable[..., str]


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[RayDashboard]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    with RayDashboard(folder, sys.executable, runs=False) as serving:
        yield serving


@pytest.fixture
def cluster(dashboard: RayDashboard, tmp_path: Path) -> list[str]:
    token = tmp_path / "ray.token"
    token.write_text(CLUSTER_TOKEN)
    token.chmod(0o600)
    return ["--cluster", dashboard.address, "--cluster-token", str(token)]


@pytest.fixture
def said(cluster: list[str], capsys: pytest.CaptureFixture[str]) -> Said:
    def say(*words: str, code: int = 0) -> str:
        assert cli.main([*words, *cluster]) == code
        output = capsys.readouterr()
        return output.out if code == 0 else output.err

    return say


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a job to begin."""
    monkeypatch.setattr("driver.jobs.watching.STEADY_SECONDS", 0.0)
    monkeypatch.setattr("driver.jobs.watching.POLL_SECONDS", 0.01)
    monkeypatch.setattr("driver.jobs.shipping.POLL_SECONDS", 0.05)


SUBMIT = ("submit", str(DEMO_MODEL), "--calibrate", str(DEMO_CALIBRATION), "--json")


def test_a_second_submit_uploads_nothing(dashboard: RayDashboard, said: Said, steady: None) -> None:
    first = json.loads(said(*SUBMIT, "--trials", "10", "--folder", "/runs"))
    second = json.loads(said(*SUBMIT, "--trials", "20", "--python", "/opt/python"))
    assert first["uploaded_nbytes"] > 1000
    assert second["uploaded_nbytes"] == 0
    assert len(dashboard.uploads) == 1
    assert second["run"] == first["run"]
    entrypoints = [job.document["entrypoint"] for job in dashboard.jobs.values()]
    assert entrypoints[0].startswith(f"{sys.executable} -P -m driver.cli job run /runs ")
    assert '"workers":5' in entrypoints[0], "as many as living nodes have CPUs"
    assert '"device_wait_seconds":3600.0' in entrypoints[0], "a job stands in line"
    assert entrypoints[1].startswith("/opt/python -P -m driver.cli job run ")
    assert CLUSTER_TOKEN not in "".join(entrypoints)


def test_a_job_for_a_processor(dashboard: RayDashboard, said: Said, steady: None) -> None:
    said(*SUBMIT, "--target", "cpu", "--threads", "2")
    (job,) = dashboard.jobs.values()
    assert '"target":"cpu@2"' in job.document["entrypoint"]


def test_what_a_processor_cannot_compute_is_not_sent(dashboard: RayDashboard, said: Said) -> None:
    """The file is read as the target has it, and the target is one that there is code for."""
    told = said(*SUBMIT, "--target", "cpu:nosuch", code=2)
    assert "cpu:nosuch" in told
    assert not dashboard.uploads
    assert not dashboard.jobs


AGENT = b"No available agent to submit job, please try again later."
DEAF = b"Traceback:\naiohttp.client_exceptions: Cannot connect to host 10.0.0.1:52365"


def test_a_cluster_that_is_just_starting_is_waited_for(
    dashboard: RayDashboard, cluster: list[str], steady: None, capsys: pytest.CaptureFixture[str]
) -> None:
    dashboard.unready = [AGENT, DEAF]
    assert cli.main([*SUBMIT, *cluster]) == 0
    told = capsys.readouterr().err
    assert told == "waiting for the cluster's job agent, 60 s at most\n"
    assert len(dashboard.jobs) == 1


def test_one_that_never_starts_its_jobs_is_given_up(
    dashboard: RayDashboard, said: Said, steady: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driver.jobs.shipping.AGENT_SECONDS", 0.2)
    dashboard.unready = [AGENT] * 1000
    told = said(*SUBMIT, code=70)
    assert "starts no jobs: No available agent to submit job" in told
    assert "(waited for 0.2 s)\n  try: on its head, `ray status`" in told


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """The digits with their weights in another file, `w/net.bin`."""
    place = tmp_path / "net"
    place.mkdir()
    return saved_beside(onnx.load(DEMO_MODEL), place)


def submit(model: Path) -> list[str]:
    return ["submit", str(model), "--calibrate", str(DEMO_CALIBRATION), "--json"]


def test_weights_beside_a_model_are_sent_once(
    dashboard: RayDashboard, said: Said, steady: None, beside: Path
) -> None:
    first, again = (json.loads(said(*submit(beside))) for _ in range(2))
    weights = beside.parent / "w/net.bin"
    with zipfile.ZipFile(dashboard.folder / dashboard.uploads[0]) as package:
        assert package.read(Digest.of_file(weights).hex) == weights.read_bytes()
    assert again["uploaded_nbytes"] == 0
    assert again["run"] == first["run"]
    weights.write_bytes(bytes(4) + weights.read_bytes()[4:])
    other = json.loads(said(*submit(beside)))
    assert other["uploaded_nbytes"] > 0
    assert other["run"] != first["run"]
    assert len(dashboard.uploads) == 2


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda file: file.unlink(), "No such file or directory\n  try: weights belong in"),
        (lambda file: file.write_bytes(b"short"), ", of 5\n  try: copy or download the file"),
        (
            lambda file: file.rename(file.parents[2] / "x") and file.symlink_to("../../x"),
            "lies outside the model's folder\n  try: weights belong in the model's folder",
        ),
    ],
)
def test_weights_that_cannot_be_sent_are_told_before_anything_is(
    dashboard: RayDashboard,
    said: Said,
    beside: Path,
    damage: Callable[[Path], object],
    why: str,
) -> None:
    damage(beside.parent / "w/net.bin")
    error = said(*submit(beside), code=2)
    assert why in error
    assert len(error.splitlines()) == 2
    assert not dashboard.uploads
    assert not dashboard.jobs


def test_a_model_of_too_many_or_too_large_files_is_told(
    dashboard: RayDashboard, said: Said, beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as small:
        small.setattr("driver.jobs.shipping.COMMAND_NBYTES", 500)
        error = said(*submit(beside), code=70)
    assert "has its weights in 1 files, which are too many to name\n  try: save it with" in error
    monkeypatch.setattr("driver.jobs.shipping.PACKAGE_NBYTES", 1 << 10)
    error = said(*submit(beside), code=70)
    assert "are more than 0 MiB, packed; a Ray dashboard takes no more\n  try: calibrate" in error
    assert not dashboard.uploads


PLUGIN = """
from compile_worker.plugins.operator import custom_operator

@custom_operator("com.example", "Twice", flat=True)
def twice(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] + x[i]

@twice.reference
def _(x):
    return 2 * x
"""


def test_a_plugin_goes_with_its_job_and_is_known_where_it_runs(
    dashboard: RayDashboard,
    said: Said,
    steady: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(PLUGIN)
    node = onnx.helper.make_node("Twice", ["x"], ["y"], domain="com.example")
    net = saved(model([node], x=(1, 4, 2, 2)), tmp_path)
    np.savez(tmp_path / "x.npz", x=np.eye(4, dtype=np.float32).reshape(1, 4, 2, 2))
    words = ["submit", str(net), "--calibrate", str(tmp_path / "x.npz")]
    try:
        said(*words, "--plugin", str(plugin), "--folder", str(tmp_path / "runs"))
    finally:
        forget_plugins()
    (package,), (job,) = dashboard.uploads, dashboard.jobs.values()
    head = tmp_path / "head"
    with zipfile.ZipFile(dashboard.folder / package) as bundle:
        assert bundle.read(Digest.of(PLUGIN.encode()).hex).decode() == PLUGIN
        bundle.extractall(head)
    seen: list[Graph] = []

    def tune(settings: TuneSettings, *_: object, **__: object) -> int:
        seen.append(import_model(settings.model))
        return 0

    monkeypatch.setattr("driver.tune.tuning_run.tune", tune)
    monkeypatch.chdir(head)
    words = shlex.split(job.document["entrypoint"])
    try:
        assert cli.main(words[words.index("job") :]) == 0
    finally:
        forget_plugins()
    assert [type(each.op) for each in seen[0].nodes] == [Custom]


def test_jobs_are_listed_followed_and_cancelled(
    dashboard: RayDashboard, said: Said, steady: None
) -> None:
    job = json.loads(said(*SUBMIT))["id"]
    dashboard.jobs[job].log.write_text("first\n")
    assert said("logs", job) == "first\n"
    assert "RUNNING" in said("jobs")
    assert "is RUNNING: its run is not over" in said("fetch", job, code=2)
    assert "STOPPED; the same `tilefarm submit` continues" in said("cancel", job)
    assert said("logs", job, "--follow") == "first\n"
    (row,) = json.loads(said("jobs", "--json"))
    assert (row["id"], row["status"]) == (job, "STOPPED")
    assert json.loads(said("cancel", job, "--json"))["status"] == "STOPPED"


@pytest.mark.parametrize(
    ("status", "code", "next_step"),
    [
        ("SUCCEEDED", 0, "SUCCEEDED before; `tilefarm fetch {job}` brings what it made"),
        ("FAILED", 70, "FAILED before; `tilefarm logs {job}` says why"),
        ("FAILED", 75, "FAILED; the same `tilefarm submit` continues its run"),
        ("STOPPED", None, "STOPPED; the same `tilefarm submit` continues its run"),
    ],
)
def test_cancelling_a_job_that_has_ended_says_what_comes_next(
    status: str,
    code: int | None,
    next_step: str,
    said: Said,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = RayJob(
        id="job-1",
        status=status,
        message="",
        exit_code=code,
        began_seconds=None,
        ended_seconds=None,
        metadata={},
    )
    monkeypatch.setattr("driver.jobs.watching.stopped", lambda *_: job)
    assert said("cancel", "job-1") == f"job-1: {next_step.format(job='job-1')}\n"


def test_a_job_that_fails_at_once_says_why(
    dashboard: RayDashboard, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driver.jobs.watching.STEADY_SECONDS", 110.0)
    monkeypatch.setattr("driver.jobs.watching.BEGIN_SECONDS", 110.0)
    dashboard.runs = True
    why = said(*SUBMIT, "--folder", "/dev/null/x", code=70)
    assert "failed at once: tilefarm job run: /dev/null/x/" in why
    assert "cannot make the folder: Not a directory" in why


def run_of(dashboard: RayDashboard, said: Said, folder: Path) -> str:
    """A job that has ended, whose run left two files."""
    sent = json.loads(said(*SUBMIT, "--folder", str(folder)))
    out = folder / sent["run"] / "out"
    (out / "program").mkdir(parents=True)
    (out / "report.html").write_text("report")
    (out / "program/network.so").write_bytes(b"\x7fELF")
    dashboard.jobs[sent["id"]].status = "SUCCEEDED"
    dashboard.runs = True
    return str(sent["id"])


def test_what_a_job_has_made_is_fetched(
    dashboard: RayDashboard, said: Said, steady: None, tmp_path: Path
) -> None:
    job = run_of(dashboard, said, tmp_path / "runs")
    got = tmp_path / "got"
    assert "2 files of" in said("fetch", job, "--out", str(got))
    assert (got / "report.html").read_text() == "report"
    assert (got / "program/network.so").read_bytes() == b"\x7fELF"
    assert list(dashboard.jobs) == [job], "the errand is forgotten"
    assert "holds something" in said("fetch", job, "--out", str(got), code=2)


def test_what_is_damaged_on_the_way_is_refused(
    dashboard: RayDashboard, said: Said, steady: None, tmp_path: Path
) -> None:
    job = run_of(dashboard, said, tmp_path / "runs")
    dashboard.damage = b"UEsDB"  # how every archive begins
    got = tmp_path / "got"
    assert "arrived as another one\n  try: fetch it again" in said(
        "fetch", job, "--out", str(got), code=70
    )
    assert not got.exists()


def test_a_run_that_is_gone_is_told(
    dashboard: RayDashboard, said: Said, steady: None, tmp_path: Path
) -> None:
    job = json.loads(said(*SUBMIT, "--folder", str(tmp_path / "nowhere")))["id"]
    dashboard.jobs[job].status = "FAILED"
    dashboard.runs = True
    assert "the cluster cannot send it" in said("fetch", job, code=70)


@pytest.mark.parametrize("command", ["logs", "cancel", "fetch"])
def test_an_unknown_job_is_told(said: Said, command: str) -> None:
    assert "job-9: no such job on the cluster" in said(command, "job-9", code=2)


def test_what_cannot_be_submitted_is_refused_here(said: Said, dashboard: RayDashboard) -> None:
    assert "--python bin/python: not an absolute path" in said(
        *SUBMIT, "--python", "bin/python", code=2
    )
    assert "--trials -1" in said(*SUBMIT, "--trials", "-1", code=2)
    assert "nosuch.onnx" in said("submit", "nosuch.onnx", code=2)
    assert not dashboard.jobs
    assert not dashboard.uploads


@pytest.mark.parametrize(
    ("address", "code", "why"),
    [
        ("127.0.0.1:1", 3, "no Ray dashboard answers at http://127.0.0.1:1: "),
        ("192.0.2.1:8265", 2, "could read the token\n  try: ssh -L 8265:127.0.0.1:8265 192.0.2.1"),
        ("nonsense", 2, "--cluster nonsense: not host:port"),
        ("ftp://a:1", 2, "not host:port, nor a URL"),
        ("[::1", 2, "not host:port"),
    ],
)
def test_an_address_without_a_cluster_is_told(
    address: str, code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["jobs", "--cluster", address]) == code
    assert why in capsys.readouterr().err


def test_a_wrong_token_is_told(
    dashboard: RayDashboard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["jobs", "--cluster", dashboard.address]) == 2
    assert "refuses calls without a token\n  try: --cluster-token" in capsys.readouterr().err
    wrong = tmp_path / "wrong"
    wrong.write_text("another-token")
    wrong.chmod(0o600)
    words = ["jobs", "--cluster", dashboard.address, "--cluster-token", str(wrong)]
    assert cli.main(words) == 2
    assert "refuses the token" in capsys.readouterr().err


class Stranger(BaseHTTPRequestHandler):
    """Answers everything with a document that means nothing to us."""

    def do_GET(self) -> None:
        self.send_response(404 if self.path == "/api/jobs/" else 200)
        self.end_headers()
        self.wfile.write(b'{"hello": 1}' if self.path.startswith("/api") else b"<html>")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test looks at answers."""


@pytest.mark.parametrize("words", [["jobs"], ["logs", "j"], SUBMIT[:-1]])
def test_who_is_no_dashboard_is_told(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        assert cli.main([*words, "--cluster", f"127.0.0.1:{server.server_port}"]) == 70
        server.shutdown()
    assert "is no Ray dashboard\n  try: --cluster with the address" in capsys.readouterr().err


def test_a_cluster_without_nodes_is_told(
    dashboard: RayDashboard, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RayDashboard, "nodes", lambda _: {"data": {"summary": []}})
    assert "no node of the cluster is alive\n  try: `ray status`" in said(*SUBMIT, code=70)


def test_ray_of_one_machine_is_no_option_of_a_job(said: Said) -> None:
    assert "unrecognized arguments: --no-ray" in said(*SUBMIT, "--no-ray", code=2)
