"""A stand-in for a Ray cluster's dashboard: packages, and jobs that run as processes here."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

CLUSTER_TOKEN = "the-token-of-a-cluster"


@dataclass(slots=True)
class StandInJob:
    """One job; `status` and `code` are those of its process, unless a test has set them."""

    document: dict[str, Any]
    log: Path
    process: subprocess.Popen[bytes] | None
    status: str = ""

    def state(self) -> dict[str, Any]:
        code = self.process.poll() if self.process else None
        words = {None: "RUNNING", 0: "SUCCEEDED"}
        return {
            "submission_id": self.document["submission_id"],
            "status": self.status or words.get(code, "FAILED"),
            "message": "as it is",
            "driver_exit_code": code,
            "start_time": 1_000,
            "end_time": None if code is None else 3_000,
            "metadata": self.document["metadata"],
        }


@dataclass(slots=True)
class RayDashboard:
    """Serves on loopback while it is entered.

    Attributes:
        python: what the head says that it runs workers with.
        runs: whether jobs are started at all.
        uploads: names of the packages in the order in which they came.
        damage: bytes that arrive backwards where they are in a log.
    """

    folder: Path
    python: str
    runs: bool = True
    uploads: list[str] = field(default_factory=list)
    jobs: dict[str, StandInJob] = field(default_factory=dict)
    damage: bytes = b""
    unready: list[bytes] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        for job in self.jobs.values():
            if job.process:
                job.process.kill()
                job.process.wait()

    @property
    def address(self) -> str:
        assert self._server is not None
        return f"127.0.0.1:{self._server.server_port}"

    def nodes(self) -> dict[str, Any]:
        head = {"state": "ALIVE", "isHeadNode": True, "resourcesTotal": {"CPU": 2.0}}
        other = {"state": "ALIVE", "resourcesTotal": {"CPU": 3.0}}
        dead = {"state": "DEAD", "resourcesTotal": {"CPU": 7.0}}
        words = ["raylet", f"--python_worker_command={self.python} worker.py"]
        found = [{"raylet": node, "cmdline": words} for node in (dead, other, head)]
        return {"data": {"summary": found}}

    def start(self, document: dict[str, Any]) -> None:
        name = document["submission_id"]
        place = self.folder / name
        place.mkdir()
        package = document["runtime_env"].get("working_dir", "").removeprefix("gcs://")
        if package:
            with zipfile.ZipFile(self.folder / package) as archive:
                archive.extractall(place)
        log = self.folder / f"{name}.log"
        process = None
        with log.open("wb") as output:
            if self.runs:
                process = subprocess.Popen(
                    shlex.split(document["entrypoint"]),
                    cwd=place,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
        self.jobs[name] = StandInJob(document, log, process)


def _handler(dashboard: RayDashboard) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Nothing: tests look at answers."""

        def do_GET(self) -> None:
            self._route("GET")

        def do_PUT(self) -> None:
            self._route("PUT")

        def do_POST(self) -> None:
            self._route("POST")

        def do_DELETE(self) -> None:
            self._route("DELETE")

        def _route(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != f"Bearer {CLUSTER_TOKEN}":
                return self._answer(401, b"Unauthorized")
            match (method, *self.path.strip("/").split("/")):
                case ("GET", "nodes?view=summary"):
                    return self._json(dashboard.nodes())
                case ("GET", "api", "packages", "gcs", name):
                    there = (dashboard.folder / name).exists()
                    return self._answer(200 if there else 404, b"")
                case ("PUT", "api", "packages", "gcs", name):
                    (dashboard.folder / name).write_bytes(body)
                    dashboard.uploads.append(name)
                    return self._answer(200, b"")
                case ("POST", "api", "jobs") if dashboard.unready:
                    return self._answer(500, dashboard.unready.pop(0))
                case ("POST", "api", "jobs"):
                    dashboard.start(json.loads(body))
                    return self._json({})
                case ("GET", "api", "jobs"):
                    return self._json([job.state() for job in dashboard.jobs.values()])
                case (_, "api", "jobs", name, *what) if name in dashboard.jobs:
                    return self._of_job(method, name, what)
            return self._answer(404, b"there is none")

        def _of_job(self, method: str, name: str, what: list[str]) -> None:
            job = dashboard.jobs[name]
            match method, what:
                case "GET", ["logs"]:
                    log = job.log.read_bytes()
                    if dashboard.damage and dashboard.damage in log:
                        log = log.replace(dashboard.damage, dashboard.damage[::-1])
                    return self._json({"logs": log.decode()})
                case "POST", ["stop"]:
                    job.status = "STOPPED"
                case "DELETE", []:
                    del dashboard.jobs[name]
                    return self._json({})
            return self._json(job.state())

        def _json(self, document: object) -> None:
            self._answer(200, json.dumps(document).encode())

        def _answer(self, code: int, content: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler
