"""Makes SSL contexts for asyncio from Kafka's configs.

``ssl.keystore.*`` is the own key and certificate, ``ssl.truststore.*`` the authorities to trust.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from aioproducer.errors import ConfigException
from aioproducer.security.tls.settings import TlsSettings, refused
from aioproducer.security.tls.stores import key_store, trusted_certificates
from aioproducer.security.tls.suites import restrict


def client_context(settings: TlsSettings, *, checks_hostname: bool) -> ssl.SSLContext:
    """Trusts the authorities in the trust store, or the system's without one. Raises :class:`ConfigException`."""
    trusted = trusted_certificates(settings)
    if trusted is None:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _trust(context, settings, trusted)
    context.check_hostname = checks_hostname
    _present(context, settings)
    restrict(context, settings)
    return context


def server_context(
    settings: TlsSettings, *, client_auth: str, context_class: type[ssl.SSLContext] = ssl.SSLContext
) -> ssl.SSLContext:
    """``client_auth`` is ``ssl.client.auth``: clients must present a certificate (required), may (requested), or are
    not asked (none). Raises :class:`ConfigException`."""
    context = context_class(ssl.PROTOCOL_TLS_SERVER)
    if not _present(context, settings):
        raise refused(
            "ssl.keystore.location",
            "it is missing: a listener with TLS needs a certificate and its key, in a file or in"
            " ssl.keystore.certificate.chain and ssl.keystore.key",
        )
    trusted = trusted_certificates(settings)
    if trusted is not None:
        _trust(context, settings, trusted)
    elif client_auth != "none":
        raise refused(
            "ssl.truststore.location", f"it is missing: ssl.client.auth={client_auth} needs to know whom to believe"
        )
    context.verify_mode = {
        "none": ssl.CERT_NONE,
        "requested": ssl.CERT_OPTIONAL,
        "required": ssl.CERT_REQUIRED,
    }[client_auth]
    restrict(context, settings)
    return context


def _trust(context: ssl.SSLContext, settings: TlsSettings, trusted: str | bytes) -> None:
    # As in Java: whatever is in a trust store is trusted, whether it has signed itself or not.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=trusted)
    except (OSError, ValueError) as error:
        raise _unusable("truststore", settings.ssl_truststore_location, "certificates", error) from None


def _present(context: ssl.SSLContext, settings: TlsSettings) -> bool:
    store = key_store(settings)
    if store is None:
        return False
    # Without a password the library would ask for one on the terminal if the key is encrypted.
    password = "" if store.password is None else store.password.value
    try:
        # The library only takes files; nobody else may read this one, and it is deleted at once.
        with tempfile.TemporaryDirectory(prefix="aioproducer-tls-") as directory:
            file = Path(directory, "keystore.pem")
            file.touch(0o600)
            file.write_text(store.pem.value, encoding="ascii")
            context.load_cert_chain(file, password=password)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None)
        if "ENCRYPTED" in store.pem.value and reason != "KEY_VALUES_MISMATCH":
            why = "it is not that of the key" if password else "it is missing: the key is encrypted"
            raise refused("ssl.key.password", why) from None
        raise _unusable("keystore", settings.ssl_keystore_location, "key", error) from None
    return True


def _unusable(store: str, location: str | None, text: str, error: Exception) -> ConfigException:
    where, part = ("", text) if location is None else (f"{location}: ", "location")
    what = "certificate and key" if store == "keystore" else "certificate"
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return refused(f"ssl.{store}.{part}", f"{where}no {what} that can be used: {reason}")
