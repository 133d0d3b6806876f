"""The use of quotas by clients: all connections of an entity share its quota."""

from dataclasses import dataclass

from ottla.metadata.quota_entity import QuotaEntity
from ottla.quota.rates import TokenBucket, WindowedRate
from ottla.quota.table import Held, QuotaKey, QuotaTable

# Milliseconds of work in a second that are one percent of it.
_MS_PER_PERCENT = 10
# After this many new entities, idle ones are dropped: clients choose their client ids freely.
_NEW_MAX = 1000


@dataclass(frozen=True, slots=True)
class Windows:
    """Kafka's `quota.window.num` and `quota.window.size.seconds`, the latter in ms."""

    num: int = 11
    ms: int = 1000


class ClientQuotas:
    """The use of quotas by entity. Amounts are bytes, milliseconds, partitions or connections."""

    def __init__(self, windows: Windows, mutation_windows: Windows) -> None:
        self.table = QuotaTable({})
        self.windows = windows
        self._burst_s = mutation_windows.num * mutation_windows.ms / 1000
        self._rates: dict[tuple[QuotaKey, QuotaEntity], WindowedRate] = {}
        self._buckets: dict[QuotaEntity, TokenBucket] = {}
        self._new = 0

    # Hot: once per request of a client, where quotas are set.
    def use(self, key: QuotaKey, user: str, client_id: str, amount: float, now_ms: int) -> int:
        """Count `amount` as used, and return the client's throttle time in milliseconds."""
        rate = self.rate(key, user, client_id, now_ms)
        return 0 if rate is None else rate.record(amount, now_ms)

    def rate(self, key: QuotaKey, user: str, client_id: str, now_ms: int) -> WindowedRate | None:
        """Return the rate at which a client uses `key`, with its limit; None for no limit."""
        held = self.table.held(key, user, client_id)
        return None if held is None else self._rate(key, held, now_ms)

    def connect(self, address: str, now_ms: int) -> int:
        """Return the ms by which to delay a new connection; if they are 0, count the connection."""
        held = self.table.held_address(address)
        if held is None:
            return 0
        rate = self._rate(QuotaKey.CONNECTION, held, now_ms)
        return rate.wait_ms(now_ms, 1) or rate.record(1, now_ms)

    def bucket(self, user: str, client_id: str, now_ms: int) -> TokenBucket | None:
        """The bucket of `controller_mutation_rate` for a client; None if there is no limit."""
        held = self.table.held(QuotaKey.MUTATION, user, client_id)
        if held is None:
            return None
        bucket = self._buckets.get(held.sharing)
        if bucket is None or bucket.limit != held.limit:
            self._count_new(now_ms)
            bucket = TokenBucket(held.limit, burst_s=self._burst_s, now_ms=now_ms)
            self._buckets[held.sharing] = bucket
        return bucket

    def __len__(self) -> int:
        """How many rates and buckets are kept."""
        return len(self._rates) + len(self._buckets)

    def _rate(self, key: QuotaKey, held: Held, now_ms: int) -> WindowedRate:
        limit = held.limit * _MS_PER_PERCENT if key is QuotaKey.REQUEST else held.limit
        rate = self._rates.get((key, held.sharing))
        if rate is None or rate.limit != limit:
            self._count_new(now_ms)
            windows = self.windows
            rate = WindowedRate(
                limit, window_num=windows.num, window_ms=windows.ms, grace_ms=windows.ms
            )
            self._rates[key, held.sharing] = rate
        return rate

    def _count_new(self, now_ms: int) -> None:
        self._new += 1
        if self._new < _NEW_MAX:
            return
        self._new = 0
        self._rates = {k: rate for k, rate in self._rates.items() if not rate.at_rest(now_ms)}
        self._buckets = {k: b for k, b in self._buckets.items() if not b.at_rest(now_ms)}
