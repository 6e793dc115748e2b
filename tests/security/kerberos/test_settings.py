from __future__ import annotations

from typing import Any

import pytest

from aioproducer.configs.producer_config import producer_config
from aioproducer.errors import ConfigException
from aioproducer.security.jaas import KERBEROS_LOGIN_MODULE, PLAIN_LOGIN_MODULE
from aioproducer.security.kerberos import library, settings
from aioproducer.security.kerberos.settings import KerberosSettings
from aioproducer.security.refresh_window import RefreshWindow

GSSAPI = {
    "bootstrap.servers": "b:1",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "GSSAPI",
}
SERVICE = {"sasl.kerberos.service.name": "kafka"}
KEYTAB = 'useKeyTab=true keyTab="/a.keytab" principal="a@EXAMPLE.COM"'


@pytest.fixture(autouse=True)
def present(monkeypatch: pytest.MonkeyPatch) -> None:
    """These rules need no library."""
    monkeypatch.setattr(settings, "gssapi", lambda: None)


def jaas(options: str, module: str = KERBEROS_LOGIN_MODULE) -> dict[str, str]:
    return {"sasl.jaas.config": f"{module} required {options};"}


def made(given: dict[str, Any]) -> KerberosSettings:
    found = producer_config({**GSSAPI, **given}).credentials
    assert isinstance(found, KerberosSettings)
    return found


def test_the_librarys_own_defaults() -> None:
    found = made(SERVICE)
    assert (found.service, found.principal, found.keytab, found.cache) == ("kafka", None, None, None)
    assert found.window == RefreshWindow(0.8, 0.05, 60, 0)


def test_a_keytab_or_a_cache() -> None:
    found = made({**SERVICE, **jaas(KEYTAB + " storeKey=true doNotPrompt=true debug=false")})
    assert (found.keytab, found.principal) == ("/a.keytab", "a@EXAMPLE.COM")
    found = made(jaas('useTicketCache=true ticketCache="/cache" renewTGT=true serviceName="other"'))
    assert (found.service, found.cache, found.keytab) == ("other", "/cache", None)


def test_configs_of_the_renewal() -> None:
    given = {
        "sasl.kerberos.ticket.renew.window.factor": "0.5",
        "sasl.kerberos.ticket.renew.jitter": 0,
        "sasl.kerberos.min.time.before.relogin": 1000,
        "sasl.login.retry.backoff.ms": 7,
    }
    found = made({**SERVICE, **given})
    assert found.window == RefreshWindow(0.5, 0.0, 1, 0)
    assert found.retry_backoff_ms == 7


@pytest.mark.parametrize(
    ("given", "name", "message"),
    [
        ({}, "sasl.kerberos.service.name", "it is missing"),
        ({"sasl.kerberos.service.name": "kafka/b@R"}, "sasl.kerberos.service.name", "only the part before the /"),
        (
            {**SERVICE, **jaas(KEYTAB + ' serviceName="other"')},
            "sasl.kerberos.service.name",
            "it is 'kafka', and serviceName in sasl.jaas.config is 'other'",
        ),
        ({**SERVICE, **jaas("", PLAIN_LOGIN_MODULE)}, "sasl.jaas.config", "its login module is"),
        ({**SERVICE, **jaas("useKeytab=true")}, "sasl.jaas.config", "it has an unknown option useKeytab"),
        ({**SERVICE, **jaas('principal="a"')}, "sasl.jaas.config", "nobody to ask for a password"),
        ({**SERVICE, **jaas('useKeyTab=true principal="a"')}, "sasl.jaas.config", "useKeyTab=true needs keyTab"),
        ({**SERVICE, **jaas('useKeyTab=true keyTab="/a"')}, "sasl.jaas.config", "useKeyTab=true needs principal"),
        ({**SERVICE, **jaas(KEYTAB + " useTicketCache=true")}, "sasl.jaas.config", "leave one of them out"),
        (
            {**SERVICE, **jaas('useTicketCache=true keyTab="/a"')},
            "sasl.jaas.config",
            "its keyTab has no effect without useKeyTab=true",
        ),
        ({**SERVICE, "sasl.plain.password": "planted"}, "sasl.plain.password", "sasl.mechanism=GSSAPI has no password"),
        ({**SERVICE, "sasl.oauthbearer.scope": "x"}, "sasl.oauthbearer.scope", "is for tokens"),
        (
            {**SERVICE, "sasl.mechanism": "PLAIN", "sasl.plain.username": "a", "sasl.plain.password": "planted"},
            "sasl.kerberos.service.name",
            "is for Kerberos, and sasl.mechanism is PLAIN",
        ),
        ({"sasl.kerberos.keytab": "/a"}, "sasl.kerberos.keytab", "it is 'sasl.jaas.config' here"),
    ],
)
def test_refused(given: dict[str, Any], name: str, message: str) -> None:
    with pytest.raises(ConfigException) as caught:
        made(given)
    assert caught.value.name == name
    assert message in str(caught.value)
    assert "planted" not in str(caught.value)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "gssapi", library.gssapi)
    monkeypatch.setitem(__import__("sys").modules, "gssapi", None)
    with pytest.raises(ConfigException, match=r"pip install 'aioproducer\[gssapi\]'"):
        made(SERVICE)
