"""The library's errors in plain words. ``tests/conformance/security/test_gssapi.py`` has real ones."""

from __future__ import annotations

import pytest

from aioproducer.errors import KafkaError, SaslAuthenticationException, TokenUnavailableException
from aioproducer.security.kerberos.errors import explained


class GSSError(Exception):
    """As ``gssapi`` has it; codes of Kerberos are negative, and come as unsigned numbers."""

    def __init__(self, code: int, words: str = "words", maj_code: int = 851968) -> None:
        super().__init__(f"Major ({maj_code}), Minor ({code})")
        self.min_code, self.maj_code, self.words = code % 2**32, maj_code, words

    def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
        return ["Unspecified GSS failure"] if is_major else ["Success", self.words]


class ExpiredCredentialsError(GSSError):
    """One whose minor code says nothing."""


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (
            GSSError(-1765328347, "Clock skew too great"),
            SaslAuthenticationException,
            "skew too great; the clocks",
        ),
        (
            GSSError(-1765328377),
            SaslAuthenticationException,
            "the KDC knows no kafka/b: does sasl.kerberos",
        ),
        (GSSError(-1765328378), SaslAuthenticationException, "the KDC does not know this principal"),
        (GSSError(-1765328353), SaslAuthenticationException, "the keytab is old"),
        (GSSError(-1765328243), SaslAuthenticationException, "there is no ticket: get one with kinit"),
        (GSSError(-1765328230), SaslAuthenticationException, "krb5.conf does not say where the KDC"),
        (GSSError(-1765328352), SaslAuthenticationException, "the ticket has expired"),
        (ExpiredCredentialsError(100001), SaslAuthenticationException, "the ticket has expired"),
        (GSSError(-1765328228), TokenUnavailableException, "no ticket: words"),
        (GSSError(7), SaslAuthenticationException, "no ticket: words"),
    ],
)
def test_each(error: GSSError, kind: type[KafkaError], told: str) -> None:
    found = explained(error, "no ticket", service="kafka/b")
    assert type(found) is kind
    assert str(found).startswith("no ticket: ")
    assert told in str(found)


def test_a_keytab_without_the_key() -> None:
    found = explained(GSSError(-1765328189), "no ticket", keytab="/a.keytab")
    assert "/a.keytab is no keytab, or has no key of this principal" in str(found)


def test_an_error_without_words() -> None:
    class Silent(GSSError):
        def get_all_statuses(self, code: int, is_major: bool) -> list[str]:
            raise ValueError(code)

    assert "Minor (7)" in str(explained(Silent(7), "no ticket"))
