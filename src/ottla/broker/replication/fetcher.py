"""Fetches from one broker all partitions that it leads and this broker follows.

A fetcher has a connection of its own and works with callbacks, without a task per fetch. A request
names the partitions whose last answer was appended and, with group commit, flushed, so their fetch
offsets show the leader which records are durable here. A fetch without news waits at the leader.
The next fetch reports what was flushed meanwhile, and makes the leader answer the waiting one. At
most two fetches are in flight, and at most one of them asks for a given partition (R-7).
"""

import asyncio
import logging
from uuid import UUID

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicId
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.follower_session import FetchLimits, FollowerSession
from ottla.broker.replication.follower_shell import FollowerShell
from ottla.broker.replication.ledger_news import lost_offsets_of
from ottla.broker.replication.source_link import SourceLink, SourcePeers, Spawn
from ottla.network.peer import PeerConnection
from ottla.replica.follower import NO_FETCH
from ottla.wire.messages.fetch import FetchPartition, FetchResponse

_log = logging.getLogger(__name__)

# The longest wait for flushes of records just appended before the next fetch is sent, so that one
# fetch can report all new log end offsets.
_FLUSH_PATIENCE_S = 0.01
# The longest pause before checking again whether the throttle allows more.
_HELD_MS_MAX = 500

Key = tuple[UUID, int]


