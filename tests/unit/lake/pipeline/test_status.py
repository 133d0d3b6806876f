"""How a table stands, from its manifests and the topic's ends."""

from dataclasses import replace
from pathlib import Path

from ottla.lake.edges.status import commits, first_time_ms, lag_s, on_record, table_status
from ottla.lake.store.local import LocalStore
from ottla.lake.tables.own import OwnTable
from ottla.ledger.partition import Unreadable
from ottla.record.builder import LOG_APPEND_TIME, BatchBuilder
from tests.unit.lake.tables import commit, written


def table(folder: Path) -> OwnTable:
    return OwnTable(LocalStore(folder)).writable()


def test_sums_are_those_of_the_files_that_count(tmp_path: Path) -> None:
    """Files without a manifest are orphans."""
    own = table(tmp_path)
    manifests = [commit(own, 30), commit(own, 20)]
    stray = written(own, 5, "f" * 32, partitions=1).files[0].path
    present = [file.path for one in manifests for file in one.files] + [stray]
    found = table_status("/lake", "parquet", manifests, present, None, {}, 10)

    assert (found.rows, found.files, found.loads, found.commits) == (100, 4, 2, 2)
    assert found.size_bytes == sum(f.size_bytes for one in manifests for f in one.files)
    assert found.orphans == (stray,)
    assert (found.lag_offsets, found.lag_s) == (None, None)


def test_lag_is_what_the_topic_has_beyond_the_positions(tmp_path: Path) -> None:
    """Also of partitions that the table has nothing of yet."""
    manifests = [commit(table(tmp_path), 30)]
    found = table_status(
        "/lake", "parquet", manifests, [], {0: 30, 1: 45, 2: 7}, {1: 1_000, 2: 4_000}, 6_000
    )

    assert [(p.partition, p.lag_offsets, p.lag_s) for p in found.partitions] == [
        (0, 0, None),
        (1, 15, 5.0),
        (2, 7, 2.0),
    ]
    assert (found.lag_offsets, found.lag_s) == (22, 5.0)


def test_table_that_is_up_to_date_has_no_lag(tmp_path: Path) -> None:
    manifests = [commit(table(tmp_path), 30)]
    found = table_status("/lake", "parquet", manifests, [], {0: 30, 1: 30}, {}, 6_000)
    assert (found.lag_offsets, found.lag_s) == (0, 0.0)


def test_empty_table_is_told(tmp_path: Path) -> None:
    """One whose first load never counted."""
    found = table_status("/lake", "delta", [], ["data/x.parquet"], {0: 3}, {}, 1)
    assert (found.rows, found.topic, found.orphans) == (0, None, ("data/x.parquet",))


def test_commits_tell_what_is_on_record(tmp_path: Path) -> None:
    """All that an operator, or the topic, made of a load."""
    one = replace(
        commit(table(tmp_path), 30),
        accepted_loss={1: 20},
        overridden=("the manifest 3: wrong sums; built on because: restored",),
        skipped=(Unreadable(0, 5, 9, "bad checksum"),),
    )
    assert on_record(one) == [
        "20 offsets of partition 1 lost, which was accepted",
        "overridden: the manifest 3: wrong sums; built on because: restored",
        "4 offsets left out as unreadable",
    ]
    (line,) = commits([one])
    assert (line["version"], line["kind"], line["rows"], line["files"]) == (1, "load", 60, 2)
    assert line["time"] == "1970-01-01T00:00:00.001Z"


def batch(base_offset: int, *times_ms: int, **kind: int) -> bytes:
    builder = BatchBuilder(0, base_offset=base_offset, **kind)
    for time_ms in times_ms:
        builder.append(time_ms, None, b"v", [])
    return bytes(builder.build())


def test_first_record_behind_the_position_says_how_old_the_rest_is() -> None:
    """By the header of its batch, without reading records."""
    buffer = batch(0, 100, 200) + batch(2, 5_000, 6_000)
    assert first_time_ms(buffer, 0) == 100
    assert first_time_ms(buffer, 2) == 5_000
    # In the middle of a batch: its latest time, so that no lag is overstated.
    assert first_time_ms(buffer, 3) == 6_000
    assert first_time_ms(buffer, 4) is None
    assert first_time_ms(b"", 0) is None


def test_a_batch_without_a_time_says_nothing() -> None:
    """Producers may leave timestamps out."""
    assert first_time_ms(batch(0, -1), 0) is None


def test_append_time_is_the_time() -> None:
    """Then the broker's clock counts, which a batch has as its latest time."""
    buffer = batch(0, 100, 9_000, timestamp_type=LOG_APPEND_TIME)
    assert first_time_ms(buffer, 0) == 9_000


def test_clock_ahead_of_ours_is_no_negative_lag() -> None:
    assert lag_s(2_000, 1_000) == 0.0
    assert lag_s(None, 1_000) is None
