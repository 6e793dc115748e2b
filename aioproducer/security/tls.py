"""Makes SSL contexts for asyncio from the certificates and keys in Kafka's configs, in PEM.

``ssl.keystore.*`` is the own key and certificate, ``ssl.truststore.*`` the authorities to trust. Each is a file
(``location``), or the PEM text itself (``key`` and ``certificate.chain``, ``certificates``; KIP-651). Java's formats
are not read here.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import tempfile
from pathlib import Path
from typing import Protocol

from aioproducer.errors import ConfigException
from aioproducer.security.password import Password

_BLOCK = re.compile(r"(-----BEGIN ([A-Z0-9 ]+)-----)(.*?)(-----END \2-----)", re.DOTALL)


class TlsConfig(Protocol):
    """The configs that clients and brokers share."""

    @property
    def ssl_keystore_location(self) -> str | None: ...
    @property
    def ssl_keystore_key(self) -> Password | None: ...
    @property
    def ssl_keystore_certificate_chain(self) -> Password | None: ...
    @property
    def ssl_key_password(self) -> Password | None: ...
    @property
    def ssl_truststore_location(self) -> str | None: ...
    @property
    def ssl_truststore_certificates(self) -> Password | None: ...


def client_context(config: TlsConfig, *, checks_hostname: bool) -> ssl.SSLContext:
    """Trusts the authorities in the trust store, or the system's without one. Raises :class:`ConfigException`."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    if config.ssl_truststore_location is not None or config.ssl_truststore_certificates is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = checks_hostname
    _believe(context, config)
    _show(context, config)
    return context


def server_context(
    config: TlsConfig, *, client_auth: str, context_class: type[ssl.SSLContext] = ssl.SSLContext
) -> ssl.SSLContext:
    """``client_auth`` is ``ssl.client.auth``: clients must present a certificate (required), may (requested), or are
    not asked (none). Raises :class:`ConfigException`."""
    context = context_class(ssl.PROTOCOL_TLS_SERVER)
    if not _show(context, config):
        raise _refused(
            "ssl.keystore.location",
            "it is missing: a listener with TLS needs a certificate and its key, in a file or in"
            " ssl.keystore.certificate.chain and ssl.keystore.key",
        )
    trusts = _believe(context, config)
    if client_auth != "none" and not trusts:
        raise _refused(
            "ssl.truststore.location", f"it is missing: ssl.client.auth={client_auth} needs to know whom to believe"
        )
    context.verify_mode = {
        "none": ssl.CERT_NONE,
        "requested": ssl.CERT_OPTIONAL,
        "required": ssl.CERT_REQUIRED,
    }[client_auth]
    return context


_SHORT_NAMES = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_SPECIAL = re.compile(r'([,+"\\<>;=]|^[ #]| $)')


def certified_name(transport: asyncio.BaseTransport) -> str:
    """The subject of the other side's certificate, as in RFC 2253 (``CN=alice,O=Example``), which is Kafka's name for
    the user; empty without a certificate."""
    certificate = transport.get_extra_info("peercert")
    if not certificate:
        return ""
    names = ["+".join(_name(kind, value) for kind, value in parts) for parts in certificate["subject"]]
    return ",".join(reversed(names))


def _name(kind: str, value: str) -> str:
    return f"{_SHORT_NAMES.get(kind, kind)}=" + _SPECIAL.sub(r"\\\1", value)


def _believe(context: ssl.SSLContext, config: TlsConfig) -> bool:
    location, text = config.ssl_truststore_location, config.ssl_truststore_certificates
    if location is not None and text is not None:
        raise _refused("ssl.truststore.certificates", "ssl.truststore.location is there, too: leave one of them out")
    try:
        if location is not None:
            context.load_verify_locations(cafile=location)
        elif text is not None:
            context.load_verify_locations(cadata=_pem(text))
    except (OSError, ValueError) as error:
        name = "ssl.truststore.location" if location is not None else "ssl.truststore.certificates"
        raise _refused(name, _why(error, location)) from None
    return location is not None or text is not None


def _show(context: ssl.SSLContext, config: TlsConfig) -> bool:
    location, key, chain = config.ssl_keystore_location, config.ssl_keystore_key, config.ssl_keystore_certificate_chain
    # Without a password the library would ask for one on the terminal if the key is encrypted.
    password = "" if config.ssl_key_password is None else config.ssl_key_password.value
    if location is not None and (key is not None or chain is not None):
        raise _refused("ssl.keystore.location", "ssl.keystore.key is there, too: leave one of them out")
    if (key is None) != (chain is None):
        raise _refused("ssl.keystore.key", "it goes with ssl.keystore.certificate.chain: one of them is missing")
    try:
        if location is not None:
            context.load_cert_chain(location, password=password)
        elif key is not None and chain is not None:
            # The library only takes files; nobody else may read this one, and it is deleted at once.
            with tempfile.TemporaryDirectory(prefix="aioproducer-tls-") as directory:
                file = Path(directory, "keystore.pem")
                file.touch(0o600)
                file.write_text(_pem(chain) + _pem(key), encoding="ascii")
                context.load_cert_chain(file, password=password)
    except (OSError, ValueError) as error:
        name = "ssl.keystore.location" if location is not None else "ssl.keystore.key"
        raise _refused(name, _why(error, location)) from None
    return location is not None or key is not None


def _pem(text: Password) -> str:
    """The text with the line breaks that the library expects: in a ``.properties`` file they may have got lost."""
    blocks = []
    for begin, _, body, end in _BLOCK.findall(text.value):
        # A key that is encrypted in the old way has headers, which must stay as they are.
        lines = body.strip() if ":" in body else "\n".join(body.split())
        blocks.append(f"{begin}\n{lines}\n{end}\n")
    if not blocks:
        raise ValueError("there is no -----BEGIN … in it")
    return "".join(blocks)


def _why(error: Exception, location: str | None) -> str:
    where = "" if location is None else f"{location}: "
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return f"{where}no PEM that can be used: {reason}"


def _refused(config: str, why: str) -> ConfigException:
    return ConfigException(f"config {config!r}: {why}", name=config)
