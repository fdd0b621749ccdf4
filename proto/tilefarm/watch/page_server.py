"""A page over HTTP that no reader holds up: neither one who is silent nor one who is slow.

The handshake and the request are a thread's of their own, with a timeout; of very many readers the
oldest has to go. With certificates it takes those that its folder holds now.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import WSGIApplication

from tilefarm.errors import SettingsError
from tilefarm.trust.tls import AUTHORITY, IDENTITY, TlsFolder

_SILENT_SECONDS: Final = 5.0
_READERS: Final = 16
"""At a time: a server of metrics has one or two, who take milliseconds."""


class PageServer(ThreadingMixIn, WSGIServer):
    """Serves one application until it is shut down.

    Args:
        host, port: where.
        page: the application.
        tls: the certificates of both sides; None: readers need none.

    Raises:
        OSError: nobody can listen there.
        SettingsError: the certificates cannot be used.
    """

    daemon_threads = True
    request_queue_size = 128  # five by default: beyond them a reader waits for seconds

    def __init__(
        self, host: str, port: int, page: WSGIApplication, *, tls: TlsFolder | None
    ) -> None:
        self._contexts = None if tls is None else _Contexts(tls)
        self._readers: dict[Any, None] = {}
        self._lock = threading.Lock()
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        super().__init__((host, port), _Quiet)
        self.set_app(page)

    def get_request(self) -> tuple[Any, Any]:
        connection, peer = super().get_request()
        connection.settimeout(_SILENT_SECONDS)
        if self._contexts is not None:
            context = self._contexts.latest()
            connection = context.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        with self._lock:
            if len(self._readers) >= _READERS:
                with contextlib.suppress(OSError):  # It has gone by itself.
                    next(iter(self._readers)).shutdown(socket.SHUT_RDWR)
            self._readers[connection] = None
        return connection, peer

    def finish_request(self, request: Any, client_address: Any) -> None:
        if isinstance(request, ssl.SSLSocket):
            request.do_handshake()
        super().finish_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._readers.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a reader who was cut off, or has no certificate, is no news."""


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: who reads when is no news."""


class _Contexts:
    """What connections are encrypted with, by the latest certificates that can be used."""

    def __init__(self, tls: TlsFolder) -> None:
        self._tls = tls
        self._seen = tls.read_usable()
        self._context = self._made()

    def latest(self) -> ssl.SSLContext:
        with contextlib.suppress(SettingsError):  # A folder that is being written: the last ones.
            if self._tls.read() != self._seen:
                self._seen = self._tls.read_usable()
                self._context = self._made()
        return self._context

    def _made(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._tls.path / IDENTITY)
        context.load_verify_locations(self._tls.path / AUTHORITY)
        context.verify_mode = ssl.CERT_REQUIRED
        return context
