"""A local HTTP server that misbehaves on command and counts what arrives on the wire."""

import contextlib
import json
import socket
import threading
import time

ANSWER = {
    "status": "COMMITTED",
    "transaction_id": "tx-1",
    "refund_request_id": "ref-poc-001",
    "amount_minor": 10000,
    "currency": "BRL",
}


def http(body, status="200 OK", headers=()):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Content-Type: application/json", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Server:
    """Answers each connection by `behave(connection)`, after reading the whole request.

    `requests` counts complete requests, `closed` is set when the peer's end was seen.
    """

    def __init__(self, behave, wrap=lambda connection: connection):
        self._behave, self._wrap = behave, wrap
        self.requests, self.bodies = 0, []
        self.closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A close alone leaves the port open for as long as a thread waits in accept.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError), self._wrap(connection) as secured:
            self._read_request(secured)
            self._behave(secured)
            # What is left to read is the peer's end: an empty read or a reset.
            try:
                while secured.recv(1024):
                    pass
            except OSError:
                pass
            self.closed.set()

    def _read_request(self, connection):
        reader = connection.makefile("rb")
        length = 0
        while (line := reader.readline().strip()) or not length:
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
            if not line:
                break
        self.bodies.append(reader.read(length))
        self.requests += 1


def reply(data):
    return lambda connection: connection.sendall(data)


def reply_and_hang_up(data):
    def behave(connection):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_RDWR)

    return behave


def stall(connection):
    """Say nothing until the peer goes."""


def drip(data, pause_s):
    """One byte at a time, until done or the peer is gone."""

    def behave(connection):
        with contextlib.suppress(OSError):
            for byte in data:
                connection.sendall(bytes([byte]))
                time.sleep(pause_s)

    return behave


def drip_body(data, pause_s):
    head, body = data.split(b"\r\n\r\n")

    def behave(connection):
        connection.sendall(head + b"\r\n\r\n")
        drip(body, pause_s)(connection)

    return behave


def reset(connection):
    """Close with a reset instead of an end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    connection.close()


def hang_up(connection):
    connection.shutdown(socket.SHUT_RDWR)
