"""Where a server listens: on loopback or a unix socket, or elsewhere with TLS and tokens."""

from __future__ import annotations

import contextlib
import importlib.util
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from tilefarm.errors import SettingsError
from tilefarm.rpc.caller import MESSAGE_NBYTES, Options
from tilefarm.rpc.health import HealthOf, health_routes
from tilefarm.rpc.serving import Desk, Handlers, Route
from tilefarm.trust.exposure import require_safe, why_not
from tilefarm.trust.tls import TlsFolder

SERVER_OPTIONS: Final[Options] = (
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.max_concurrent_streams", 128),
    ("grpc.max_receive_message_length", MESSAGE_NBYTES),
    # Two servers on one port would share its connections silently.
    ("grpc.so_reuseport", 0),
)
_CONCURRENT_RPCS: Final = 256
_STOP_GRACE_SECONDS: Final = 1.0
_PROBE_SECONDS: Final = 1.0


async def start(
    routes: Iterable[Route[Any, Any]],
    *,
    listen: str,
    desk: Desk,
    tls: TlsFolder | None = None,
    concurrent_rpcs: int = _CONCURRENT_RPCS,
    options: Options = (),
    health_of: HealthOf,
) -> tuple[grpc.aio.Server, str]:
    """A running server and the address that it has got.

    Args:
        routes: what it answers.
        listen: `host:port` (port 0 for any free one) or `unix:/path` (made 0600).
        desk: what its handlers share.
        tls: the server's certificates; None for a farm on one machine.
        concurrent_rpcs: calls that are answered at a time; gRPC refuses more.
        options: of gRPC, beside those that every server has.
        health_of: how the server is, and what else it answers for.

    Raises:
        SettingsError: the address is none, taken, or not on loopback without TLS; or the
            certificates cannot be used.
    """
    require_safe(listen, tls)
    server = grpc.aio.server(
        options=SERVER_OPTIONS + options, maximum_concurrent_rpcs=concurrent_rpcs
    )
    answers = [*routes, *health_routes(health_of)]
    if tls is None:
        _reflect(server, {route.method.service for route in answers})
    server.add_generic_rpc_handlers((Handlers(answers, desk),))
    try:
        address = _bind(server, listen, tls)
    except BaseException:
        await server.stop(None)
        raise
    await server.start()
    return server, address


async def stop(server: grpc.aio.Server) -> None:
    """Ends a server; calls in progress get a moment."""
    await server.stop(_STOP_GRACE_SECONDS)


def _reflect(server: grpc.aio.Server, services: Iterable[str]) -> None:
    """Tell tools on this machine what the services are (`grpcurl`), if the package is here."""
    if importlib.util.find_spec("grpc_reflection") is not None:
        from grpc_reflection.v1alpha import reflection

        reflection.enable_server_reflection((*services, reflection.SERVICE_NAME), server)


def _bind(server: grpc.aio.Server, listen: str, tls: TlsFolder | None) -> str:
    if listen.startswith("unix:"):
        _require_nobody_at(Path(listen.removeprefix("unix:")))
    try:
        if tls is None:
            port = server.add_insecure_port(listen)
        else:
            port = server.add_secure_port(listen, _server_credentials(tls))
    except RuntimeError:
        port = 0
    if port == 0:
        raise SettingsError(*why_not(listen))
    if listen.startswith("unix:"):
        Path(listen.removeprefix("unix:")).chmod(0o600)
        return listen
    return f"{listen.rpartition(':')[0]}:{port}"


def _require_nobody_at(path: Path) -> None:
    """Nothing if nobody serves a unix socket: gRPC replaces the one that is there.

    Raises:
        SettingsError: somebody does, or it is no socket.
    """
    what = f"cannot listen on unix:{path}"
    if not path.exists():
        return
    if not path.is_socket():
        raise SettingsError(f"{what}: there is a file of another kind", "name another path")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PROBE_SECONDS)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return  # left behind by a server that was killed
        except OSError as error:
            raise SettingsError(f"{what}: {error.strerror or error}", "name another path") from None
    raise SettingsError(f"{what}: another server serves it", "stop that one, or name another path")


def _server_credentials(tls: TlsFolder) -> grpc.ServerCredentials:
    """Credentials that look at the folder again for every handshake: rotating needs no restart."""
    latest = tls.read()

    def configuration() -> grpc.ServerCertificateConfiguration:
        nonlocal latest
        with contextlib.suppress(SettingsError):  # A folder that is being written: the last ones.
            latest = tls.read()
        return grpc.ssl_server_certificate_configuration(
            [(latest.key, latest.certificate)], root_certificates=latest.authority
        )

    return grpc.dynamic_ssl_server_credentials(
        configuration(), configuration, require_client_authentication=True
    )
