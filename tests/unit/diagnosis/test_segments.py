"""Batches of segment files, and what lies between them."""

from pathlib import Path

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.diagnosis.segments import NoBatch, SegmentBatch, batches_in, segments
from ottla.record.builder import BatchBuilder


def batch(offset: int) -> bytes:
    builder = BatchBuilder(base_offset=offset)
    builder.append(0, b"key", b"value")
    return builder.build()


def test_segments_come_in_the_order_of_their_offsets(tmp_path: Path) -> None:
    """Of a folder all `.log` files and no others; a file is itself."""
    for name in ("00000000000000000007.log", "00000000000000000000.log", "leader-epoch-checkpoint"):
        (tmp_path / name).touch()
    assert [path.name for path in segments(tmp_path)] == [
        "00000000000000000000.log",
        "00000000000000000007.log",
    ]
    assert segments(tmp_path / "leader-epoch-checkpoint") == [tmp_path / "leader-epoch-checkpoint"]


def test_a_partition_without_records_is_not_said_to_be_absent(tmp_path: Path) -> None:
    """Its folder is made by its first record: only the cluster knows whether it exists."""
    (tmp_path / "meta.properties").touch()
    with pytest.raises(OttlaError) as refused:
        segments(tmp_path / "flights-0")
    assert refused.value.code is ErrorCode.LOG_DIR_NOT_FOUND
    assert refused.value.message == (
        f"{tmp_path} has no files of flights-0: this broker has no replica of it, or one that is "
        "empty, for a partition's folder is made by its first record; `ottla topic describe "
        "flights` shows replicas and offsets"
    )


@pytest.mark.parametrize("name", ["flights-0", "flights"])
def test_elsewhere_a_path_that_is_not_there_is_said_to_be_wrong(tmp_path: Path, name: str) -> None:
    """Outside of a broker's data there is no telling what was meant."""
    with pytest.raises(OttlaError) as refused:
        segments(tmp_path / name)
    assert refused.value.message == (
        f"there is no file or folder {tmp_path / name}; give the folder of a partition, such as "
        "ottla-data/flights-0"
    )


def test_a_folder_without_segments_is_said_to_be_one(tmp_path: Path) -> None:
    """Such as the broker's own data folder."""
    with pytest.raises(OttlaError, match=r"holds no \.log files; give the folder of a partition"):
        segments(tmp_path)


def test_an_empty_segment_has_no_batches(tmp_path: Path) -> None:
    """A partition whose records were all deleted has one."""
    (tmp_path / "00000000000000000000.log").touch()
    assert list(batches_in(tmp_path / "00000000000000000000.log")) == []


def test_bytes_between_and_behind_batches_are_found_as_such(tmp_path: Path) -> None:
    """Those behind the last batch are a torn end; those before one are damage."""
    whole = batch(0)
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(whole + b"\xff" * 70 + batch(1) + batch(2)[:-5])
    first, damage, second, torn = batches_in(file)
    assert isinstance(first, SegmentBatch)
    assert (first.position, first.header.base_offset, first.fault) == (0, 0, None)
    assert isinstance(damage, NoBatch)
    assert (damage.position, damage.size, damage.is_end) == (len(whole), 70, False)
    assert isinstance(second, SegmentBatch)
    assert second.header.base_offset == 1
    assert isinstance(torn, NoBatch)
    assert (torn.size, torn.is_end) == (len(whole) - 5, True)


def test_a_batch_whose_records_were_changed_has_a_fault(tmp_path: Path) -> None:
    """Its header can be read, and so the next batch."""
    raw = bytearray(batch(0) + batch(1))
    raw[61] ^= 1
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(raw)
    bad, good = batches_in(file)
    assert isinstance(bad, SegmentBatch)
    assert isinstance(good, SegmentBatch)
    assert bad.fault is not None
    assert "checksum" in bad.fault or "crc" in bad.fault.lower()
    assert good.fault is None
