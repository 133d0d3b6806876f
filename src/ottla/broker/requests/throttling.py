"""Slows clients that exceed their quotas.

As in Kafka since 2.0, the answer is sent at once and says how long the client should wait. For that
time the broker does not read from the connection, even if the client does not wait. A fetch that
comes too early is answered without records. No client gets an error. Clients that share a quota are
counted together, over all their connections; traffic between brokers is not counted.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.base.clock import Clock
from ottla.network.connection import Connection
from ottla.quota.client_quotas import ClientQuotas
from ottla.quota.rates import TokenBucket
from ottla.quota.table import QuotaKey
from ottla.wire.api import ApiKey
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.share_records import ShareFetchRequest, ShareFetchResponse

# A fetch waits until the quota allows the bytes of this much time. Smaller portions would cause
# more fetches.
_PORTION_MS = 100


class Throttling:
    """The quotas of clients, as applied by this broker."""

    def __init__(self, quotas: ClientQuotas, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.quotas = quotas
        self.monotonic_ms = clock.monotonic_ms
        self.work_s = loop.time
        self._loop = loop

    def wait_ms(self, connection: Connection, client_id: str) -> int:
        """Return how long a client's request must wait because its quotas are exceeded."""
        now_ms = self.monotonic_ms()
        rate = self.quotas.rate(QuotaKey.REQUEST, connection.principal.name, client_id, now_ms)
        return 0 if rate is None else min(rate.wait_ms(now_ms), self.quotas.windows.ms)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call `callback` after `delay_ms`."""
        self._loop.call_later(delay_ms / 1000, callback)

    def begin(
        self, connection: Connection, api_key: int, client_id: str, size: int
    ) -> "RequestThrottle":
        """Count a client's request of `size` bytes, before it is served."""
        throttle = RequestThrottle(self, connection, client_id)
        if api_key == ApiKey.PRODUCE:
            throttle.use(QuotaKey.PRODUCE, size)
        return throttle


class RequestThrottle:
    """The quota use of one request, and the resulting delay of its client."""

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
        # How long the client must wait, as far as known.
        self.delay_ms = 0
        # The loop's working time up to which the request's time has been counted.
        self._since_s = throttling.work_s()
        # The limits in the fetch request itself; negative until they are read.
        self._max_bytes = self._min_bytes = -1

    def use(self, key: QuotaKey, amount: float) -> None:
        """Count `amount`, and delay the client if its quota is exceeded."""
        throttling = self._throttling
        now_ms = throttling.monotonic_ms()
        self.delay(throttling.quotas.use(key, self._user, self._client_id, amount, now_ms))

    def delay(self, delay_ms: int) -> None:
        """Stop reading from the client for this long; the answer carries the same number."""
        if delay_ms > self.delay_ms:
            self.delay_ms = delay_ms
            self._connection.mute(delay_ms)

    def make_room(self, body: FetchRequest | ShareFetchRequest) -> bool:
        """Lower a fetch's limits to what the quota allows now; return False if that is nothing."""
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
        """Return the client's bucket for controller mutations; None means no limit."""
        throttling = self._throttling
        now_ms = throttling.monotonic_ms()
        return throttling.quotas.bucket(self._user, self._client_id, now_ms)

    def now_ms(self) -> int:
        """Return the monotonic time."""
        return self._throttling.monotonic_ms()

    def resume(self) -> None:
        """Continue to count the loop's time, because the answer of the waiting request is ready."""
        self._since_s = self._throttling.work_s()

    # The response's type depends on the API; all of them have a throttle time.
    def on_answer(self, response: Any) -> None:
        """Count the bytes of the answer, and set its throttle time."""
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
        """Count the loop's time since the last count; return the resulting delay (ms)."""
        throttling = self._throttling
        now_s = throttling.work_s()
        spent_ms = (now_s - self._since_s) * 1000
        self._since_s = now_s
        now_ms = throttling.monotonic_ms()
        delay_ms = throttling.quotas.use(
            QuotaKey.REQUEST, self._user, self._client_id, spent_ms, now_ms
        )
        # As in Kafka, a request waits for one window at most; the next one waits for the rest.
        delay_ms = min(delay_ms, throttling.quotas.windows.ms)
        self.delay(delay_ms)
        return delay_ms
