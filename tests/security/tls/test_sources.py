"""The context of each new connection."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from aioproducer.errors import ConfigException, SslAuthenticationException
from aioproducer.security.oauth.settings import EndpointTls
from aioproducer.security.tls.contexts import client_context
from aioproducer.security.tls.sources import ContextFactory, FixedContext, RenewedContext
from tests.support.security.certificates import Certificates, make_certificates

SOURCES = "aioproducer.security.tls.sources"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def renewed(file: Path) -> RenewedContext:
    settings = EndpointTls(ssl_truststore_location=str(file))
    return RenewedContext(lambda: client_context(settings, checks_hostname=True), (str(file),), "this client")


def authorities(context: ssl.SSLContext) -> set[bytes]:
    return set(context.get_ca_certs(binary_form=True))


async def test_files_that_change(certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, SOURCES)
    file = tmp_path / "trust.pem"
    shutil.copy(certificates.authority, file)
    source = renewed(file)
    first = await source.context()
    assert await source.context() is first
    file.write_bytes(certificates.other_authority.read_bytes() + b"\n")
    second = await source.context()
    assert authorities(second).isdisjoint(authorities(first))
    assert await source.context() is second
    shutil.copy(certificates.authority, tmp_path / "new")
    os.replace(tmp_path / "new", file)
    assert authorities(await source.context()) == authorities(first)
    assert [record.kafka["event"] for record in caplog.records] == ["certificates_renewed"] * 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("damage", [b"-----BEGIN", b"", None])
async def test_bad_files_leave_the_context_as_it_is(
    certificates: Certificates, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes | None
) -> None:
    file = tmp_path / "trust.pem"
    shutil.copy(certificates.authority, file)
    source = renewed(file)
    first = await source.context()
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    assert [await source.context() for _ in range(3)] == [first] * 3
    (told,) = caplog.records
    assert told.levelname == "WARNING"
    assert told.kafka["event"] == "certificates_not_renewed"  # type: ignore[attr-defined]
    assert str(file) in told.getMessage()
    shutil.copy(certificates.other_authority, file)
    assert authorities(await source.context()).isdisjoint(authorities(first))


async def test_many_connections_at_once_renew_once(certificates: Certificates, tmp_path: Path) -> None:
    file = tmp_path / "trust.pem"
    shutil.copy(certificates.authority, file)
    made = []

    def make() -> ssl.SSLContext:
        made.append(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return made[-1]

    source = RenewedContext(make, (str(file),), "this client")
    file.write_bytes(b"another size")
    contexts = await asyncio.gather(*[source.context() for _ in range(20)])
    assert len(made) == 2
    assert set(contexts) == {made[1]}


async def test_a_factory_is_called_for_each_connection_in_a_thread() -> None:
    threads = []

    def factory() -> ssl.SSLContext:
        threads.append(threading.current_thread())
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    source = ContextFactory(factory)
    assert await source.context() is not await source.context()
    assert len(threads) == 3
    assert threading.main_thread() not in threads[1:]


async def test_a_factory_that_fails() -> None:
    answers: list[Any] = [ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "no context", OSError("no vault")]

    def factory() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    source = ContextFactory(factory)
    with pytest.raises(SslAuthenticationException, match=r"factory returned str, not an ssl\.SSLContext"):
        await source.context()
    with pytest.raises(SslAuthenticationException, match=r"factory failed \(OSError: no vault\)"):
        await source.context()
    answers.append(7)
    with pytest.raises(ConfigException, match=r"config 'ssl\.engine\.factory\.class': .* returned int"):
        ContextFactory(factory)


async def test_a_context_of_the_users() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    assert await FixedContext(context).context() is context
