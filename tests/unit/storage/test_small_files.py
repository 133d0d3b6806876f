"""Laws of the small files: Kafka's text, replaced as a whole, refused when damaged."""

from random import Random
from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.storage.directory import meta_properties
from ottla.storage.directory.meta_properties import MetaProperties
from ottla.storage.disk.filesystem import write_atomically
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.files import checkpoint, names, partition_metadata
from ottla.storage.index.leader_epochs import LeaderEpochs

IDENTITY = UUID("01234567-89ab-cdef-fedc-ba9876543210")


def test_offset_checkpoint_has_kafkas_text() -> None:
    """Version 0, the number of lines, then topic, partition and offset (P19)."""
    offsets = {TopicPartition("b", 1): 42, TopicPartition("a", 0): 7}
    assert checkpoint.encode_offsets(offsets) == b"0\n2\na 0 7\nb 1 42\n"
    assert checkpoint.decode_offsets(b"0\n2\na 0 7\nb 1 42\n") == offsets


@pytest.mark.parametrize(
    "text", [b"", b"0\n", b"1\n0\n", b"0\n2\na 0 7\n", b"0\n1\na 0\n", b"0\nx\n"]
)
def test_damaged_offset_checkpoint_is_refused(text: bytes) -> None:
    """Half a checkpoint is none."""
    with pytest.raises(ValueError):  # noqa: PT011  # The sort matters, not its words.
        checkpoint.decode_offsets(text)


def test_leader_epoch_checkpoint_has_kafkas_text() -> None:
    """Version 0, the number of lines, then epoch and start offset (P19)."""
    epochs = LeaderEpochs([(0, 0), (3, 150)])
    assert epochs.encode() == b"0\n2\n0 0\n3 150\n"
    assert LeaderEpochs.decode(epochs.encode()).entries == [(0, 0), (3, 150)]


@pytest.mark.parametrize("text", [b"", b"0\n2\n0 0\n", b"0\n2\n3 0\n2 5\n", b"0\n2\n1 5\n2 5\n"])
def test_damaged_leader_epoch_checkpoint_is_refused(text: bytes) -> None:
    """Lines must be complete and both columns must rise."""
    with pytest.raises(ValueError):  # noqa: PT011  # The sort matters, not its words.
        LeaderEpochs.decode(text)


def test_later_knowledge_replaces_epochs_that_contradict_it() -> None:
    """An epoch that begins at or below an older one's start was never followed by records."""
    epochs = LeaderEpochs([(1, 10), (2, 20), (4, 30)])
    epochs.assign(4, 35)
    assert epochs.entries == [(1, 10), (2, 20), (4, 30)]
    epochs.assign(5, 20)
    assert epochs.entries == [(1, 10), (5, 20)]


def test_epoch_of_an_offset() -> None:
    """The term whose range holds it; -1 before the first."""
    epochs = LeaderEpochs([(1, 10), (4, 30)])
    assert [epochs.epoch_of(offset) for offset in (9, 10, 29, 30, 99)] == [-1, 1, 1, 4, 4]


@pytest.mark.parametrize("seed", range(30))
def test_replaced_file_is_old_or_new_after_a_power_cut(seed: int) -> None:
    """Never empty, never half."""
    filesystem = MemoryFileSystem()
    filesystem.mkdir("/data")
    filesystem.fsync_directory("/")
    write_atomically(filesystem, "/data/file", b"old")
    steps = 0

    def stop(operation: str, _: str) -> OSError | None:
        nonlocal steps
        steps += 1
        return OSError("stopped") if steps > seed % 8 else None

    filesystem.fault = stop
    try:
        write_atomically(filesystem, "/data/file", b"new")
        expected = {b"new"}
    except OSError:
        expected = {b"old", b"new"}
    filesystem.crash(Random(seed))
    assert filesystem.read_bytes("/data/file") in expected


def test_partition_metadata_has_kafkas_text() -> None:
    """The topic id is 22 characters of URL-safe base 64."""
    text = b"version: 0\ntopic_id: ASNFZ4mrze_-3LqYdlQyEA"
    assert partition_metadata.encode(IDENTITY) == text
    assert partition_metadata.decode(text) == IDENTITY


def test_meta_properties_have_kafkas_text() -> None:
    """Version 1 with node and directory id; Kafka's own comments are read over."""
    properties = MetaProperties("cluster", 3, IDENTITY)
    assert meta_properties.encode(properties) == (
        b"#\nversion=1\ncluster.id=cluster\nnode.id=3\ndirectory.id=ASNFZ4mrze_-3LqYdlQyEA\n"
    )
    text = (
        b"#\n#Thu Jan 01 00:00:00 UTC 2026\ncluster.id=cluster\n"
        b"directory.id=ASNFZ4mrze_-3LqYdlQyEA\nnode.id=3\nversion=1\n"
    )
    assert meta_properties.decode(text) == properties


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code", "words"),
    [
        ("other", 1, ErrorCode.INCONSISTENT_CLUSTER_ID, "belongs to cluster mine, not other"),
        ("mine", 2, ErrorCode.INVALID_CONFIG, "belongs to broker 1, not 2"),
    ],
)
def test_directory_of_another_is_refused(
    cluster_id: str, node_id: int, code: ErrorCode, words: str
) -> None:
    """A data directory that was swapped or copied is not written to."""
    filesystem = MemoryFileSystem()
    filesystem.mkdir("/data")
    claimed = meta_properties.claim(filesystem, "/data", "mine", 1, IDENTITY)
    assert meta_properties.claim(filesystem, "/data", "mine", 1, UUID(int=9)) == claimed
    with pytest.raises(OttlaError, match=words) as caught:
        meta_properties.claim(filesystem, "/data", cluster_id, node_id, IDENTITY)
    assert caught.value.code == code


def test_names_of_segments_and_folders_are_kafkas() -> None:
    """Twenty digits; the partition stands behind the last dash."""
    assert names.segment_file(42, ".timeindex") == "00000000000000000042.timeindex"
    assert names.parse_segment_file("00000000000000000042.timeindex") == (42, ".timeindex")
    assert names.parse_segment_file("leader-epoch-checkpoint") is None
    assert names.parse_partition_folder("a-b-7") == TopicPartition("a-b", 7)
    for name in ("a", "-1", "a-", "a-1.0123-delete", "a-x"):
        assert names.parse_partition_folder(name) is None
    assert names.deleted_folder(TopicPartition("a", 1), IDENTITY) == (
        "a-1.0123456789abcdeffedcba9876543210-delete"
    )
    assert len(names.deleted_folder(TopicPartition("a" * 249, 1), IDENTITY)) == 255
