"""A small schema registry on 127.0.0.1, over real HTTP, which fails as a test wants."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

Answer = tuple[int, Any]
"""The HTTP status, and JSON or bytes."""


class FakeRegistry:
    """``failing`` replaces answers, unless it returns None.

    ``requests`` are all that came: method, path with query, headers in lower case, JSON.
    """

    def __init__(self, server: ThreadingHTTPServer, scheme: str) -> None:
        self._server = server
        self._scheme = scheme
        self.failing: Callable[[str, str], Answer | None] = lambda method, path: None
        self.authorization: str | None = None
        """What requests must have as such a header."""
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.subjects: dict[str, list[int]] = {}
        """By subject, the ids of its versions."""
        self.schemas: list[dict[str, Any]] = []
        """By id, counted from 1."""

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    @property
    def paths(self) -> list[str]:
        return [f"{method} {path}" for method, path, _, _ in self.requests]

    def answer(self, method: str, path: str, headers: dict[str, str], body: Any) -> Answer:
        self.requests.append((method, path, headers, body))
        if (failure := self.failing(method, path)) is not None:
            return failure
        if self.authorization is not None and headers.get("authorization") != self.authorization:
            # One that does not keep a secret.
            return 401, {"error_code": 401, "message": f"{headers.get('authorization')} is nobody"}
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        match method, parts:
            case "POST", ["subjects", subject, "versions"]:
                return 200, {"id": self._register(subject, body)}
            case "POST", ["subjects", subject]:
                return self._look_up(subject, body)
            case "GET", ["subjects"]:
                return 200, list(self.subjects)
            case "GET", ["subjects", subject, "versions", version]:
                return self._version(subject, version)
            case "GET", ["schemas", "ids", number]:
                if not 0 < int(number) <= len(self.schemas):
                    return 404, {"error_code": 40403, "message": "Schema not found"}
                return 200, self.schemas[int(number) - 1]
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _register(self, subject: str, body: dict[str, Any]) -> int:
        if body not in self.schemas:
            self.schemas.append(body)
        number = self.schemas.index(body) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def _look_up(self, subject: str, body: dict[str, Any]) -> Answer:
        if subject not in self.subjects:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        for version, number in enumerate(self.subjects[subject], 1):
            if self.schemas[number - 1] == body:
                return self._version(subject, str(version))
        return 404, {"error_code": 40403, "message": "Schema not found"}

    def _version(self, subject: str, version: str) -> Answer:
        versions = self.subjects.get(subject, [])
        number = len(versions) if version == "latest" else int(version)
        if not 0 < number <= len(versions):
            return 404, {"error_code": 40402, "message": f"Version {version} not found."}
        schema_id = versions[number - 1]
        return 200, {"subject": subject, "version": number, "id": schema_id, **self.schemas[schema_id - 1]}


@contextmanager
def fake_registry(context: ssl.SSLContext | None = None) -> Iterator[FakeRegistry]:
    class Handler(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                self.close_connection = True  # whoever asked has enough

        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, made = registry.answer(self.command, self.path, headers, body)
            data = made if isinstance(made, bytes) else json.dumps(made).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_PUT = do_DELETE = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a handshake that failed, as a test wants

    with Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            # The handshake is made by the thread of the connection, when it first reads.
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        registry = FakeRegistry(server, "http" if context is None else "https")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
