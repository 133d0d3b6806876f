"""Reads a range of offsets of one partition as raw batches, for a task of an offline load.

Blocking, over one connection to the leader, with one fetch sent ahead. Decodes nothing but the
batch headers of each answer. All calls retry while leaders move; no batch is yielded twice.
"""

import logging
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial, wraps
from random import Random
from typing import Concatenate, NamedTuple, NoReturn, ParamSpec, Self, TypeVar
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.common.errors import (
    ConnectionFailed,
    Needs,
    OffsetOutOfRange,
    RequestTimedOut,
    TopicRecreated,
    check,
    code_of,
    refused,
    unknown_topic,
)
from ottla.client.common.offset_account import OffsetAccount, account_of
from ottla.client.common.placed import placed
from ottla.client.connection.attempts import Backoff
from ottla.client.connection.blocking_connection import BlockingConnection
from ottla.client.connection.security import ClientConfig, refusal_named, security_by
from ottla.client.connection.view import (
    NO_LEADER,
    Address,
    ClusterView,
    TopicDescription,
    merged,
    parse_bootstrap,
)
from ottla.client.consumer.offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    OffsetAndTimestamp,
    epochs_request,
    offsets_request,
)
from ottla.record.reader import CorruptBatch
from ottla.wire.api import ApiKey
from ottla.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.wire.messages.list_offsets import ListOffsetsResponse, OffsetForLeaderEpochResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.offset_ledger import OffsetLedgerRequest, OffsetLedgerResponse

_log = logging.getLogger(__name__)

FETCH_BYTES = 8 * 1024 * 1024
# The fetch size of `fetch_once`; a larger batch is returned whole.
_ONCE_BYTES = 64 * 1024
_WAIT_MS = 500
# The pause after an empty answer without a throttle time.
_EMPTY_PAUSE_S = 0.1
_TOPIC_RESOURCE = 2
# From this version of Fetch on a topic is named only by its id (KIP-516).
_FETCH_BY_ID = 13
_NO_ID = UUID(int=0)

# A leader's errors for a damaged log: Kafka's is the first, Ottla's the second.
DAMAGE_CODES = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR})
_NOT_RETRIED = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.CORRUPT_MESSAGE})

# An outage is reported after _REPORT_AFTER_S, if retries go on for at least _REPORT_BEFORE_S.
_REPORT_AFTER_S = 1.4
_REPORT_BEFORE_S = 3.0
# The time limit of the first connection attempt; it doubles with each further attempt. The first
# one is short, so that a broker or cluster that does not answer is noticed early.
_SETUP_S = 2.0

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Fetched(NamedTuple):
    """Whole batches as the log contains them, and the leader's offsets.

    `batches` starts with the batch that contains the requested offset, so the reader must skip
    records before the start and, in the last batch, after the end of the range. `next_offset`
    follows the last batch. `aborted` holds (producer id, first offset) of aborted transactions,
    with read_committed.
    """

    batches: memoryview
    next_offset: int
    high_watermark: int
    log_start_offset: int
    aborted: tuple[tuple[int, int], ...]


class RetryPatience:
    """Limits the retries of a call, or of the wait for a stream's next answer."""

    def __init__(self, limit_s: float, now_s: float) -> None:
        self._limit_s = limit_s
        self.answered(now_s)

    def answered(self, now_s: float) -> None:
        """Note an answer; the next wait has the full time again."""
        self._until_s = now_s + self._limit_s
        self._failures = 0
        self._is_reported = False

    def is_over(self, now_s: float) -> bool:
        """Whether a failure now is final."""
        return now_s >= self._until_s

    def failed(self) -> int:
        """Count a failed attempt; return its number, from 0."""
        self._failures += 1
        return self._failures - 1

    def seconds_to_report(self, now_s: float) -> float | None:
        """Return the remaining seconds of retries, once per outage; None if no report is due."""
        left_s = self._until_s - now_s
        is_early = self._limit_s - left_s < _REPORT_AFTER_S
        if self._is_reported or is_early or left_s < _REPORT_BEFORE_S:
            return None
        self._is_reported = True
        return left_s


def setup_limit_s(failures: int, most_s: float) -> float:
    """Return the time limit for connecting, after this many consecutive failures."""
    return min(most_s, _SETUP_S * 2.0 ** min(failures, 10))


