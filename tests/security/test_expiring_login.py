"""The token of a client, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest

from aioproducer import OAuthBearerToken
from aioproducer.errors import KafkaError, SaslAuthenticationException, TokenUnavailableException
from aioproducer.security.expiring_login import ExpiringLogin
from aioproducer.security.refresh_window import RefreshWindow
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.timing.backoff import ExponentialBackoff
from tests.support.virtual_time import World, virtual

EPOCH = 1_700_000_000.0
LIFETIME = 100.0
LIMIT = 20.0


class Issuer:
    """Gets tokens as a test wants; ``at`` are the times of the attempts."""

    def __init__(self) -> None:
        self.lifetime: float | None = LIFETIME
        self.takes = 0.0
        self.error: KafkaError | None = None
        self.at: list[float] = []
        self._began = asyncio.get_running_loop().time()

    def now(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    def wall(self) -> float:
        return EPOCH + self.now()

    async def retrieve(self) -> OAuthBearerToken:
        self.at.append(self.now())
        number = len(self.at)
        await asyncio.sleep(self.takes)
        if self.error is not None:
            raise self.error
        return OAuthBearerToken(f"token{number}", None if self.lifetime is None else self.wall() + self.lifetime)


@asynccontextmanager
async def logging_in(
    window: RefreshWindow | None = None,
) -> AsyncIterator[tuple[ExpiringLogin[OAuthBearerToken], Issuer]]:
    crashes: list[BaseException] = []
    supervisor, issuer = Supervisor(crashes.append), Issuer()
    login = ExpiringLogin(
        issuer.retrieve,
        window or RefreshWindow(0.8, 0.05, 0, 0),
        ExponentialBackoff(100, 10_000, Random(0)),
        LIMIT,
        random=Random(0),
        launch=supervisor.launch,
        wall=issuer.wall,
    )
    try:
        yield login, issuer
    finally:
        await supervisor.stop()
    assert not crashes


async def outcome(login: ExpiringLogin[OAuthBearerToken]) -> str:
    try:
        return (await login.token()).value
    except KafkaError as error:
        return str(error)


@virtual
async def test_nothing_is_done_before_a_token_is_wanted(world: World) -> None:
    async with logging_in() as (_, issuer):
        await asyncio.sleep(1000)
        assert issuer.at == []


@virtual
async def test_many_callers_share_one_attempt(world: World) -> None:
    async with logging_in() as (login, issuer):
        issuer.takes = 3
        first = [asyncio.ensure_future(outcome(login)) for _ in range(5)]
        await asyncio.sleep(1)
        first.pop().cancel()
        later = [asyncio.ensure_future(outcome(login)) for _ in range(5)]
        assert set(await asyncio.gather(*first, *later)) == {"token1"}
        assert len(issuer.at) == 1


@virtual
async def test_a_token_is_renewed_while_the_present_one_is_used(world: World) -> None:
    async with logging_in() as (login, issuer):
        await login.token()
        issuer.takes = 5
        used = set()
        for _ in range(10_000):
            began = issuer.now()
            used.add((await login.token()).value)
            assert issuer.now() == pytest.approx(began, abs=0.001)  # nobody waits for the renewal
            await asyncio.sleep(0.1)
        assert len(issuer.at) == len(used) == pytest.approx(1000 / 85, abs=2)
        assert all(80 <= later - earlier <= 95 for earlier, later in itertools.pairwise(issuer.at))


@virtual
async def test_a_provider_that_is_down_while_the_token_is_valid(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with logging_in() as (login, issuer):
        await login.token()
        issuer.error = TokenUnavailableException("nobody home")
        while issuer.now() < LIFETIME - 0.1:
            assert await outcome(login) == "token1"
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        assert await outcome(login) == "nobody home"
        attempts = issuer.at[1:]
        waits = [later - earlier for earlier, later in itertools.pairwise(attempts)]
        assert waits[0] == pytest.approx(0.1, rel=0.3)
        assert max(waits) <= 10 + 1e-3
        await asyncio.sleep(100)
        assert len(issuer.at) < 40
        issuer.error = None
        assert (await outcome(login)).startswith("token")
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith("the token could not be renewed: nobody home; the present one is valid for another ")
    assert any("the last one has expired" in line for line in lines)
    assert lines[-1] == "the token is renewed again"
    assert len(lines) < 20
    assert "token1" not in caplog.text


@virtual
async def test_a_first_token_that_cannot_be_had(world: World) -> None:
    """Each caller gets the error, and attempts are not made more often than the back-off allows."""
    async with logging_in() as (login, issuer):
        issuer.error = SaslAuthenticationException("who are you")
        for _ in range(10):
            with pytest.raises(SaslAuthenticationException, match="who are you"):
                await login.token()
        waits = [later - earlier for earlier, later in itertools.pairwise(issuer.at)]
        assert waits[0] == pytest.approx(0.1, rel=0.3)
        assert waits[-1] == pytest.approx(10, rel=0.3)
        await asyncio.sleep(1000)
        assert len(issuer.at) == 10  # nobody wanted one


@virtual
async def test_an_attempt_that_takes_too_long(world: World) -> None:
    async with logging_in() as (login, issuer):
        issuer.takes = 3600
        assert await outcome(login) == (
            "no token within 20000 ms (sasl.login.connect.timeout.ms and sasl.login.read.timeout.ms together)"
        )
        assert issuer.now() == pytest.approx(LIMIT, abs=0.1)


@virtual
async def test_a_token_that_has_expired_already(world: World) -> None:
    async with logging_in() as (login, issuer):
        issuer.lifetime = -5
        assert "is this machine's clock right?" in await outcome(login)


@virtual
async def test_a_token_of_unknown_lifetime_is_used_once(world: World) -> None:
    async with logging_in() as (login, issuer):
        issuer.lifetime = None
        assert [await outcome(login) for _ in range(3)] == ["token1", "token2", "token3"]
        await asyncio.sleep(1000)
        assert len(issuer.at) == 3


@virtual
async def test_a_refused_token_is_not_used_again(world: World) -> None:
    async with logging_in() as (login, issuer):
        for _ in range(10):
            token = await login.token()
            login.refused(token)
            login.refused(token)  # by another broker as well
        waits = [later - earlier for earlier, later in itertools.pairwise(issuer.at)]
        assert waits[0] == pytest.approx(0.1, rel=0.3)
        assert waits[-1] == pytest.approx(10, rel=0.3)
        token = await login.token()
        login.accepted()
        login.refused(OAuthBearerToken("earlier"))
        assert await login.token() is token
        login.refused(token)
        before = issuer.now()
        await login.token()
        assert issuer.now() - before == pytest.approx(0.1, rel=0.3)


@virtual
async def test_a_clock_that_is_set_has_no_effect_on_the_token_in_use(world: World) -> None:
    async with logging_in() as (login, _):
        await login.token()
        real: Callable[[], float] = login.wall
        login.wall = lambda: real() - 1_000_000
        await asyncio.sleep(50)
        assert (await login.token()).value == "token1"
        login.wall = real
        await asyncio.sleep(40)
        assert (await login.token()).value == "token2"
