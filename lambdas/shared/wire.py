"""One request over one socket that another thread may shut at any moment.

HTTP libraries only know timeouts for single reads, which a dripping server never meets. Here the
socket belongs to us, so the deadline can be kept from outside: `shut` ends a connect, a handshake or
a read that is under way, and no byte is sent after it.
"""

import contextlib
import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import SplitResult, urlsplit

from botocore.awsrequest import AWSPreparedRequest, AWSResponse

# Where a connect under way cannot be shut, it ends by itself this long after the deadline.
SECOND_LINE_S = 1.0


class WireShut(Exception):
    """The wire was shut before the exchange was over."""


class _Body(io.BytesIO):
    """A complete body in the shape that botocore reads."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


class Wire:
    """Good for one exchange. `send` runs in the thread of the call, `shut` in the one that keeps the time."""

    def __init__(
        self,
        deadline_ns: int,
        tls: ssl.SSLContext | None,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._deadline_ns, self._tls, self._monotonic_ns = deadline_ns, tls, monotonic_ns
        # Guards the two below: a descriptor must not be shut after it was closed and given to another socket.
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_shut = False

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        """Send the prepared request once and read the whole answer."""
        url = urlsplit(request.url)
        connection = self._http(url)
        try:
            connection.sock = self._connect(url, connection.port)
            target = url.path + (f"?{url.query}" if url.query else "")
            connection.request(request.method, target, request.body, dict(request.headers.items()))
            response = connection.getresponse()
            return AWSResponse(request.url, response.status, response.headers, _Body(response.read()))
        finally:
            self._close()

    def shut(self) -> None:
        with self._lock:
            self._is_shut = True
            if self._socket is not None:
                # Not ssl's own shutdown: it would take the TLS state away from the reading thread.
                with contextlib.suppress(OSError):  # not yet connected, or the peer was quicker
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _http(self, url: SplitResult) -> http.client.HTTPConnection:
        if url.scheme == "https":
            return http.client.HTTPSConnection(url.hostname, url.port, context=self._tls)
        return http.client.HTTPConnection(url.hostname, url.port)

    def _connect(self, url: SplitResult, port: int) -> socket.socket:
        # A resolver cannot be interrupted, but what it says after the deadline is not used.
        refused: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(
            url.hostname, port, type=socket.SOCK_STREAM
        ):
            plain = self._own(socket.socket(family, kind, protocol))
            try:
                plain.connect(address)
            except OSError as error:  # nothing was sent yet, so another address is not another request
                refused = error
                continue
            self._own(plain)
            return self._secure(plain, url.hostname) if url.scheme == "https" else plain
        raise refused or OSError(f"no address for {url.hostname}")

    def _secure(self, plain: socket.socket, host: str) -> socket.socket:
        secured = self._own(self._tls.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False))
        secured.do_handshake()
        return self._own(secured)

    def _own(self, newest: socket.socket) -> socket.socket:
        """From here on `shut` reaches this socket; refused once the wire is shut."""
        left_s = (self._deadline_ns - self._monotonic_ns()) / 1e9
        with self._lock:
            if self._is_shut or left_s <= 0:
                newest.close()
                raise WireShut("the deadline has passed")
            if self._socket is not None and self._socket is not newest:
                self._socket.close()
            self._socket = newest
        newest.settimeout(left_s + SECOND_LINE_S)
        return newest

    def _close(self) -> None:
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket, self._is_shut = None, True