def _retried(
    call: Callable[Concatenate["RangeClient", Arguments], Result],
) -> Callable[Concatenate["RangeClient", Arguments], Result]:
    """Retry a method while leaders move. Calls inside it are not retried separately."""

    @wraps(call)
    def repeat(
        client: "RangeClient", /, *args: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        if client.is_repeating:
            return call(client, *args, **named)
        patience = client.patience()
        client.is_repeating = True
        try:
            while True:
                try:
                    answer = call(client, *args, **named)
                except OttlaError as error:
                    client.recover_or_raise(error, patience)
                else:
                    client.failures = 0
                    return answer
        finally:
            client.is_repeating = False

    return repeat


class RangeClient:
    """Blocking access to one cluster for a task: metadata, offsets, ranges.

    Not for several threads.
    """

    def __init__(
        self,
        bootstrap: str | Iterable[str],
        *,
        client_id: str = "ottla-ranges",
        timeout_ms: int = 30_000,
        retry_timeout_ms: int = 60_000,
        read_committed: bool = False,
        config: ClientConfig = None,
    ) -> None:
        self._bootstrap = parse_bootstrap(bootstrap)
        self._client_id = client_id
        self._timeout_s = timeout_ms / 1000
        self._retry_timeout_s = retry_timeout_ms / 1000
        self._isolation_level = READ_COMMITTED if read_committed else READ_UNCOMMITTED
        self._view = ClusterView()
        self._security = security_by(config)
        self._connections: dict[Address, BlockingConnection] = {}
        self._backoff = Backoff()
        self._chance = Random()
        self.failures = 0  # Consecutive failures.
        self.is_repeating = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # -- metadata and offsets

    @_retried
    def topic(self, name: str) -> TopicDescription:
        """Request the topic's metadata, and return its partitions.

        Raises UnknownTopic, with similar names.
        """
        self._view = merged(self._view, self._metadata([name]), [name])
        view = self._view.topics.get(name)
        if view is not None:
            return view
        code = self._view.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise unknown_topic(name, (one.name or "" for one in self._metadata(None).topics))
        raise refused(code, f"describe the topic {name!r}", None, _read(name))

    def topic_names(self, *, internal: bool = True) -> list[str]:
        """Return the names of all topics, in order; without `internal` no internal ones."""
        topics = self._metadata(None).topics
        return sorted(one.name for one in topics if one.name and (internal or not one.is_internal))

    def cluster_id(self) -> str | None:
        """Return the cluster's id."""
        return self._metadata([]).cluster_id

    @_retried
    def _metadata(self, topics: list[str] | None) -> MetadataResponse:
        """Return the answer for some topics, or for all."""
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=named, allow_auto_topic_creation=False)
        return self._any().ask(request, MetadataResponse)

    @_retried
    def topic_settings(self, topic: str) -> dict[str, str | None]:
        """Return all effective settings of the topic, by name."""
        resource = DescribeConfigsResource(resource_type=_TOPIC_RESOURCE, resource_name=topic)
        request = DescribeConfigsRequest(resources=[resource])
        found = self._any().ask(request, DescribeConfigsResponse).results[0]
        what = f"describe the settings of topic {topic!r}"
        check(found.error_code, what, None, [Needs("describe-configs", "topic", topic)])
        return {setting.name: setting.value for setting in found.configs}

    @_retried
    def list_offsets(
        self,
        topic: str,
        timestamp_ms: int,
        partitions: Collection[int] | None = None,
        isolation_level: int | None = None,
    ) -> dict[int, OffsetAndTimestamp]:
        """Return the offset per partition for a time in ms, EARLIEST, LATEST or MAX_TIMESTAMP.

        A time selects the first record at or after it, offset -1 if all are older. LATEST is the
        high watermark, with read_committed the last stable offset. Default: all partitions, and the
        client's isolation level.
        """
        level = self._isolation_level if isolation_level is None else isolation_level
        found: dict[int, OffsetAndTimestamp] = {}
        for connection, names in self._by_leader(topic, partitions):
            request = offsets_request(self._view, dict.fromkeys(names, timestamp_ms), level)
            request.timeout_ms = int(self._timeout_s * 1000)
            for one in connection.ask(request, ListOffsetsResponse).topics[0].partitions:
                what = f"list offsets of {topic}-{one.partition_index}"
                check(one.error_code, what, None, _read(topic))
                offset = OffsetAndTimestamp(one.offset, one.timestamp, one.leader_epoch)
                found[one.partition_index] = offset
        return dict(sorted(found.items()))

    def high_watermarks(self, topic: str) -> dict[int, int]:
        """Return the high watermark of each partition, even with read_committed."""
        found = self.list_offsets(topic, LATEST, isolation_level=READ_UNCOMMITTED)
        return {partition: end.offset for partition, end in found.items()}

    @_retried
    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> dict[int, int]:
        """Return the end offset of a leader epoch in the leader's log, per partition (KIP-320).

        It is -1 if the leader knows no such epoch, or does not answer for the partition.
        """
        found = dict.fromkeys(epochs, -1)
        for connection, names in self._by_leader(topic, epochs.keys()):
            request = epochs_request(
                {name: (self._view.leader_epoch(*name), epochs[name.partition]) for name in names}
            )
            for end in connection.ask(request, OffsetForLeaderEpochResponse).topics[0].partitions:
                what = f"send the leader epochs of {topic}-{end.partition}"
                check(end.error_code, what, None, _read(topic))
                found[end.partition] = end.end_offset
        return found

    @_retried
    def has_ledger(self) -> bool:
        """Whether the cluster's brokers keep a ledger of offsets."""
        return OffsetLedgerRequest.__api_key__ in self._any().versions

    @_retried
    def offset_account(self, topic: str, partition: int, start: int, end: int) -> OffsetAccount:
        """Explain each offset in [start, end) from the leader's ledger.

        Raises BrokerRefused OFFSET_OUT_OF_RANGE for offsets that the log never contained, and
        UnsupportedByBroker if the leader keeps no ledger.
        """
        request = OffsetLedgerRequest(topic=topic, partition=partition, start=start, end=end)
        answer = self._leader(topic, partition).ask(request, OffsetLedgerResponse)
        what = f"account for {topic}-{partition}"
        check(answer.error_code, what, answer.error_message, _read(topic))
        return account_of(TopicPartition(topic, partition), answer)

    def _by_leader(
        self, topic: str, wanted: Collection[int] | None
    ) -> Iterator[tuple[BlockingConnection, list[TopicPartition]]]:
        """Yield a connection to each leader, and its partitions among `wanted` (None: all)."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for entry in self.topic(topic).partitions:
            if wanted is None or entry.partition in wanted:
                by_leader.setdefault(entry.leader, []).append(
                    TopicPartition(topic, entry.partition)
                )
        for partitions in by_leader.values():
            yield self._leader(*partitions[0]), partitions

    # -- ranges

    def fetch_range(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        *,
        topic_id: UUID | None = None,
        fetch_bytes: int = FETCH_BYTES,
    ) -> Generator[Fetched]:
        """Yield the batches that hold the offsets `start` <= offset < `end`, in order.

        With `topic_id` only batches of that topic are read: the leader is asked by id if it
        supports that (Fetch 13), and TopicRecreated is raised if another topic has the name by now.
        An older leader is asked by name, and the id is compared before and after a retry.

        Close the iterator before other calls of this client, because it sends a fetch ahead. It
        ends once all offsets below `end` have been passed. Raises OffsetOutOfRange if `start` is
        no longer, or not yet, in the log; RequestTimedOut if no data below `end` arrives within the
        retry timeout; and CorruptBatch at a batch whose header is damaged or misplaced,
        after all earlier batches were yielded. Checksums are not computed.
        """
        position = start
        patience = self.patience()
        while position < end:
            try:
                found = self._fetch(topic, topic_id, partition, position, end, fetch_bytes)
                with closing(found) as answers:
                    for fetched in answers:
                        self.failures = 0
                        patience.answered(time.monotonic())
                        position = fetched.next_offset
                        yield fetched
            except OttlaError as error:
                self.recover_or_raise(error, patience)

    @_retried
    def fetch_once(self, topic: str, partition: int, offset: int) -> bytes:
        """Return the leader's answer at `offset` unchanged.

        It may be empty, or an incomplete batch. Raises CorruptBatch if the leader reports that its
        log is damaged there.
        """
        request = self._fetch_request(topic, partition, offset, _ONCE_BYTES)
        answer = self._leader(topic, partition).ask(request, FetchResponse)
        data = _only_partition(answer)
        if data is None:
            _wait_out(answer)
            raise _nothing_of(topic)
        if data.error_code in DAMAGE_CODES:
            code = code_of(data.error_code)
            raise CorruptBatch(f"the broker answers {code.name} at offset {offset}")
        check(data.error_code, f"read {topic}-{partition}", None, _read(topic))
        records = data.records
        return bytes(records) if isinstance(records, bytes | bytearray | memoryview) else b""

    def _fetch(
        self,
        topic: str,
        topic_id: UUID | None,
        partition: int,
        position: int,
        end: int,
        fetch_bytes: int,
    ) -> Generator[Fetched]:
        """Yield batches until `end`; errors go to the caller, which retries."""
        connection = self._leader(topic, partition)
        version = _FETCH_BY_ID if topic_id and connection.speaks(ApiKey.FETCH, _FETCH_BY_ID) else 0
        if topic_id and not version:
            self._require_id(topic, topic_id)

        def send(position: int) -> None:
            request = self._fetch_request(topic, partition, position, fetch_bytes)
            request.topics[0].topic_id = topic_id or _NO_ID
            connection.send(request, version=version or None)

        send(position)
        quiet_until_s = time.monotonic() + self._retry_timeout_s
        damaged_at = -1
        try:
            while position < end:
                data, waited_s = self._received(connection, partial(send, position), topic)
                quiet_until_s += waited_s
                if data.error_code:
                    self._refuse(topic, topic_id, partition, position, data.error_code)
                found = placed(data.records, position, data.high_watermark)
                if found.damage is not None and not found.batches:
                    # Retry once, immediately: bits may have flipped on the way, and a high
                    # watermark may be older than the records in the same answer.
                    if position == damaged_at:
                        raise found.damage
                    damaged_at = position
                if found.next_offset > position:
                    position = found.next_offset
                    quiet_until_s = time.monotonic() + self._retry_timeout_s
                if position < end:
                    send(position)
                if len(found.batches):
                    aborted = tuple(
                        (entry.producer_id, entry.first_offset)
                        for entry in data.aborted_transactions or ()
                    )
                    yield Fetched(
                        found.batches,
                        position,
                        data.high_watermark,
                        data.log_start_offset,
                        aborted,
                    )
                elif time.monotonic() > quiet_until_s:
                    raise RequestTimedOut(
                        f"{topic}-{partition} ends at {data.high_watermark}, before the offset "
                        f"{end} asked for, and nothing more came"
                    )
        finally:
            if position < end:
                # An answer may still be pending, so this connection cannot be used again.
                self._drop(connection)

    def _received(
        self, connection: BlockingConnection, send_again: Callable[[], None], topic: str
    ) -> tuple[PartitionData, float]:
        """Return the next answer that has the partition, and how long a quota delayed it."""
        until_s, waited_s = time.monotonic() + self._retry_timeout_s, 0.0
        while True:
            answer = connection.receive()
            data = _only_partition(answer)
            if data is not None:
                return data, waited_s
            if time.monotonic() > until_s + waited_s:
                raise _nothing_of(topic)
            waited_s += _wait_out(answer)
            send_again()

    def _refuse(
        self, topic: str, topic_id: UUID | None, partition: int, position: int, code: int
    ) -> NoReturn:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise self._out_of_range(topic, partition, position)
        if code == ErrorCode.UNKNOWN_TOPIC_ID and topic_id:
            self.topic(topic)
            self._require_id(topic, topic_id)
        raise refused(code, f"read {topic}-{partition}", None, _read(topic))

    def _require_id(self, topic: str, topic_id: UUID) -> None:
        """Raise TopicRecreated if the topic of that name is known to have another id."""
        view = self._view.topics.get(topic)
        if view is not None and view.topic_id.int and view.topic_id != topic_id:
            raise TopicRecreated(topic, topic_id, view.topic_id)

    def _out_of_range(self, topic: str, partition: int, position: int) -> OffsetOutOfRange:
        first = self.list_offsets(topic, EARLIEST, [partition])[partition].offset
        end = self.list_offsets(topic, LATEST, [partition])[partition].offset
        return OffsetOutOfRange(
            f"offset {position} of {topic}-{partition} is not in the log, which now starts at "
            f"{first} and ends at {end}; retention has removed it, or the topic was made anew"
        )

    def _fetch_request(
        self, topic: str, partition: int, position: int, fetch_bytes: int
    ) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=fetch_bytes,
            isolation_level=self._isolation_level,
            topics=[
                FetchTopic(
                    topic=topic,
                    partitions=[
                        FetchPartition(
                            partition=partition,
                            current_leader_epoch=self._view.leader_epoch(topic, partition),
                            fetch_offset=position,
                            partition_max_bytes=fetch_bytes,
                        )
                    ],
                )
            ],
        )

    # -- connections and metadata

    def _leader(self, topic: str, partition: int) -> BlockingConnection:
        leader = self._view.leader(topic, partition)
        if leader == NO_LEADER:
            view = self.topic(topic)
            if not 0 <= partition < len(view.partitions):
                raise unknown_topic(f"{topic}-{partition}", ())
            leader = self._view.leader(topic, partition)
        broker = self._view.brokers.get(leader)
        if broker is None:
            code = ErrorCode.LEADER_NOT_AVAILABLE
            raise refused(code, f"read {topic}-{partition}: it has no leader now")
        return self._connection(broker.address)

    def _any(self) -> BlockingConnection:
        known = [broker.address for broker in self._view.brokers.values()]
        failure: OttlaError | None = None
        for address in dict.fromkeys([*self._connections, *known, *self._bootstrap]):
            try:
                return self._connection(address)
            except (ConnectionFailed, RequestTimedOut) as error:
                failure = failure or error
        assert failure is not None
        raise failure

    def _connection(self, address: Address) -> BlockingConnection:
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = BlockingConnection(
                address,
                self._client_id,
                self._timeout_s,
                setup_s=setup_limit_s(self.failures, self._timeout_s),
                advertised_by=None if address in self._bootstrap else str(self._bootstrap[0]),
                security=self._security,
            )
        return connection

    def _drop(self, connection: BlockingConnection) -> None:
        connection.close()
        if self._connections.get(connection.address) is connection:
            del self._connections[connection.address]

    def patience(self) -> RetryPatience:
        """Return the retry limit of a call that begins now."""
        return RetryPatience(self._retry_timeout_s, time.monotonic())

    def recover_or_raise(self, error: OttlaError, patience: RetryPatience) -> None:
        """Drop stale state and pause; raise errors that waiting does not solve."""
        code = code_of(error.code)
        # The caller handles damage: only a second fetch shows whether it is in the log.
        final = not code.retriable or code in _NOT_RETRIED or isinstance(error, TopicRecreated)
        now_s = time.monotonic()
        if final or patience.is_over(now_s):
            named = refusal_named(error, self._security)
            if named is not error:
                raise named from None
            raise error
        left_s = patience.seconds_to_report(now_s)
        if left_s is not None:
            # A complete sentence: a program that did not configure logging prints only the message.
            what = error.message.partition(";")[0]
            _log.warning("%s; it is tried again for up to %.0f s", what, left_s)
        self.close()
        self._view = ClusterView()
        self.failures += 1
        time.sleep(self._backoff.delay_s(patience.failed(), self._chance))


def _only_partition(answer: FetchResponse) -> PartitionData | None:
    """Return the partition's data; None if the broker returned none because of a quota."""
    if answer.error_code:
        raise refused(answer.error_code, "fetch")
    return answer.responses[0].partitions[0] if answer.responses else None


def _nothing_of(topic: str) -> RequestTimedOut:
    return RequestTimedOut(
        f"the broker gives nothing of {topic}; has this client a quota? `ottla quota describe` "
        "shows it"
    )


def _wait_out(answer: FetchResponse) -> float:
    """Wait for the throttle time in the answer; return its seconds."""
    seconds = answer.throttle_time_ms / 1000
    time.sleep(max(_EMPTY_PAUSE_S, seconds))
    return seconds


def _read(topic: str) -> list[Needs]:
    """Return the ACL that reading a topic needs, for errors; READ includes DESCRIBE."""
    return [Needs("read", "topic", topic)]