class ReplicaFetcher:
    """Fetches from the broker `source`, which leads the partitions, over one connection."""

    def __init__(
        self,
        source: BrokerId,
        peers: SourcePeers,
        following: FollowerShell,
        limits: FetchLimits,
        clock: Clock,
        spawn: Spawn,
    ) -> None:
        self.source = source
        self.partitions: dict[Key, Partition] = {}
        self._following = following
        self._limits = limits
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._link = SourceLink(source, peers, spawn, self._soon, retry_ms_max=limits.backoff_ms)
        self._session = FollowerSession(limits)
        self._closed = False
        # Partitions to fetch, partitions whose records are not flushed yet, and partitions to
        # remove from the fetch session.
        self._to_ask: dict[Partition, None] = {}
        self._flushing: dict[Partition, None] = {}
        self._forgotten: dict[Key, None] = {}
        self._turn_scheduled = False
        self._patience: asyncio.TimerHandle | None = None

    def add(self, partition: Partition) -> None:
        """Start fetching a partition whose `follower` was just created."""
        key = (partition.topic_id, partition.index)
        self.partitions[key] = partition
        self._forgotten.pop(key, None)
        self._ask(partition)
        self._link.on_news()
        self._soon()

    def remove(self, partition: Partition) -> None:
        """Stop fetching a partition."""
        key = (partition.topic_id, partition.index)
        if self.partitions.get(key) is not partition:
            return
        del self.partitions[key]
        self._to_ask.pop(partition, None)
        self._flushing.pop(partition, None)
        partition.on_next_flush = None
        self._forgotten[key] = None
        self._soon()

    def close(self) -> None:
        """Stop fetching, and close the connection."""
        self._closed = True
        for partition in list(self.partitions.values()):
            self.remove(partition)
        self._end_session()
        self._link.close()
        if self._patience is not None:
            self._patience.cancel()

    # -- asking

    def _ask(self, partition: Partition) -> None:
        """Fetch a partition's next records as soon as its existing records are flushed."""
        log = partition.log
        is_on_disk = not partition.group_commit or (
            log.flush_state.durable_offset >= log.log_end_offset
        )
        if not is_on_disk and partition.failure is None:
            self._flushing[partition] = None
            partition.on_next_flush = self._on_flushed
            partition.flush_soon()
        else:
            self._to_ask[partition] = None

    def _on_flushed(self, partition: Partition) -> None:
        if partition.own_end < partition.log_end_offset:
            return
        partition.on_next_flush = None
        if self._flushing.pop(partition, self) is None:
            self._to_ask[partition] = None
            self._soon()

    def _soon(self) -> None:
        """Schedule sending for the end of this turn of the loop."""
        if not self._turn_scheduled and not self._closed:
            self._turn_scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_scheduled = False
        if self._closed:
            return
        if not self.partitions:
            self._end_session()
            self._link.end()
            return
        connection, in_flight = self._link.connection, self._session.in_flight
        if connection is None:
            self._link.want()
            return
        if not self._session.may_send:
            return
        if self._flushing and self._patience is not None and not in_flight:
            return  # `_on_flushed` or the timer that ends the wait schedules another turn.
        questions = self._questions()
        if in_flight and not questions and not self._forgotten:
            return
        self._send(connection, questions)

    def _questions(self) -> dict[UUID, list[FetchPartition]]:
        """Return what to fetch now, by topic id."""
        now_ms = self._clock.monotonic_ms()
        questions: dict[UUID, list[FetchPartition]] = {}
        later: dict[Partition, None] = {}
        wake_ms = -1
        topic_id: TopicId | None = None
        of_topic: list[FetchPartition] = []
        for partition in self._to_ask:
            follower = partition.follower
            if follower is None or partition.failure is not None:
                continue
            room = self._following.room(partition)
            if room == 0:
                later[partition] = None
                held_ms = min(self._following.held_ms, _HELD_MS_MAX)
                wake_ms = _earlier(now_ms + held_ms, wake_ms)
                continue
            if not follower.begin_fetch(partition.own_end, now_ms=now_ms):
                later[partition] = None
                if follower.retry_at_ms > now_ms:
                    wake_ms = _earlier(follower.retry_at_ms, wake_ms)
                continue
            asked = FetchPartition(
                partition=partition.index,
                current_leader_epoch=follower.leader_epoch,
                fetch_offset=follower.fetch_offset,
                last_fetched_epoch=follower.last_fetched_epoch,
                log_start_offset=partition.log.log_start_offset,
                partition_max_bytes=min(self._limits.partition_max_bytes, room),
                nonce=follower.nonce,
            )
            if partition.log.ledger.history.lost:
                asked.lost = lost_offsets_of(partition)
            if follower.is_full:
                asked.is_full = True
            if partition.topic_id is not topic_id:  # Hashing an id is slow.
                topic_id = partition.topic_id
                of_topic = questions.setdefault(topic_id, [])
            of_topic.append(asked)
        self._to_ask = later
        if wake_ms >= 0:
            self._link.wake_after(wake_ms - now_ms)
        return questions

    def _send(
        self, connection: PeerConnection, questions: dict[UUID, list[FetchPartition]]
    ) -> None:
        session = self._session
        request = session.request(self._following.registration, questions, self._forgotten)
        self._forgotten.clear()
        run = session.run
        try:
            connection.send(
                request,
                lambda answer: self._on_answer(run, answer),
                timeout_ms=self._limits.timeout_ms,
            )
        except OttlaError as error:
            self._on_answer(run, error)

    # -- answers

    def _on_answer(self, run: int, answer: FetchResponse | OttlaError) -> None:
        if run != self._session.run:
            return
        self._session.in_flight -= 1
        if isinstance(answer, OttlaError):
            self._begin_anew(answer.message, reconnect=True)
            return
        if answer.error_code:
            code = ErrorCode(answer.error_code)
            known = code in (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            )
            self._begin_anew(f"broker {self.source} answers {code.name}", reconnect=not known)
            return
        self._session.on_answer(answer.session_id)
        self._link.on_success()
        for topic in answer.responses:
            for data in topic.partitions:
                partition = self.partitions.get((topic.topic_id, data.partition_index))
                if partition is not None and partition.follower is not None:
                    self._following.take(partition, data, self._on_taken)
                    if partition.follower is not None and partition.follower.nonce == NO_FETCH:
                        self._ask(partition)
        if self._flushing:
            self._be_patient()
        self._soon()

    def _on_taken(self, partition: Partition) -> None:
        """Fetch again after an answer that truncated the log, which happens in a later turn."""
        if self.partitions.get((partition.topic_id, partition.index)) is not partition:
            return
        if partition.follower is not None and partition.follower.nonce == NO_FETCH:
            self._ask(partition)
            self._soon()

    def _begin_anew(self, why: str, *, reconnect: bool) -> None:
        """Start a new session, and fetch all partitions again."""
        _log.info("fetching from broker %d starts again with a new session: %s", self.source, why)
        now_ms = self._clock.monotonic_ms()
        for partition in self.partitions.values():
            follower = partition.follower
            if follower is not None and follower.nonce != NO_FETCH:
                follower.on_no_answer(follower.nonce, now_ms=now_ms)
            if partition not in self._flushing:
                self._ask(partition)
        self._end_session()
        if reconnect:
            self._link.end()
            self._link.wait()
        else:
            self._soon()

    def _end_session(self) -> None:
        self._session.end()
        self._forgotten.clear()

    # -- time

    def _be_patient(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = self._loop.call_later(_FLUSH_PATIENCE_S, self._on_impatient)

    def _on_impatient(self) -> None:
        self._patience = None
        self._soon()


def _earlier(at_ms: int, other_ms: int) -> int:
    """The earlier of two times; the second may be absent (negative)."""
    return at_ms if other_ms < 0 else min(at_ms, other_ms)


class Fetchers:
    """The fetchers of a broker: `num.replica.fetchers` for each broker that leads a partition."""

    def __init__(
        self,
        peers: SourcePeers,
        following: FollowerShell,
        limits: FetchLimits,
        clock: Clock,
        spawn: Spawn,
        *,
        per_source: int,
    ) -> None:
        self._peers = peers
        self._following = following
        self._limits = limits
        self._clock = clock
        self._spawn = spawn
        self._per_source = per_source
        self._fetchers: dict[tuple[BrokerId, int], ReplicaFetcher] = {}
        self._homes: dict[Partition, ReplicaFetcher] = {}

    def __len__(self) -> int:
        return len(self._fetchers)

    def add(self, partition: Partition) -> None:
        """Start fetching a partition whose `follower` was just created."""
        assert partition.follower is not None
        number = (partition.topic_id.int + partition.index) % self._per_source
        place = (partition.follower.leader, number)
        fetcher = self._fetchers.get(place)
        if fetcher is None:
            fetcher = self._fetchers[place] = ReplicaFetcher(
                place[0], self._peers, self._following, self._limits, self._clock, self._spawn
            )
        self._homes[partition] = fetcher
        fetcher.add(partition)

    def remove(self, partition: Partition) -> None:
        """Stop fetching a partition."""
        fetcher = self._homes.pop(partition, None)
        if fetcher is not None:
            fetcher.remove(partition)

    def close(self) -> None:
        """Stop all fetchers."""
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()
        self._homes.clear()
