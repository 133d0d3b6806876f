"""The consumer: reads chosen partitions, or those that its group assigns to it."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self, TypeVar, Unpack

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.common.arguments import (
    Names,
    Partitions,
    checked_options,
    checks_calls,
    name_list,
    not_negative,
    one_partition,
    partition_list,
    wrong,
)
from ottla.client.common.errors import ClientClosed, ClientError
from ottla.client.common.other_names import OtherNames
from ottla.client.connection.cluster import Cluster
from ottla.client.connection.coordinator import Coordinator, GroupMetadata, OffsetAndMetadata
from ottla.client.connection.view import PartitionDescription
from ottla.client.consumer.fetcher import Fetched, Fetcher
from ottla.client.consumer.offsets import EARLIEST, LATEST, OffsetAndTimestamp, list_offsets
from ottla.client.consumer.options import (
    DEFAULTS,
    ConsumerOptions,
    Listener,
    cluster_options,
    isolation_level,
    start_rule,
)
from ottla.client.consumer.partition_state import (
    ConsumerRecord,
    ConsumerRecords,
    PartitionState,
    RawBatches,
    Records,
    consumed,
)
from ottla.client.consumer.subscription import GroupSession, WholeTopics
from ottla.record.codec import Record

Found = TypeVar("Found")

# More records than a batch can hold.
_WHOLE_BATCH = 1 << 31
_NOTHING: Iterator[Record] = iter(())


@checks_calls(unchecked=("assign",))
class Consumer(OtherNames):
    """Reads records. Use it as `async with Consumer("host:9092", "topic", group_id="g") as c`.

    It reads `topics` (see `subscribe`), either as a member of `group_id` or, without a group, all
    their partitions; or it reads the partitions given to `assign`. Then use `async for record in
    consumer`, `poll` for many records at once, or `fetch_batches` for bytes.

    A record is considered processed when the next one (or the next `poll`) is requested.
    Automatic commits, and commits during rebalances, include only processed records. An
    explicit `commit` includes the records returned last. Not for several loops or threads: see
    `ottla.client.sync`.

    `on_assigned`, `on_revoked` and `on_lost` are called with the set of partitions concerned,
    inside the call during which the rebalance happens. `on_lost` (default: `on_revoked`) means
    that other members may already read these partitions.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        topics: Names | re.Pattern[str] = (),
        *,
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        self._options = options = checked_options(options, DEFAULTS, ConsumerOptions)
        self._connections = Cluster(bootstrap_servers, cluster_options(options))
        self._news = asyncio.Event()
        self._isolation_level = isolation_level(options)
        self._fetcher = Fetcher(self._connections, options, self._news.set)
        self._whole_topics = WholeTopics(self._connections, self._fetcher, start_rule(options))
        self._key, self._value = options["key_deserializer"], options["value_deserializer"]
        self._group: GroupSession | None = None
        group_id = options["group_id"]
        if group_id == "":
            raise ClientError(
                ErrorCode.INVALID_GROUP_ID,
                "group_id is empty; give the group a name, or None to read without a group",
            )
        if group_id is not None:
            coordinator = Coordinator(self._connections, group_id)
            listeners = (on_assigned, on_revoked, on_lost)
            self._group = GroupSession(coordinator, options, self._fetcher, self._wake, listeners)
        # The batch whose records `async for` is returning.
        self._fetched: Fetched | None = None
        self._records: Iterator[Record] = _NOTHING
        # The records of that batch, deserialized if the consumer has deserializers.
        self._batch: Iterator[Record | ConsumerRecord] = _NOTHING
        self._state = PartitionState("", -1)
        # Set if `async for` must leave its batch: seek, pause, rebalance, a due commit.
        self._is_interrupted = False
        self._closed = False
        if topics:
            self.subscribe(topics)

    def __repr__(self) -> str:
        group_id = self._options["group_id"]
        member = f" in group {group_id!r}" if group_id else ""
        return f"<Consumer of {self._connections.named}{member}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After an error, the record being processed is not committed.
        await self.close(commit=error is None)

    # -- what to read

    async def assign(self, partitions: Partitions) -> None:
        """Read exactly these partitions, without being a member of a group.

        Reading starts at the offsets committed by `group_id`, if there is one, else as
        `auto_offset_reset` says; use `seek` to start elsewhere. Raises UnknownTopic.
        """
        self._check_open()
        if self._is_subscribed:
            raise _mixed()
        wanted = set(partition_list(partitions))
        for partition in wanted:
            await self._connections.partition(partition)
        new = wanted - self._fetcher.states.keys()
        self._interrupt()
        self._fetcher.replace(wanted)
        if self._group is not None:
            await self._group.start_from_committed(new)
        else:
            for partition in new:
                self._fetcher.states[partition].forget_position(start_rule(self._options))
        # Delayed, because the caller may seek before the first fetch.
        asyncio.get_running_loop().call_soon(self._fetcher.pump)

    def subscribe(
        self,
        topics: Names | re.Pattern[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
    ) -> None:
        """Read topics: one, several, or all whose full name matches a pattern.

        With a `group_id` the consumer joins the group; topics that do not exist yet are read once
        they do. Without a group it reads all partitions. Reading starts with the next `poll`.
        """
        self._check_open()
        if self._fetcher.states and not self._is_subscribed:
            raise _mixed()
        compiled = re.compile(pattern) if isinstance(pattern, str) else pattern
        names: list[str] = []
        if isinstance(topics, re.Pattern):
            compiled = topics
        else:
            names = name_list(topics)
        if bool(names) == (compiled is not None):
            raise ClientError(
                ErrorCode.INVALID_REQUEST, 'give topics, or a pattern: subscribe("topic")'
            )
        (self._group or self._whole_topics).subscribe(names, compiled)

    @property
    def _is_subscribed(self) -> bool:
        if self._group is not None:
            return self._group.membership is not None
        return self._whole_topics.is_subscribed

    def subscription(self) -> set[str]:
        """Return the topics subscribed to by name."""
        return set((self._group or self._whole_topics).topics)

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that are read now."""
        return set(self._fetcher.states)

    async def partitions_for(self, topic: str) -> tuple[PartitionDescription, ...]:
        """Return the topic's partitions and leaders. Raises UnknownTopic."""
        self._check_open()
        return (await self._connections.topic(topic)).partitions

    def pause(self, partitions: Partitions | str, number: int | None = None) -> None:
        """Return no records of these partitions until `resume`; positions and membership are kept.

        Takes partitions, or a topic and a partition number.
        """
        self._interrupt()
        for partition in _several(partitions, number):
            self._state_of(partition).is_paused = True

    def resume(self, partitions: Partitions | str, number: int | None = None) -> None:
        """Continue with paused partitions."""
        for partition in _several(partitions, number):
            self._state_of(partition).is_paused = False
        self._fetcher.pump()
        self._wake()

    # -- where to read

    def seek(
        self, partition: TopicPartition | str, number: int | None = None, offset: int | None = None
    ) -> None:
        """Continue at an offset; a record with exactly this offset need not exist.

        `seek(partition, offset)`, or with topic and partition number: `seek("topic", 0, offset)`.
        """
        self._check_open()
        if not isinstance(partition, str):
            number, offset = None, number if offset is None else offset
        if offset is None or offset < 0:
            raise wrong("offset", offset, "an int from 0 on")
        wanted = one_partition(partition, number)
        self._interrupt()
        self._state_of(wanted).seek(offset)
        self._fetcher.pump()

    def seek_to_time(self, timestamp_ms: int, partitions: Partitions | None = None) -> None:
        """Continue with the first record at or after a time; at the end if there is none."""
        not_negative("timestamp_ms", timestamp_ms)
        self._reset(timestamp_ms, partitions)

    def seek_to_beginning(self, partitions: Partitions | None = None) -> None:
        """Continue with the first available record."""
        self._reset(EARLIEST, partitions)

    def seek_to_end(self, partitions: Partitions | None = None) -> None:
        """Continue with records written from now on."""
        self._reset(LATEST, partitions)

    def _reset(self, reset_to: int, partitions: Partitions | None) -> None:
        self._interrupt()
        if partitions is None:
            # Also for partitions that a subscription without a group finds later.
            self._whole_topics.reset_to = reset_to
        for partition in self.assignment() if partitions is None else partition_list(partitions):
            self._state_of(partition).forget_position(reset_to)
        self._fetcher.pump()

    async def position(self, partition: TopicPartition | str, number: int | None = None) -> int:
        """Return the offset of the next record to return, determining it first if needed.

        `position(partition)`, or `position("topic", 0)`.
        """
        state = self._state_of(one_partition(partition, number))
        while state.position < 0:
            self._raise_failure()
            self._fetcher.pump()
            await asyncio.sleep(0.01)
        return state.position

    def high_watermark(
        self, partition: TopicPartition | str, number: int | None = None
    ) -> int | None:
        """Return the partition's high watermark as of the last fetch; None before the first."""
        offset = self._state_of(one_partition(partition, number)).high_watermark
        return None if offset < 0 else offset

    async def beginning_offsets(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """Return the first offset that can be read, per partition."""
        return await self._offsets(partitions, EARLIEST)

    async def end_offsets(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """Return the offset after the last record that can be read, per partition."""
        return await self._offsets(partitions, LATEST)

    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Return per partition the first record at or after a time in ms.

        The offset is -1 if there is no such record.
        """
        return await list_offsets(self._connections, times_ms, self._isolation_level)

    async def _offsets(self, partitions: Partitions, which: int) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(partition_list(partitions), which)
        found = await list_offsets(self._connections, wanted, self._isolation_level)
        return {partition: one.offset for partition, one in found.items()}

    # -- reading

    async def poll(self, timeout: float = 1.0, max_records: int | None = None) -> ConsumerRecords:
        """Return available records, or wait up to `timeout` seconds for some; may be empty.

        Returns at most `max_records` (default: option `max_poll_records`). The records of earlier
        calls are considered processed from now on.
        """
        most = self._options["max_poll_records"] if max_records is None else max_records
        not_negative("max_records", most)
        found = await self._poll(timeout, lambda: self._take(most))
        return ConsumerRecords(found, self._key, self._value)

    async def _poll(self, timeout: float, take: Callable[[], list[Found]]) -> list[Found]:
        """Return what `take` finds, or wait up to `timeout` seconds for it; may be empty."""
        not_negative("timeout", timeout)
        deadline_s = _now_s() + timeout
        self._put_back()
        while True:
            found = take() if await self._settle(deadline_s) else []
            if found or _now_s() >= deadline_s:
                return found
            await self._wait(deadline_s - _now_s())

    def _take(self, max_records: int) -> list[Records]:
        found: list[Records] = []
        left = max_records
        while left > 0:
            try:
                taken = self._fetcher.take(left)
            except OttlaError:
                if not found:
                    raise
                # Records before the damage are returned; the next call raises the error.
                break
            if taken is None:
                break
            fetched, records = taken
            state = fetched.state
            found.append(Records(state.topic, state.partition, records, state.high_watermark))
            left -= len(records)
        return found

    def __aiter__(self) -> Self:
        return self

    # Hot: once per record; see bench/client.py.
    async def __anext__(self) -> ConsumerRecord:
        """Wait for the next record. Cancelling the wait loses nothing."""
        while True:
            if not self._is_interrupted:
                for record in self._batch:
                    state = self._state
                    state.position = record.offset + 1
                    return tuple.__new__(
                        ConsumerRecord,
                        (
                            state.topic,
                            state.partition,
                            record.offset,
                            record.timestamp,
                            record.key,
                            record.value,
                            record.headers,
                        ),
                    )
            await self._advance()

    async def _advance(self) -> None:
        """Continue with the next batch; the records of the previous one are processed."""
        self._put_back()
        while not await self._settle(_now_s() + 3600):
            pass
        taken = self._fetcher.take(_WHOLE_BATCH)
        if taken is None:
            await self._wait(3600)
            return
        fetched, records = taken
        self._fetched, self._state = fetched, fetched.state
        self._records = iter(records)
        self._batch = self._records
        if self._key is not None or self._value is not None:
            topic, partition = self._state.topic, self._state.partition
            self._batch = consumed(topic, partition, self._records, self._key, self._value)
        # Advanced record by record, so that a commit in between is exact.
        self._state.position = records[0].offset

    def _put_back(self) -> None:
        """Put back the records that were decoded but not returned yet.

        The records that were returned count as processed from now on.
        """
        self._is_interrupted = False
        fetched, self._fetched = self._fetched, None
        rest, self._records = list(self._records), _NOTHING
        self._batch = _NOTHING
        if fetched is None or fetched.term != fetched.state.term:
            return
        if rest:
            fetched.rest = rest
        else:
            fetched.state.position = max(fetched.state.position, fetched.chunk.next_offset)

    async def poll_batches(self, timeout: float = 1.0) -> list[RawBatches]:
        """Return fetched batches undecoded; wait up to `timeout` seconds if there are none.

        The first batch may begin before the position; aborted transactions and control batches are
        included.
        """
        return await self._poll(timeout, lambda: list(iter(self._fetcher.take_raw, None)))

    async def fetch_batches(self) -> AsyncIterator[RawBatches]:
        """Yield the results of `poll_batches` one by one, without end."""
        while True:
            for raw in await self.poll_batches(3_600):
                yield raw

    # -- commits

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None
    ) -> None:
        """Commit the positions after the last returned records, or the given offsets.

        A committed offset is the next offset to read. Raises CommitFailed if the partitions are no
        longer this member's, ClientError for a negative offset.
        """
        group = self._need_group()
        if offsets is None:
            await group.commit(group.uncommitted())
            return
        given = {
            partition: entry if isinstance(entry, OffsetAndMetadata) else OffsetAndMetadata(entry)
            for partition, entry in offsets.items()
        }
        for partition, entry in given.items():
            if entry.offset < 0:
                raise ClientError(
                    ErrorCode.INVALID_REQUEST,
                    f"{partition}: an offset to commit is 0 or more, not {entry.offset}",
                )
        await group.commit(given)

    async def committed(
        self, partition: TopicPartition | str, number: int | None = None
    ) -> int | None:
        """Return the group's committed offset of a partition; None if there is none.

        `committed(partition)`, or `committed("topic", 0)`; `Admin.groups.offsets` has all of them.
        """
        wanted = one_partition(partition, number)
        found = await self._need_group().coordinator.committed([wanted])
        return found[wanted].offset if wanted in found else None

    def group_metadata(self) -> GroupMetadata:
        """Return this member's metadata, for `Producer.send_offsets_to_transaction`.

        Call it for each transaction.
        """
        group = self._need_group()
        member = group.membership
        if member is None:
            return GroupMetadata(group.coordinator.group_id)
        return GroupMetadata(
            group.coordinator.group_id,
            member.generation,
            member.member_id,
            self._options["group_instance_id"],
        )

    # -- internals

    async def _settle(self, deadline_s: float) -> bool:
        """Raise pending errors, commit if due, and rebalance.

        Returns False if the rebalance lasts beyond the deadline.
        """
        self._check_open()
        self._connections.check_loop()
        self._raise_failure()
        if not self._fetcher.states and not self._is_subscribed:
            raise ClientError(
                ErrorCode.INVALID_REQUEST,
                "this consumer reads nothing: subscribe to topics or assign partitions before it"
                ' polls, as in subscribe("topic")',
            )
        if self._group is not None:
            return await self._group.settle(deadline_s - _now_s())
        await self._whole_topics.settle()
        return True

    def _raise_failure(self) -> None:
        failure = self._fetcher.take_failure()
        if failure is not None:
            raise failure

    async def _wait(self, timeout_s: float) -> None:
        """Wait until records arrive, or a rebalance or commit is due."""
        self._news.clear()
        if self._fetcher.has_ready():
            return
        try:
            async with asyncio.timeout(max(0.0, timeout_s)):
                await self._news.wait()
        except TimeoutError:
            return

    def _wake(self) -> None:
        self._is_interrupted = True
        self._news.set()

    def _interrupt(self) -> None:
        self._is_interrupted = True

    def _state_of(self, partition: TopicPartition) -> PartitionState:
        self._check_open()
        if partition not in self._fetcher.states and self._group is None:
            self._whole_topics.claim(partition)
        state = self._fetcher.states.get(partition)
        if state is None:
            raise ClientError(
                ErrorCode.INVALID_REQUEST,
                f"{partition} is not assigned to this consumer; it reads "
                f"{sorted(map(str, self._fetcher.states)) or 'nothing'}",
            )
        return state

    def _need_group(self) -> GroupSession:
        self._check_open()
        if self._group is None:
            raise ClientError(
                ErrorCode.INVALID_GROUP_ID,
                'commits need a group: Consumer("host:9092", "topic", group_id="g")',
            )
        return self._group

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("the consumer is closed; make a new one")

    async def close(self, *, commit: bool = True) -> None:
        """Commit processed records (if commits are automatic, and `commit`), leave, disconnect."""
        if self._closed:
            return
        self._connections.check_loop()
        self._closed = True
        await self._fetcher.close()
        if self._group is not None:
            await self._group.close(commit=commit)
        await self._connections.close()


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _several(partitions: Partitions | str, number: int | None) -> list[TopicPartition]:
    if isinstance(partitions, str):
        return [one_partition(partitions, number)]
    return partition_list(partitions)


def _mixed() -> ClientError:
    return ClientError(
        ErrorCode.INVALID_REQUEST,
        "a consumer either subscribes or assigns its partitions; make another for the other",
    )
