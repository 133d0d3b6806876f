"""Logs a connection in by SASL, and again before its session ends (KIP-368)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from ottla.base.chance import random_bytes
from ottla.base.errors import OttlaError
from ottla.client.common.errors import BrokerRefused, ClientError
from ottla.security.sasl.client import SaslIdentity, login_requests
from ottla.wire.notation import Message

# The client prepares a new login after this fraction of a session; after the second fraction
# requests wait for the login.
BEGIN: Final = 0.85
_HOLD: Final = 0.95
# Brokers refuse a login within a second of the previous one.
APART_S: Final = 1.1
# The pause between attempts to get a token.
_AGAIN_S: Final = 1.0

# Sends a login request ahead of the held requests, and returns its answer.
Send = Callable[[Message], Awaitable[Any]]


def ready_identity(identity: SaslIdentity) -> SaslIdentity:
    """Return the identity with a valid token. May block; raises ClientError."""
    try:
        return identity.ready()
    except OttlaError as error:
        raise ClientError(error.code, error.message) from None


async def ready_in_thread(identity: SaslIdentity) -> SaslIdentity:
    """Call `ready_identity` in a thread."""
    if identity.token is None:
        return identity
    # Few clients need it.
    from ottla.network.oauth.daemon import in_daemon  # noqa: PLC0415

    return await in_daemon(lambda: ready_identity(identity))


async def log_in(identity: SaslIdentity, server: str, send: Send) -> int:
    """Log in; return the session's lifetime in ms, 0 if unlimited. Raises BrokerRefused."""
    requests = login_requests(identity, server, random_bytes)
    request = next(requests)
    while True:
        response = await send(request)
        try:
            request = requests.send(response)
        except StopIteration as done:
            lifetime_ms: int = done.value
            return lifetime_ms
        except OttlaError as error:
            raise BrokerRefused(error.code, error.message) from None


class HeldRequest(NamedTuple):
    """A request that waits for the login; `answer` is None if the request has no answer."""

    message: Message
    version: int
    timeout_s: float
    answer: "asyncio.Future[Any] | None"


class LoginSession:
    """The session of one connection: logs in again when a request comes late in the session.

    An idle connection does nothing: brokers accept a login even after the session has expired.
    Requests are held during a login, because the broker would treat them as errors.
    """

    def __init__(
        self,
        identity: SaslIdentity,
        server: str,
        send: Send,
        dispatch: Callable[[HeldRequest], None],
        fail: Callable[[ClientError], None],
    ) -> None:
        """Create the session. `dispatch` sends a held request; `fail` closes the connection."""
        self._identity = identity
        self._server = server
        self._send = send
        self._dispatch = dispatch
        self._fail = fail
        self._loop = asyncio.get_running_loop()
        self._begin_s = 0.0
        self._hold_s = 0.0
        self._allowed_s = 0.0
        self._task: asyncio.Task[None] | None = None
        self._held: list[HeldRequest] | None = None

    def opened(self, lifetime_ms: int, began_s: float) -> None:
        """Note that a login begun at the loop's time `began_s` has opened an expiring session."""
        self._begin_s = began_s + lifetime_ms / 1000 * BEGIN
        self._hold_s = began_s + lifetime_ms / 1000 * _HOLD
        self._allowed_s = began_s + APART_S

    # Hot if sessions expire: once per request.
    def holds(self) -> bool:
        """Whether the next request must be held."""
        now_s = self._loop.time()
        if now_s >= self._begin_s:
            if self._task is None:
                self._task = self._loop.create_task(self._log_in_again())
            if now_s >= self._hold_s and self._held is None:
                self._held = []
        return self._held is not None

    def hold(
        self, message: Message, version: int, timeout_s: float, *, is_answered: bool
    ) -> "asyncio.Future[Any]":
        """Hold a request until the login is done; return a future of its answer."""
        assert self._held is not None
        future: asyncio.Future[Any] = self._loop.create_future()
        self._held.append(HeldRequest(message, version, timeout_s, future if is_answered else None))
        return future

    @property
    def held(self) -> int:
        """Return the number of requests that wait for the login."""
        return 0 if self._held is None else len(self._held)

    def end(self, error: Callable[[], ClientError]) -> None:
        """Fail the held requests, because the connection has ended."""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        held, self._held = self._held or [], None
        for each in held:
            if each.answer is not None and not each.answer.done():
                each.answer.set_exception(error())

    async def _log_in_again(self) -> None:
        try:
            identity = await self._ready()
            await asyncio.sleep(max(0.0, self._allowed_s - self._loop.time()))
            self._held = self._held or []
            began_s = self._loop.time()
            lifetime_ms = await log_in(identity, self._server, self._send)
        except ClientError as error:
            self._fail(error)
            return
        if lifetime_ms:
            self.opened(lifetime_ms, began_s)
        else:
            self._begin_s = self._hold_s = float("inf")
        self._task = None
        held, self._held = self._held, None
        for each in held:
            self._dispatch(each)

    async def _ready(self) -> SaslIdentity:
        """Return the identity with a valid token.

        Requests continue meanwhile, until the session's end.
        """
        while True:
            try:
                return await ready_in_thread(self._identity)
            except ClientError:
                if self._loop.time() >= self._hold_s:
                    raise
            await asyncio.sleep(_AGAIN_S)
