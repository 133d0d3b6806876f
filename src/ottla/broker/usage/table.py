"""Counts the bytes that each client produces to and fetches from each topic.

Pure: time is an argument. An entry is a client id, principal and library in one direction of one
topic. A request only adds to the counter of an entry that its connection remembers; `sweep` notes
later which counters have moved. So the hot path reads no clock, and a last use is known as exactly
as sweeps are frequent.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.broker.usage.delays import NO_PARTITION, SLOW_MS, DelayTable, FailureKey, Reason, Wait
from ottla.network.connection import Connection

ENTRIES_MAX: Final = 10_000
# The most client ids of one principal, topic and direction; more are counted as OTHERS. So clients
# with a random id for each run do not fill the table.
CLIENT_IDS_MAX: Final = 100
OTHERS: Final = "(others)"
# Client ids and names of libraries are cut to this many characters.
_CHARACTERS_MAX = 200
_VERSION = 1
# How often a connection's fetches without records are noted.
_MARK_MS = 10_000

PRODUCE: Final = "produce"
FETCH: Final = "fetch"


class UseKey(NamedTuple):
    """What an entry counts. `direction` is PRODUCE or FETCH; `library` is empty if unknown."""

    topic: str
    direction: str
    client_id: str
    principal: str
    library: str


class UsageEntry:
    """One entry. Times are ms since 1970; `last_ms` is the sweep that noticed the last use."""

    __slots__ = ("__weakref__", "bytes", "first_ms", "key", "last_ms", "seen", "swept_bytes")

    def __init__(self, key: UseKey, first_ms: int, last_ms: int, size: int = 0) -> None:
        self.key = key
        self.first_ms = first_ms
        self.last_ms = last_ms
        self.bytes = self.swept_bytes = size
        # Whether the client used the topic since the last sweep without moving bytes.
        self.seen = False


class UsageTable:
    """The entries, ordered by last use. The least recently used one makes room for a new one.

    `since_ms` is the time since which every use is counted: when the table was begun, or later the
    last use of an entry that was removed to make room. `gap_ms` is the last start after a crash,
    before which up to a minute of uses is unknown; -1 for none.
    """

    def __init__(self, now_ms: int) -> None:
        self.since_ms = now_ms
        self.gap_ms = -1
        # Since when each topic is watched.
        self.topics: dict[str, int] = {}
        # Changes whenever something is worth writing to the file.
        self.changes = 0
        self._entries: dict[UseKey, UsageEntry] = {}
        self._ids: dict[tuple[str, str, str], int] = {}
        # Removed entries that connections still count with.
        self._removed: WeakSet[UsageEntry] = WeakSet()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[UsageEntry]:
        return iter(self._entries.values())

    def entry(self, key: UseKey, now_ms: int) -> UsageEntry:
        """Return the entry of `key`, a new one if there is none."""
        found = self._entries.get(key)
        if found is not None:
            return found
        scope = (key.topic, key.direction, key.principal)
        if self._ids.get(scope, 0) >= CLIENT_IDS_MAX and key.client_id != OTHERS:
            return self.entry(key._replace(client_id=OTHERS, library=""), now_ms)
        found = UsageEntry(key, now_ms, now_ms)
        self._put(found)
        return found

    def sweep(self, now_ms: int) -> None:
        """Note the use of all entries whose counter has moved since the last sweep."""
        moved = [one for one in (*self._entries.values(), *self._removed) if _has_moved(one)]
        for one in moved:
            one.seen, one.swept_bytes, one.last_ms = False, one.bytes, now_ms
            if self._entries.pop(one.key, one) is one:
                self._entries[one.key] = one
            self._removed.discard(one)
        self.changes += len(moved)
        if len(self._entries) > ENTRIES_MAX:
            self._make_room(0)

    def watch(self, topics: Collection[str], now_ms: int) -> None:
        """Note that these are all topics there are; remove what belongs to others."""
        if topics == self.topics.keys():
            return
        self.topics = {topic: self.topics.get(topic, now_ms) for topic in topics}
        self._entries = {k: one for k, one in self._entries.items() if k.topic in self.topics}
        self._count_ids()
        self.changes += 1

    def known_since(self, topic: str) -> int:
        """Return the time since which every use of a topic is counted; -1 if it is just new."""
        since_ms = self.topics.get(topic, -1)
        return max(since_ms, self.since_ms) if since_ms >= 0 else -1

    def lines(self, *, is_last: bool) -> Iterator[str]:
        """Yield the table as lines of JSON; `is_last` says that nothing is counted any more."""
        yield json.dumps(
            {
                "version": _VERSION,
                "since_ms": self.since_ms,
                "gap_ms": self.gap_ms,
                "is_last": is_last,
                "topics": self.topics,
            }
        )
        for one in list(self._entries.values()):
            yield json.dumps([*one.key, one.first_ms, one.last_ms, one.bytes])

    def read(self, lines: Iterable[str], now_ms: int) -> None:
        """Take the entries of `lines`. Raises ValueError if they are no table."""
        entries = iter(lines)
        try:
            head: dict[str, Any] = json.loads(next(entries))
            if head["version"] != _VERSION:
                raise ValueError(f"version {head['version']} of the table is not known")
            found = [json.loads(line) for line in entries]
            uses = [UsageEntry(UseKey(*one[:5]), *one[5:]) for one in found]
            self.topics = dict(head["topics"])
            self.since_ms, self.gap_ms = head["since_ms"], head["gap_ms"]
            if not head["is_last"]:
                self.gap_ms = now_ms
        except (KeyError, TypeError, StopIteration) as error:
            raise ValueError(f"no table of uses: {error!r}") from error
        for one in uses:
            self._put(one)

    def _put(self, new: UsageEntry) -> None:
        self._make_room(1)
        key = new.key
        self._entries[key] = new
        scope = (key.topic, key.direction, key.principal)
        self._ids[scope] = self._ids.get(scope, 0) + 1
        self.changes += 1

    def _make_room(self, count: int) -> None:
        surplus = len(self._entries) + count - ENTRIES_MAX
        if surplus <= 0:
            return
        # Many at a time, so that a hostile client causes few counts of all ids.
        surplus = max(surplus, ENTRIES_MAX // 100)
        for key in list(self._entries)[:surplus]:
            oldest = self._entries.pop(key)
            # Its topic may look unused from now on, so less is known than before.
            self.since_ms = max(self.since_ms, oldest.last_ms)
            self._removed.add(oldest)
        self._count_ids()

    def _count_ids(self) -> None:
        self._ids = {}
        for key in self._entries:
            scope = (key.topic, key.direction, key.principal)
            self._ids[scope] = self._ids.get(scope, 0) + 1


def _has_moved(one: UsageEntry) -> bool:
    return one.seen or one.bytes != one.swept_bytes


class ConnectionUse:
    """Finds the entries of one connection, and remembers those of its latest client id."""

    __slots__ = (
        "_client_id",
        "_clock",
        "_connection",
        "_delays",
        "_entries",
        "_marked_ms",
        "_table",
    )

    def __init__(
        self, table: UsageTable, delays: DelayTable, connection: Connection, clock: Clock
    ) -> None:
        self._table = table
        self._delays = delays
        self._connection = connection
        self._clock = clock
        self._client_id: str | None = ""
        self._entries: dict[tuple[str, str], UsageEntry] = {}
        self._marked_ms = 0

    def of(self, topic: str, direction: str, client_id: str | None) -> UsageEntry:
        """Return the entry of this connection for a topic."""
        if client_id != self._client_id:
            self._client_id, self._entries = client_id, {}
        found = self._entries.get((topic, direction))
        if found is None:
            connection = self._connection
            library = f"{connection.software} {connection.software_version}".strip()
            key = UseKey(
                topic,
                direction,
                (client_id or "")[:_CHARACTERS_MAX],
                str(connection.principal),
                library[:_CHARACTERS_MAX],
            )
            found = self._entries[topic, direction] = self._table.entry(key, self._clock.now_ms())
            found.seen = True
        return found

    def count_fetch(
        self, client_id: str | None, answers: Iterable[tuple[str, int]], size: int
    ) -> None:
        """Count the sizes of fetched records, given by topic; `size` is their sum."""
        now_ms = self._clock.monotonic_ms()
        marks = now_ms - self._marked_ms >= _MARK_MS
        if not size and not marks:
            return
        self._marked_ms = now_ms
        for topic, records_bytes in answers:
            if records_bytes or marks:
                use = self.of(topic, FETCH, client_id)
                use.bytes += records_bytes
                use.seen = True

    def took_ms(self, received_ms: int) -> int:
        """Return the time since a request was received, at a monotonic time."""
        return self._clock.monotonic_ms() - received_ms

    def note_slow(self, client_id: str | None, api: int, took_ms: int, wait: Wait) -> None:
        """Note a request that took at least SLOW_MS; ignore one that did not."""
        if took_ms >= SLOW_MS:
            reason = Reason(api, wait.reason, wait.detail, *wait.partition)
            self._delays.note_slow(client_id, took_ms, self._clock.now_ms(), reason)

    def note_failure(
        self,
        client_id: str | None,
        api: int,
        code: ErrorCode,
        partition: TopicPartition = NO_PARTITION,
        detail: str | None = None,
    ) -> None:
        """Note a failed request, or a failed part of one."""
        failure = FailureKey(api, code, *partition)
        self._delays.note_failure(client_id, self._clock.now_ms(), failure, detail or "")
