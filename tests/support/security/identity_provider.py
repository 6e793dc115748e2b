"""A small identity provider on 127.0.0.1: a token endpoint and a JWKS endpoint, which fail as a test wants."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import pytest

jwt = pytest.importorskip("jwt", reason="PyJWT is not installed")
rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa", reason="cryptography is not installed")

ISSUER = "http://identity.example/realm"
AUDIENCE = "kafka"
CLIENT_ID = "alice"
CLIENT_SECRET = "planted secret"

Answer = tuple[int, bytes]


class SigningKey:
    """A private key with an id."""

    def __init__(self, kid: str = "key-1") -> None:
        self.kid = kid
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def jwk(self) -> dict[str, Any]:
        """Its public half."""
        found: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return {**found, "kid": self.kid, "use": "sig", "alg": "RS256"}

    def sign(self, claims: dict[str, Any], **headers: Any) -> str:
        signed: str = jwt.encode(claims, self._key, "RS256", headers={"kid": self.kid, **headers})
        return signed


KEY = SigningKey()


def claims(lifetime: float = 3600, **more: Any) -> dict[str, Any]:
    """Those of a token for Alice that is issued now."""
    now = time.time()
    standard = {"iss": ISSUER, "aud": AUDIENCE, "sub": CLIENT_ID, "iat": now, "exp": now + lifetime, "scope": "produce"}
    return {name: value for name, value in {**standard, **more}.items() if value is not None}


class IdentityProvider:
    """``failing`` replaces the answers to token requests while it is set; ``requests`` are all forms received."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self.keys = [KEY]
        self.lifetime = 3600.0
        self.more: dict[str, Any] = {}
        self.failing: Callable[[], Answer] | None = None
        self.requests: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.jwks_requests = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/jwks"

    def configs(self, **more: Any) -> dict[str, Any]:
        """What a client of it is given."""
        return {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauthbearer_token_endpoint_url": self.token_url,
            "sasl_oauthbearer_client_credentials_client_id": CLIENT_ID,
            "sasl_oauthbearer_client_credentials_client_secret": CLIENT_SECRET,
            **more,
        }

    def token(self, **more: Any) -> str:
        return self.keys[0].sign(claims(self.lifetime, **{**self.more, **more}))

    def answer(self, form: dict[str, str], headers: dict[str, str]) -> Answer:
        """To a token request."""
        self.requests.append(form)
        self.headers.append(headers)
        if self.failing is not None:
            return self.failing()
        if form["grant_type"] == "client_credentials" and "client_assertion" not in form:
            said = base64.b64decode(headers.get("authorization", "").removeprefix("Basic ")).decode()
            if said != f"{CLIENT_ID}:{CLIENT_SECRET}":
                # One that does not keep a secret.
                refusal = {"error": "unauthorized_client", "error_description": f"{said} is nobody"}
                return 401, json.dumps(refusal).encode()
        return 200, json.dumps({"access_token": self.token(), "expires_in": self.lifetime}).encode()

    def jwks(self) -> Answer:
        self.jwks_requests += 1
        return 200, json.dumps({"keys": [key.jwk for key in self.keys]}).encode()


@contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            form = {name: values[0] for name, values in parse_qs(self.rfile.read(size).decode()).items()}
            self.send(*provider.answer(form, {name.lower(): value for name, value in self.headers.items()}))

        def do_GET(self) -> None:
            self.send(*(provider.jwks() if self.path == "/jwks" else (404, b"")))

        def send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # whoever asked has enough

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        provider = IdentityProvider(server)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
