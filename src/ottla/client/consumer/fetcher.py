"""Prefetches batches for the consumer, in bounded memory.

It sends a leader a long poll for all partitions that have room; meanwhile, other partitions may be
fetched on a second connection. Answers are kept as bytes until they are consumed.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.common.errors import Needs, OffsetOutOfRange, code_of, refused
from ottla.client.common.placed import placed
from ottla.client.connection.cluster import Cluster
from ottla.client.consumer.offsets import READ_COMMITTED
from ottla.client.consumer.options import ConsumerOptions, backoff, isolation_level, start_rule
from ottla.client.consumer.partition_state import NO_OFFSET, PartitionState, RawBatches
from ottla.client.consumer.positions import Positions, Waiting
from ottla.record.aborted import AbortedTransactions
from ottla.record.codec import Record
from ottla.record.reader import CorruptBatch, batches, records
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)


class Chunk:
    """One partition's part of a fetch answer, decoded batch by batch as it is consumed.

    With `aborted` not None (read_committed), batches of aborted transactions are left out.
    Control batches are never shown.
    """

    __slots__ = ("_aborted", "_batches", "_check_crc", "buffer", "next_offset")

    def __init__(
        self,
        buffer: memoryview,
        aborted: Sequence[AbortedTransaction] | None,
        *,
        check_crc: bool,
    ) -> None:
        self.buffer = buffer
        self._batches = batches(buffer)
        self._check_crc = check_crc
        self._aborted: AbortedTransactions | None = None
        if aborted is not None:
            self._aborted = AbortedTransactions()
            self._aborted.learn((entry.producer_id, entry.first_offset) for entry in aborted)
        # The offset after the last examined batch.
        self.next_offset = -1

    def take(self, from_offset: int) -> list[Record] | None:
        """Return records of the next batch at or after `from_offset`; None at the end of the chunk.

        An empty list is a batch without visible records. Raises CorruptBatch.
        """
        entry = next(self._batches, None)
        if entry is None:
            return None
        position, header = entry
        self.next_offset = header.last_offset + 1
        aborted = self._aborted
        if header.is_control:
            if aborted is not None:
                aborted.on_control_batch(self.buffer, position, header, check_crc=self._check_crc)
            return []
        if aborted is not None and aborted.is_aborted(header):
            return []
        if header.last_offset < from_offset:
            return []
        found = records(self.buffer, position, header, check_crc=self._check_crc)
        if header.base_offset < from_offset:
            return [record for record in found if record.offset >= from_offset]
        return found


_LANES = ("fetch", "fetch-2")

# How often a damaged batch is fetched before it is an error: bits may flip on the way.
_DAMAGED_ANSWERS_MAX = 3

# Temporary errors: a later attempt may succeed, perhaps at another leader.
_PASSING = frozenset(
    {ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT}
)


@dataclass(slots=True, eq=False)
class Fetched:
    """An answer for one partition, waiting to be consumed."""

    state: PartitionState
    term: int
    chunk: Chunk
    size: int
    # The offset after the last batch.
    next_offset: int
    # Decoded records of a batch that were not returned yet.
    rest: list[Record]


class Fetcher:
    """Fetches batches in the background, on the consumer's loop.

    `ready` holds the answers that are not consumed yet.
    """

    def __init__(
        self, cluster: Cluster, options: ConsumerOptions, on_ready: Callable[[], None]
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._on_ready = on_ready
        self.states: dict[TopicPartition, PartitionState] = {}
        self.ready: deque[Fetched] = deque()
        # A permanent error, and the partition and the term that it is about, if it is about one.
        self._failure: tuple[OttlaError, PartitionState | None, int] | None = None
        self._under_way: dict[tuple[int, str], frozenset[TopicPartition]] = {}
        self._isolation_level = isolation_level(options)
        self._waiting = Waiting(cluster, backoff(options), self.pump)
        self._positions = Positions(
            cluster,
            self._waiting,
            start_rule(options),
            self._isolation_level,
            on_known=self._on_positions,
            on_failure=self.fail,
        )

    # -- partitions

    def replace(self, wanted: Iterable[TopicPartition]) -> None:
        """Read exactly the partitions `wanted`; those read already keep position and buffer.

        New partitions wait for a position: call `seek` or `forget_position` on their state.
        """
        wanted = set(wanted)
        for partition in [known for known in self.states if known not in wanted]:
            self.states.pop(partition).seek(NO_OFFSET)
        for partition in sorted(wanted):
            if partition not in self.states:
                self.states[partition] = PartitionState(*partition)
        self._cluster.want(partition.topic for partition in wanted)

    # -- reading

    def take(self, limit: int) -> tuple[Fetched, list[Record]] | None:
        """Return up to `limit` (> 0) records of one batch, None if nothing is available.

        The partition's position is then the offset after the last of them. Raises CorruptBatch,
        again and again until the consumer seeks past the damage.
        """
        while True:
            fetched = self._oldest()
            if fetched is None:
                return None
            state = fetched.state
            found: list[Record] | None = fetched.rest
            if not found:
                try:
                    found = fetched.chunk.take(state.position)
                except OttlaError:
                    state.seek(state.position)
                    raise
            if found is None:
                self._finish(fetched)
                continue
            # It is not fully consumed.
            self.ready.appendleft(fetched)
            if not found:
                state.position = max(state.position, fetched.chunk.next_offset)
                continue
            if len(found) > limit:
                found, fetched.rest = found[:limit], found[limit:]
                state.position = found[-1].offset + 1
            else:
                fetched.rest = []
                state.position = fetched.chunk.next_offset
            return fetched, found

    def take_raw(self) -> RawBatches | None:
        """Return the next answer unchanged, None if nothing is available."""
        fetched = self._oldest()
        if fetched is None:
            return None
        state = fetched.state
        state.position = fetched.next_offset
        self._finish(fetched)
        return RawBatches(
            state.topic,
            state.partition,
            fetched.chunk.buffer,
            state.high_watermark,
            state.log_start_offset,
        )

    def _oldest(self) -> Fetched | None:
        """Take the oldest answer that is still wanted, skipping paused partitions."""
        for _ in range(len(self.ready)):
            fetched = self.ready.popleft()
            if fetched.term != fetched.state.term:
                continue
            if fetched.state.is_paused:
                self.ready.append(fetched)
                continue
            return fetched
        return None

    def has_ready(self) -> bool:
        """Whether an answer is available."""
        return any(
            fetched.term == fetched.state.term and not fetched.state.is_paused
            for fetched in self.ready
        )

    def _finish(self, fetched: Fetched) -> None:
        """Note that an answer is consumed, which frees its room."""
        fetched.state.buffered_bytes -= fetched.size
        self.pump()

    # -- requests

    def pump(self) -> None:
        """Fetch all partitions that have room and are not being fetched."""
        if self._waiting.closed:
            return
        self._positions.resolve(self.states.values())
        for leader, states in self._fetchable().items():
            view = self._cluster.view
            if leader not in view.brokers:
                # Before the first answer about a topic there is no reason to back off.
                known = view.topics.keys() | view.errors.keys()
                self._waiting.delay(state for state in states if state.topic in known)
                self._waiting.refresh()
                continue
            lane = next((name for name in _LANES if (leader, name) not in self._under_way), None)
            if lane is not None:
                self._ask(leader, lane, states)

    def _fetchable(self) -> dict[int, list[PartitionState]]:
        """Return the partitions to fetch now, by leader (NO_LEADER included)."""
        now_s = asyncio.get_running_loop().time()
        busy = frozenset[TopicPartition]().union(*self._under_way.values())
        view = self._cluster.view
        by_leader: dict[int, list[PartitionState]] = {}
        doubtful: dict[int, list[PartitionState]] = {}
        for partition, state in self.states.items():
            if state.fetch_offset < 0 or partition in busy or state.is_paused:
                continue
            if not self._has_room(state) or state.is_checking:
                continue
            if state.not_before_s > now_s:
                self._waiting.until(state.not_before_s)
                continue
            must_check = state.must_check(view.leader_epoch(*partition))
            chosen = doubtful if must_check else by_leader
            chosen.setdefault(view.leader(*partition), []).append(state)
        for leader, states in doubtful.items():
            self._positions.check(leader, states)
        return by_leader

    def _has_room(self, state: PartitionState) -> bool:
        return state.buffered_bytes < self._options["max_partition_fetch_bytes"]

    def _ask(self, leader: int, lane: str, states: list[PartitionState]) -> None:
        partitions = frozenset(state.topic_partition for state in states)
        self._under_way[leader, lane] = partitions
        self._waiting.run(self._fetch(leader, lane, [(state, state.term) for state in states]))

    async def _fetch(self, leader: int, lane: str, asked: list[tuple[PartitionState, int]]) -> None:
        try:
            connection = await self._cluster.connection(leader, lane)
            timeout_s = self._cluster.options.request_timeout_ms / 1000
            timeout_s += self._options["fetch_max_wait_ms"] / 1000
            answer = await connection.request(self._request(asked), FetchResponse, timeout_s)
        except OttlaError:
            self._waiting.delay(state for state, _ in asked)
            self._waiting.refresh()
        else:
            self._on_answer(answer, asked)
        finally:
            self._under_way.pop((leader, lane), None)
        self.pump()

    def _request(self, asked: list[tuple[PartitionState, int]]) -> FetchRequest:
        options = self._options
        topics: dict[str, FetchTopic] = {}
        for state, _ in asked:
            topic = topics.get(state.topic)
            if topic is None:
                topic = topics[state.topic] = FetchTopic(topic=state.topic)
            topic.partitions.append(
                FetchPartition(
                    partition=state.partition,
                    current_leader_epoch=self._cluster.view.leader_epoch(
                        state.topic, state.partition
                    ),
                    fetch_offset=state.fetch_offset,
                    partition_max_bytes=options["max_partition_fetch_bytes"],
                )
            )
        return FetchRequest(
            max_wait_ms=options["fetch_max_wait_ms"],
            min_bytes=options["fetch_min_bytes"],
            max_bytes=options["fetch_max_bytes"],
            isolation_level=self._isolation_level,
            topics=list(topics.values()),
        )

    def _on_positions(self) -> None:
        self._on_ready()
        self.pump()

    def fail(self, error: OttlaError, state: PartitionState | None = None) -> None:
        """Let the next poll raise an error, unless the program moves that partition before."""
        self._failure = (error, state, -1 if state is None else state.term)
        self._on_ready()

    def take_failure(self) -> OttlaError | None:
        """Return the error to raise now, once."""
        failure, self._failure = self._failure, None
        if failure is None:
            return None
        error, state, term = failure
        return error if state is None or state.term == term else None

    # -- answers

    def _on_answer(self, answer: FetchResponse, asked: list[tuple[PartitionState, int]]) -> None:
        if answer.error_code:
            self._waiting.delay(state for state, _ in asked)
            return
        terms = {(state.topic, state.partition): (state, term) for state, term in asked}
        came = len(self.ready)
        for topic in answer.responses:
            for data in topic.partitions:
                entry = terms.get((topic.topic, data.partition_index))
                if entry is None or entry[0].term != entry[1]:
                    continue
                if data.error_code:
                    self._on_error(entry[0], data)
                else:
                    self._on_data(entry[0], data)
        if len(self.ready) > came:
            self._on_ready()

    def _on_data(self, state: PartitionState, data: PartitionData) -> None:
        if not state.damaged_answers:
            state.attempts = 0
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        if not data.records:
            return
        found = placed(data.records, state.fetch_offset, data.high_watermark)
        size = len(found.batches)
        if not size:
            if found.damage is not None:
                self._on_damage(state, found.damage)
            return
        committed_only = self._isolation_level == READ_COMMITTED
        aborted = (data.aborted_transactions or ()) if committed_only else None
        chunk = Chunk(found.batches, aborted, check_crc=self._options["check_crcs"])
        state.fetch_offset = found.next_offset
        # A leader epoch has no checksum. Epochs only rise, so a lower one is damaged and ignored.
        is_lower = found.leader_epoch < state.read_epoch
        state.read_epoch = -1 if is_lower else found.leader_epoch
        state.damaged_answers = 0
        state.buffered_bytes += size
        self.ready.append(Fetched(state, state.term, chunk, size, found.next_offset, []))

    def _on_damage(self, state: PartitionState, damage: CorruptBatch) -> None:
        """Fetch again; repeated damage is an error."""
        self._waiting.delay([state])
        state.damaged_answers += 1
        if state.damaged_answers >= _DAMAGED_ANSWERS_MAX:
            state.damaged_answers = 0
            problem = CorruptBatch(
                f"{state.topic}-{state.partition} cannot be read at offset {state.fetch_offset}: "
                f"{damage.message}. Restore the partition from a replica or a copy, or seek past it"
            )
            self.fail(problem, state)

    def _on_error(self, state: PartitionState, data: PartitionData) -> None:
        code = code_of(data.error_code)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._on_out_of_range(state)
        elif code.retriable or code in _PASSING:
            self._waiting.delay([state])
            if code.stale_metadata:
                self._waiting.refresh()
        else:
            needed = [Needs("read", "topic", state.topic)]
            what = f"read {state.topic}-{state.partition}"
            self.fail(refused(code, what, None, needed), state)

    def _on_out_of_range(self, state: PartitionState) -> None:
        if state.buffered_bytes > 0:
            # Records fetched earlier are returned first; then the error occurs again.
            self._waiting.delay([state])
        elif (reset_to := start_rule(self._options)) is not None:
            state.forget_position(reset_to)
        else:
            problem = OffsetOutOfRange(
                f"offset {state.fetch_offset} of {state.topic}-{state.partition} is not in the "
                "log; ask `beginning_offsets` and `end_offsets` what is, and seek, or let "
                "auto_offset_reset be 'earliest' or 'latest'"
            )
            self.fail(problem, state)

    async def close(self) -> None:
        """Stop fetching."""
        await self._waiting.close()
