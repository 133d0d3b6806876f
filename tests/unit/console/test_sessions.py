"""Sessions end, and failed log-ins are limited."""

import asyncio

from ottla.client import Admin
from ottla.console.sessions import IDLE_S, Attempts, Sessions


class Now:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def test_a_session_ends_when_nobody_uses_it() -> None:
    """Pages that refresh by themselves do not count as use."""

    async def run() -> None:
        now = Now()
        sessions = Sessions(None, now)
        used, idle = await sessions.new(), await sessions.new()
        now.s = IDLE_S - 1
        assert sessions.find(used.key, is_used=True) is used
        assert sessions.find(idle.key, is_used=False) is idle
        now.s = IDLE_S + 1
        await sessions.end_idle()
        assert sessions.find(used.key, is_used=False) is used
        assert sessions.find(idle.key, is_used=True) is None

    asyncio.run(run())


def test_a_log_in_gives_a_new_key_and_token() -> None:
    """Whoever knew the key before the log-in cannot use it after."""

    async def run() -> None:
        sessions = Sessions(None, Now())
        before = await sessions.new()
        admin = Admin("localhost:1")
        after = await sessions.log_in(before, "anna", admin, None)
        assert after.key != before.key
        assert after.token != before.token
        assert sessions.find(before.key, is_used=True) is None
        await sessions.end(after)
        assert not after.is_ready

    asyncio.run(run())


def test_many_visitors_do_not_end_the_sessions_of_users() -> None:
    async def run() -> None:
        sessions = Sessions(None, Now())
        user = await sessions.log_in(await sessions.new(), "anna", Admin("localhost:1"), None)
        first = await sessions.new()
        for _ in range(1_000):
            await sessions.new()
        assert sessions.find(user.key, is_used=False) is user
        assert sessions.find(first.key, is_used=False) is None
        await sessions.close()

    asyncio.run(run())


def test_a_token_is_of_its_session() -> None:
    async def run() -> None:
        sessions = Sessions(None, Now())
        one, other = await sessions.new(), await sessions.new()
        assert one.has_token(one.token)
        assert not one.has_token(other.token)
        assert not one.has_token("")
        assert not one.has_token("ü")

    asyncio.run(run())


def test_failed_attempts_are_limited_by_user_and_by_address() -> None:
    now = Now()
    attempts = Attempts(now)
    for _ in range(Attempts.USER_MAX):
        assert attempts.wait_s("here", "anna") == 0
        attempts.failed("here", "anna")
    assert attempts.wait_s("here", "anna") > 0
    assert attempts.wait_s("here", "bert") == 0
    assert attempts.wait_s("there", "anna") == 0
    now.s = Attempts.WITHIN_S + 1
    assert attempts.wait_s("here", "anna") == 0
    for number in range(Attempts.ADDRESS_MAX):
        attempts.failed("here", f"user-{number}")
    assert attempts.wait_s("here", "someone-new") > 0


def test_a_log_in_that_succeeds_is_no_failed_attempt() -> None:
    attempts = Attempts(Now())
    for _ in range(100):
        attempts.failed("here", "anna")
        attempts.succeeded("here", "anna")
    assert attempts.wait_s("here", "anna") == 0
