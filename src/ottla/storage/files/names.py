"""Names of files and folders, as Kafka gives them.

A segment's files share its base offset in 20 digits; a partition's folder is `topic-partition`.
"""

from uuid import UUID

from ottla.base.ids import TopicPartition

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
# Ottla's own: the offsets that compaction removed from the segment.
LEDGER_SUFFIX = ".ottla-ledger"
SEGMENT_SUFFIXES = (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    LEDGER_SUFFIX,
)
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

DELETED_FOLDER_SUFFIX = "-delete"
STRAY_FOLDER_SUFFIX = "-stray"
FUTURE_FOLDER_SUFFIX = "-future"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
# Ottla's own: records the offsets removed before the log's start and after its end.
LEDGER = "ottla-ledger"

_NAME_LENGTH_MAX = 255


def segment_file(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file: `00000000000000000042.log` for (42, ".log")."""
    return f"{base_offset:020d}{suffix}"


def parse_segment_file(name: str) -> tuple[int, str] | None:
    """Return (base offset, suffix) of a segment's file, None for any other name."""
    digits, dot, rest = name.partition(".")
    if len(digits) != 20 or not digits.isascii() or not digits.isdigit() or not dot:
        return None
    return int(digits), "." + rest


def parse_partition_folder(name: str) -> TopicPartition | None:
    """Return the partition that owns the folder `name`, None for any other name."""
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not number.isascii() or not number.isdigit():
        return None
    return TopicPartition(topic, int(number))


def deleted_folder(partition: TopicPartition, unique: UUID) -> str:
    """Name of a partition's folder between its deletion and the removal of its files."""
    return _set_aside(partition, unique, DELETED_FOLDER_SUFFIX)


def stray_folder(partition: TopicPartition, unique: UUID) -> str:
    """Name for the folder of an earlier topic whose name another topic has now; it is kept."""
    return _set_aside(partition, unique, STRAY_FOLDER_SUFFIX)


def future_folder(partition: TopicPartition, unique: UUID) -> str:
    """Name of a folder that a partition's log is copied to, from another directory."""
    return _set_aside(partition, unique, FUTURE_FOLDER_SUFFIX)


def parse_future_folder(name: str) -> TopicPartition | None:
    """Return the partition that is copied to the folder `name`, None for any other name."""
    return _parse_set_aside(name, FUTURE_FOLDER_SUFFIX)


def parse_deleted_folder(name: str) -> TopicPartition | None:
    """Return the partition whose deleted log is in the folder `name`, None for any other name."""
    return _parse_set_aside(name, DELETED_FOLDER_SUFFIX)


def _parse_set_aside(name: str, suffix: str) -> TopicPartition | None:
    if not name.endswith(suffix):
        return None
    partition, dot, unique = name.removesuffix(suffix).rpartition(".")
    return parse_partition_folder(partition) if dot and len(unique) == 32 else None


def _set_aside(partition: TopicPartition, unique: UUID, suffix: str) -> str:
    ending = f".{unique.hex}{suffix}"
    return str(partition)[: _NAME_LENGTH_MAX - len(ending)] + ending


# The files of a cleaned segment, in the order in which they get their final names. Once the last
# one has its name, the other files belong to it.
CLEANED_FILES = (
    TRANSACTION_INDEX_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    LEDGER_SUFFIX,
    LOG_SUFFIX,
)
