"""Slows clients that use more than their quotas allow.

As Kafka since 2.0: the answer leaves at once and says how long its client should wait, and for so
long nothing more is read from that connection, whether it waits or not. A fetch that comes too
early is answered without records. No client gets an error. Clients that share a quota count
together, over however many connections; traffic of other brokers is not counted.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.base.clock import Clock
from ottla.network.connection import Connection
from ottla.quota.client_quotas import ClientQuotas
from ottla.quota.keys import QuotaKey
from ottla.quota.token_bucket import TokenBucket
from ottla.wire.api import ApiKey
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

# Records are given out in portions of what this much time is worth: smaller ones cost more fetches.
_PORTION_MS = 100


class Throttling:
    """The quotas of clients as far as this broker is concerned."""

    def __init__(self, quotas: ClientQuotas, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.quotas = quotas
        self.monotonic_ms = clock.monotonic_ms
        self.work_s = loop.time
        self._loop = loop

    def wait_ms(self, connection: Connection, client_id: str) -> int:
        """How long a request of the client is to wait, because of what others like it have used."""
        now_ms = self.monotonic_ms()
        rate = self.quotas.rate(QuotaKey.REQUEST, connection.principal.name, client_id, now_ms)
        return 0 if rate is None else min(rate.wait_ms(now_ms), self.quotas.windows.ms)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call `callback` when the time is over."""
        self._loop.call_later(delay_ms / 1000, callback)

    def begin(
        self, connection: Connection, api_key: int, client_id: str, size: int
    ) -> "RequestThrottle":
        """Count a client's request of `size` bytes in, before it is carried out."""
        throttle = RequestThrottle(self, connection, client_id)
        if api_key == ApiKey.PRODUCE:
            throttle.use(QuotaKey.PRODUCE, size)
        return throttle


class RequestThrottle:
    """What one request has used, and how long its client is to wait for it."""

    __slots__ = (
        "_client_id",
        "_connection",
        "_max_bytes",
        "_min_bytes",
        "_since_s",
        "_throttling",
        "_user",
        "delay_ms",
    )

    def __init__(self, throttling: Throttling, connection: Connection, client_id: str) -> None:
        self._throttling = throttling
        self._connection = connection
        self._client_id = client_id
        self._user = connection.principal.name
        # How long the client is to wait, as far as is known.
        self.delay_ms = 0
        # Since when the loop works on it without having counted that.
        self._since_s = throttling.work_s()
        # What a fetch asked for itself; negative before it was looked at.
        self._max_bytes = self._min_bytes = -1

    def use(self, key: QuotaKey, amount: float) -> None:
        """Count `amount`, and make the client wait if that is too much."""
        throttling = self._throttling
        now_ms = throttling.monotonic_ms()
        self.delay(throttling.quotas.use(key, self._user, self._client_id, amount, now_ms))

    def delay(self, delay_ms: int) -> None:
        """Read nothing more from the client for so long; the answer carries the same number."""
        if delay_ms > self.delay_ms:
            self.delay_ms = delay_ms
            self._connection.mute(delay_ms)

    def make_room(self, body: FetchRequest | ShareFetchRequest) -> bool:
        """Let a fetch ask for no more than it may get now; False where that is nothing."""
        throttling = self._throttling
        now_ms = throttling.monotonic_ms()
        rate = throttling.quotas.rate(QuotaKey.FETCH, self._user, self._client_id, now_ms)
        if rate is None:
            return True
        wait_ms = rate.wait_ms(now_ms, rate.limit * _PORTION_MS / 1000)
        if wait_ms:
            self.delay(wait_ms)
            return False
        if self._max_bytes < 0:
            self._max_bytes, self._min_bytes = body.max_bytes, body.min_bytes
        room = max(1, int(rate.available(now_ms)))
        body.max_bytes = min(self._max_bytes, room)
        body.min_bytes = min(self._min_bytes, room)
        return True

    def bucket(self) -> TokenBucket | None:
        """What gives the client its changes of topics; None for no limit."""
        throttling = self._throttling
        now_ms = throttling.monotonic_ms()
        return throttling.quotas.bucket(self._user, self._client_id, now_ms)

    def now_ms(self) -> int:
        """Monotonic."""
        return self._throttling.monotonic_ms()

    def resume(self) -> None:
        """The loop works on the request again: its answer has come."""
        self._since_s = self._throttling.work_s()

    # The response's type depends on the API; all of them have a throttle time.
    def on_answer(self, response: Any) -> None:
        """Count what is answered, and say in the answer how long to wait."""
        if isinstance(response, (FetchResponse, ShareFetchResponse)):
            size_bytes = sum(
                len(partition.records)
                for topic in response.responses
                for partition in topic.partitions
                if partition.records is not None
            )
            if size_bytes:
                self.use(QuotaKey.FETCH, size_bytes)
        self.count_time()
        if self.delay_ms and "throttle_time_ms" in response.__slots__:
            response.throttle_time_ms = self.delay_ms

    def count_time(self) -> int:
        """Count the loop's time since it was counted last; the milliseconds to wait for it."""
        throttling = self._throttling
        now_s = throttling.work_s()
        spent_ms = (now_s - self._since_s) * 1000
        self._since_s = now_s
        now_ms = throttling.monotonic_ms()
        delay_ms = throttling.quotas.use(
            QuotaKey.REQUEST, self._user, self._client_id, spent_ms, now_ms
        )
        # As in Kafka, one request waits no longer than a window; the next waits for the rest.
        delay_ms = min(delay_ms, throttling.quotas.windows.ms)
        self.delay(delay_ms)
        return delay_ms
