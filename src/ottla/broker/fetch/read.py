"""Reads for a fetch request: locates the slices of the partitions' logs for the answer.

No records are read from disk here. A slice is located through the index, and its bytes go from the
page cache to the socket when the connection sends them; only a few bytes are read at once, if they
are cached. Only records below the high watermark (for read_committed: below the last stable offset)
are visible (P15).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.broker.fetch.sessions import PartitionKey, WantedPartition
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.request import RequestContext
from ottla.network.output import read_warm
from ottla.storage.disk.errors import storage_error
from ottla.storage.log.log import Slice
from ottla.wire.api import ApiKey
from ottla.wire.messages.fetch import AbortedTransaction, EpochEndOffset, PartitionData
from ottla.wire.parts import FileRegion

_NO_EPOCH = -1
# A slice of at most this size is read at once if it is in the page cache. Otherwise its file gets
# another descriptor until the answer is sent, which takes two more system calls.
_SMALL_BYTES = 1024
# The most such descriptors in one answer; a process has few more than its logs need.
FILE_REGIONS_MAX = 1000


@dataclass(slots=True)
class Read:
    """The result of one read of all partitions. `answers` are in the requested order."""

    answers: list[tuple[PartitionKey, PartitionData]]
    # The partitions that were read without an error, so that the fetch can wait for them.
    partitions: list[Partition]
    size_bytes: int
    # Whether an error or a diverging epoch must be answered at once, regardless of `min_bytes`.
    urgent: bool
    # The partition of each answer; None if the answer is an error.
    readable: list[Partition | None] = field(default_factory=list)
    # The requested offset of each of `partitions`.
    offsets: dict[Partition, int] = field(default_factory=dict)
    # Why partitions were not read.
    failures: list[tuple[PartitionKey, OttlaError]] = field(default_factory=list)
    # How many slices will be read from their files when the answer is sent.
    file_regions: int = 0

    def count(self) -> None:
        """Count this read as the answer to a fetch of each partition."""
        for partition, (_, answer) in zip(self.readable, self.answers, strict=True):
            if partition is not None:
                traffic = partition.traffic
                traffic.fetches += 1
                traffic.fetched_bytes += len(answer.records or b"")

    def add_denied(self, denied: Iterable[tuple[PartitionKey, PartitionData]]) -> None:
        """Add answers for partitions whose topics the client may not read."""
        for answer in denied:
            self.answers.append(answer)
            self.readable.append(None)
            error = OttlaError(ErrorCode(answer[1].error_code), "no ACL lets the client READ it")
            self.failures.append((answer[0], error))
        self.urgent = True

    def note_use(self, request: RequestContext, partitions: Partitions) -> None:
        """Count what the client fetches from each topic, and note the failures.

        Also calls `Partitions.on_sent` for each partition with records.
        """
        if (on_sent := partitions.on_sent) is not None:
            for (_, answer), partition in zip(self.answers, self.readable, strict=True):
                if partition is not None and answer.records:
                    offset = self.offsets[partition]
                    on_sent(
                        request.connection, request.client_id, partition, offset, answer.records
                    )
        use = request.use
        if use is None:
            return
        sizes = (
            (partition.topic, len(answer.records or b""))
            for (_, answer), partition in zip(self.answers, self.readable, strict=True)
            if partition is not None
        )
        use.count_fetch(request.client_id, sizes, self.size_bytes)
        for key, error in self.failures:
            topic = partitions.topic_name(key.topic) if isinstance(key.topic, UUID) else key.topic
            name = TopicPartition(topic or str(key.topic), key.partition)
            use.note_failure(request.client_id, ApiKey.FETCH, error.code, name, error.message)


def read_all(
    partitions: Partitions,
    wanted: Iterable[tuple[PartitionKey, WantedPartition]],
    max_bytes: int,
    *,
    committed: bool,
    from_followers: bool,
) -> Read:
    """Locate up to `max_bytes` of whole batches over all partitions, but at least one batch.

    `from_followers` means that a follower may answer, too (KIP-392).
    """
    found = Read([], [], 0, urgent=False)
    for key, what in wanted:
        readable: Partition | None = None
        partition: Partition | None = None
        try:
            partition = _resolve(partitions, key)
            if not from_followers or partition.follower is None:
                partition.check_led()
            answer, size = _read_one(
                partition, key.partition, what, max_bytes - found.size_bytes, committed, found
            )
            readable = partition
        except OttlaError as error:
            answer, size = failed(key.partition, error.code), 0
            found.failures.append((key, error))
            found.urgent = True
            if partition is not None:
                partition.traffic.fetch_failures += 1
        found.answers.append((key, answer))
        found.readable.append(readable)
        found.size_bytes += size
    return found


def failed(index: int, code: ErrorCode) -> PartitionData:
    """Return the answer for a partition that cannot be read."""
    return PartitionData(partition_index=index, error_code=code, high_watermark=-1, records=b"")


def _resolve(partitions: Partitions, key: PartitionKey) -> Partition:
    if isinstance(key.topic, UUID):
        return partitions.get_by_id(key.topic, key.partition)
    return partitions.get(key.topic, key.partition)


# Hot: once per partition of a fetch.
def _read_one(
    partition: Partition,
    index: int,
    what: WantedPartition,
    budget: int,
    committed: bool,
    found: Read,
) -> tuple[PartitionData, int]:
    partition.check_readable()
    partition.check_leader_epoch(what.current_leader_epoch)
    log = partition.log
    high_watermark = partition.high_watermark
    last_stable_offset = partition.last_stable_offset
    answer = PartitionData(
        partition_index=index,
        high_watermark=high_watermark,
        last_stable_offset=last_stable_offset,
        log_start_offset=log.log_start_offset,
        records=b"",
    )
    if what.last_fetched_epoch != _NO_EPOCH:
        diverging = _divergence(partition, what)
        if diverging is not None:
            answer.diverging_epoch = diverging
            found.urgent = True
            return answer, 0
    found.partitions.append(partition)
    offset = found.offsets[partition] = what.fetch_offset
    follower = partition.follower
    if follower is not None:
        code = follower.check_read(offset)
    else:
        assert partition.leader is not None, "checked by check_led"
        code = partition.leader.term.check_read(offset)
    if code is not ErrorCode.NONE:
        raise OttlaError(
            code,
            f"{partition.topic_partition} cannot be read at {offset} here: its log holds"
            f" {log.log_start_offset} to {log.log_end_offset}",
        )
    end = last_stable_offset if committed else high_watermark
    nothing_yet = found.size_bytes == 0
    size = min(what.max_bytes, budget)
    is_full = (size <= 0 and not nothing_yet) or found.file_regions >= FILE_REGIONS_MAX
    if offset >= end or is_full:
        return answer, 0
    located = log.read(offset, max(size, 0), max_offset=end, min_one_batch=nothing_yet)
    if located is None or located.size == 0:
        return answer, 0
    answer.records = part = as_one_of_many(located)
    found.file_regions += part.__class__ is FileRegion
    if committed:
        answer.aborted_transactions = [
            AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in log.segments.aborted_transactions(offset, end)
        ]
    return answer, located.size


def as_part(located: Slice) -> FileRegion | bytes:
    """Convert a slice of a log to a part of an answer, without reading a slice of a file.

    Raises StorageError.
    """
    descriptor = located.file.fileno()
    if descriptor is None:
        try:
            return located.file.pread(located.size, located.position)
        except OSError as error:
            raise storage_error(error, located.file.path, "read") from error
    return FileRegion(descriptor, located.position, located.size)


def as_one_of_many(located: Slice) -> FileRegion | bytes:
    """Convert one of perhaps thousands of slices; read it if it is small and in the page cache.

    Raises StorageError.
    """
    part = as_part(located)
    if isinstance(part, FileRegion) and part.size <= _SMALL_BYTES:
        content = bytearray(part.size)
        if read_warm(part.fd, part.position, memoryview(content)) == part.size:
            return bytes(content)
    return part


def _divergence(partition: Partition, what: WantedPartition) -> EpochEndOffset | None:
    """Return the diverging epoch if the follower's log differs from this one (KIP-595)."""
    epoch, end_offset = partition.log.end_offset_for_epoch(what.last_fetched_epoch)
    if epoch == _NO_EPOCH or end_offset < 0:
        raise OttlaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition.topic_partition} knows no leader epoch {what.last_fetched_epoch}",
        )
    if epoch < what.last_fetched_epoch or end_offset < what.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None
