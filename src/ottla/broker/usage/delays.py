"""Remembers, per client id, which of its requests were slow or refused, and why.

Pure: time is an argument. Only requests that waited or failed get here, so usual requests cost
nothing. Everything is bounded: clients, reasons of a client, and slow requests of a client.
"""

from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from typing import Final, NamedTuple

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition

# Requests that took less are not noted.
SLOW_MS: Final = 100
# Reasons are counted for this long; those of the period before are kept, too.
PERIOD_MS: Final = 600_000
CLIENTS_MAX: Final = 256
_REASONS_MAX = 64
_SLOWEST_MAX = 20
_CHARACTERS_MAX = 200

# Reasons. COMMIT_FLUSH and COMMIT_FOLLOWER: the leader's own flush, or that follower, was the last
# to have the batch.
COMMIT_FLUSH: Final = "flush"
COMMIT_FOLLOWER: Final = "follower"
QUOTA: Final = "quota"
TRANSACTION: Final = "transaction check"
SIZE: Final = "size"
LOOP: Final = "held the loop"
OTHER: Final = "other"


NO_PARTITION: Final = TopicPartition("", -1)


class Wait(NamedTuple):
    """What a request waited for."""

    reason: str
    detail: str = ""
    partition: TopicPartition = NO_PARTITION


QUOTA_WAIT: Final = Wait(QUOTA)
TRANSACTION_WAIT: Final = Wait(TRANSACTION)
SIZE_WAIT: Final = Wait(SIZE)
LOOP_WAIT: Final = Wait(LOOP)
OTHER_WAIT: Final = Wait(OTHER)


class Reason(NamedTuple):
    """Why requests waited. `partition` is -1 and `topic` empty if no single partition did it."""

    api: int
    reason: str
    # For example the follower's broker id.
    detail: str
    topic: str
    partition: int


class SlowNote(NamedTuple):
    """One slow request; `at_ms` (since 1970) is when it was answered."""

    took_ms: int
    at_ms: int
    reason: Reason


class FailureKey(NamedTuple):
    """What failed, with which error."""

    api: int
    code: ErrorCode
    topic: str
    partition: int


@dataclass(slots=True)
class Count:
    """How often something happened; times since 1970. `detail` is that of the last time."""

    first_ms: int
    last_ms: int
    count: int = 0
    total_ms: int = 0
    longest_ms: int = 0
    detail: str = ""


@dataclass(slots=True)
class Period:
    """The slow requests since `began_ms`: all counted by reason, and the slowest in full."""

    began_ms: int
    reasons: dict[Reason, Count] = field(default_factory=dict)
    slowest: list[SlowNote] = field(default_factory=list)


@dataclass(slots=True)
class DelayNotes:
    """The notes on one client id: two periods, and the present failures."""

    periods: list[Period]
    failures: dict[FailureKey, Count] = field(default_factory=dict)


class DelayTable:
    """The notes on all client ids, the one noted last at the end."""

    def __init__(self) -> None:
        self.slow_count = 0
        self.failure_count = 0
        self._clients: dict[str, DelayNotes] = {}

    def __len__(self) -> int:
        return len(self._clients)

    def note_slow(self, client_id: str | None, took_ms: int, at_ms: int, reason: Reason) -> None:
        """Note a request that took at least SLOW_MS."""
        self.slow_count += 1
        client = self._client(client_id, at_ms)
        period = client.periods[-1]
        if at_ms - period.began_ms >= PERIOD_MS:
            period = Period(at_ms)
            client.periods = [client.periods[-1], period]
        if reason not in period.reasons and len(period.reasons) >= _REASONS_MAX:
            reason = reason._replace(topic="", partition=-1, detail="")
        found = period.reasons.setdefault(reason, Count(at_ms, at_ms))
        found.count += 1
        found.total_ms += took_ms
        found.longest_ms = max(found.longest_ms, took_ms)
        found.last_ms = at_ms
        slow = SlowNote(took_ms, at_ms, reason)
        if len(period.slowest) < _SLOWEST_MAX:
            heappush(period.slowest, slow)
        else:
            heappushpop(period.slowest, slow)

    def note_failure(
        self, client_id: str | None, at_ms: int, failure: FailureKey, detail: str
    ) -> None:
        """Note a failed part of a request; after a pause of a period it counts as a new failure."""
        self.failure_count += 1
        failures = self._client(client_id, at_ms).failures
        found = failures.pop(failure, None)
        if found is None or at_ms - found.last_ms >= PERIOD_MS:
            while len(failures) >= _REASONS_MAX:
                del failures[next(iter(failures))]
            found = Count(at_ms, at_ms)
        found.count += 1
        found.last_ms = at_ms
        found.detail = detail[:_CHARACTERS_MAX]
        failures[failure] = found

    def of(self, client_id: str) -> DelayNotes | None:
        """Return the notes on a client id."""
        return self._clients.get(client_id)

    def _client(self, client_id: str | None, now_ms: int) -> DelayNotes:
        name = (client_id or "")[:_CHARACTERS_MAX]
        found = self._clients.pop(name, None)
        if found is None:
            while len(self._clients) >= CLIENTS_MAX:
                del self._clients[next(iter(self._clients))]
            found = DelayNotes([Period(now_ms)])
        self._clients[name] = found
        return found
