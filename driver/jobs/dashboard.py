"""A Ray cluster's jobs by the REST interface of its dashboard: nothing of Ray is needed here.

Ray closes the interface to whoever does not show the cluster's token, and leaves encryption to
tunnels and proxies: beyond this machine we speak to it by https only.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlsplit

from tilefarm.address import is_loopback
from tilefarm.errors import (
    AccessError,
    InfraError,
    SettingsError,
    TilefarmError,
    UnreachableError,
)

from driver.jobs.responses import Cluster, RayJob, cluster_of, job_of, jobs_of

_T = TypeVar("_T")

_CALL_SECONDS: Final = 60.0
_REFUSED: Final = (401, 403)
_ABSENT: Final = 404
_UNREADY: Final = ("No available agent", "Cannot connect to host")
"""What a dashboard answers while the agent is not there, and while it does not listen yet."""
_NO_CLUSTER: Final = (
    "a cluster of `pip install 'tilefarm[cluster]'` and `ray start --head`; from another machine"
    " through `ssh -L 8265:127.0.0.1:8265 HEAD`"
)


Open = Callable[[urllib.request.Request, float], Any]
"""Opens a request within so many seconds, as `urllib.request.urlopen`."""


class Dashboard:
    """One cluster's REST interface.

    Every method raises:
        UnreachableError: nobody answers.
        AccessError: the cluster refuses the token.
        InfraError: who answers is no Ray dashboard, or cannot do it.

    Args:
        address: `host:port` or a URL.
        token: the cluster's; empty if it asks for none.

    Raises:
        SettingsError: the address is none, or the token would travel in the clear.
    """

    def __init__(self, address: str, token: str = "", *, open: Open | None = None) -> None:
        self.address = _checked(address)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        # A proxy of the environment must not see the farm.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._open: Open = open or (lambda request, seconds: opener.open(request, timeout=seconds))

    def cluster(self) -> Cluster:
        """Its nodes."""
        return self._understood(cluster_of, self._json("GET", "/nodes?view=summary"))

    def holds(self, package: str) -> bool:
        """Whether a package is there."""
        try:
            self._call("GET", f"/api/packages/gcs/{package}")
        except _Absent:
            return False
        return True

    def upload(self, package: str, content: bytes) -> None:
        """Give it a package."""
        self._call("PUT", f"/api/packages/gcs/{package}", content)

    def submit(
        self, job: str, entrypoint: str, *, package: str | None, metadata: Mapping[str, str]
    ) -> None:
        """Start a job on the head, in the folder of a package.

        Raises:
            UnreadyError: what starts jobs there is not up yet.
        """
        body = {
            "submission_id": job,
            "entrypoint": entrypoint,
            "runtime_env": {"working_dir": f"gcs://{package}"} if package else {},
            "metadata": dict(metadata),
        }
        self._json("POST", "/api/jobs/", json.dumps(body).encode())

    def jobs(self) -> list[RayJob]:
        """The submitted ones that it remembers, oldest first."""
        jobs = self._understood(jobs_of, self._json("GET", "/api/jobs/"))
        return sorted(jobs, key=lambda job: job.began_seconds or 0.0)

    def job(self, job: str) -> RayJob:
        """One of them.

        Raises:
            SettingsError: there is none of that name.
        """
        return self._understood(job_of, self._of_job("GET", job))

    def log(self, job: str) -> str:
        """All that it has printed.

        Raises:
            SettingsError: there is none of that name.
        """
        return self._understood(
            lambda found: found["logs"] or "", self._of_job("GET", job, "/logs")
        )

    def stop(self, job: str) -> None:
        """Have it ended: SIGTERM, and SIGKILL three seconds later.

        Raises:
            SettingsError: there is none of that name.
        """
        self._of_job("POST", job, "/stop")

    def forget(self, job: str) -> None:
        """Remove one that has ended.

        Raises:
            SettingsError: there is none of that name.
        """
        self._of_job("DELETE", job)

    def _of_job(self, method: str, job: str, what: str = "") -> Any:
        try:
            return self._json(method, f"/api/jobs/{quote(job, safe='')}{what}")
        except _Absent:
            raise SettingsError(
                f"{job}: no such job on the cluster at {self.address}", "`tilefarm jobs` lists them"
            ) from None

    def _json(self, method: str, path: str, body: bytes | None = None) -> Any:
        content = self._call(method, path, body)
        try:
            return json.loads(content)
        except ValueError:
            raise self._stranger() from None

    def _understood(self, read: Callable[[Any], _T], answer: Any) -> _T:
        try:
            return read(answer)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError):
            raise self._stranger() from None

    def _stranger(self) -> InfraError:
        return InfraError(
            f"who answers at {self.address} is no Ray dashboard",
            "--cluster with the address of one; Ray's own is 127.0.0.1:8265",
        )

    def _call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        kind = "application/json" if method == "POST" else "application/octet-stream"
        request = urllib.request.Request(
            self.address + path,
            data=body,
            method=method,
            headers={**self._headers, "Content-Type": kind},
        )
        try:
            with self._open(request, _CALL_SECONDS) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as refusal:
            raise self._refused(refusal, path) from None
        except http.client.HTTPException:
            raise self._stranger() from None
        except (OSError, ValueError) as error:
            cause = getattr(error, "reason", None) or error
            reason = getattr(cause, "strerror", None) or cause
            raise UnreachableError(
                f"no Ray dashboard answers at {self.address}: {reason}", _NO_CLUSTER
            ) from None

    def _refused(self, refusal: urllib.error.HTTPError, path: str) -> TilefarmError:
        with refusal:
            lines = refusal.read().decode(errors="replace").strip().splitlines()
        if refusal.code in _REFUSED:
            return AccessError(
                f"the cluster at {self.address} refuses {self._shown}",
                "--cluster-token FILE with what its RAY_AUTH_TOKEN_PATH names",
            )
        if refusal.code == _ABSENT:
            return _Absent(*self._stranger().args)
        why = lines[-1] if lines else refusal.reason
        if any(word in why for word in _UNREADY):
            return UnreadyError(f"the cluster at {self.address} starts no jobs: {why}")
        return InfraError(f"the cluster at {self.address} answers {refusal.code} to {path}: {why}")

    @property
    def _shown(self) -> str:
        return "the token" if self._headers else "calls without a token"


class UnreadyError(InfraError):
    """The agent that starts a cluster's jobs is not up; it begins some seconds after the rest."""


class _Absent(InfraError):
    """There is nothing of that name, or, where there always is something, no dashboard."""


def _checked(address: str) -> str:
    """The URL of an address."""
    url = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port is not None
    except ValueError:
        known = False
    if not known:
        raise SettingsError(
            f"--cluster {address}: not host:port, nor a URL with a port", "127.0.0.1:8265"
        )
    if parts.scheme == "http" and not is_loopback(parts.netloc):
        raise SettingsError(
            f"--cluster {address} is not on loopback, and without TLS anyone on the network could"
            " read the token",
            f"ssh -L 8265:127.0.0.1:{parts.port} {parts.hostname}, and --cluster 127.0.0.1:8265",
        )
    return f"{parts.scheme}://{parts.netloc}"
