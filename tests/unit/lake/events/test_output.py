"""Rows are written apart by event time, with few files open and little in memory."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ottla.lake.check.damaged_files import DamagedFiles
from ottla.lake.check.files import check_file
from ottla.lake.job.bucket_output import BucketOutputs
from ottla.lake.job.output import ParquetOutput
from ottla.lake.model.event_times import Buckets
from ottla.lake.model.layout import RAW
from ottla.lake.model.plan import Range
from ottla.lake.model.row_hash import MODULUS, batch_hash, hash_text
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.store.local import LocalStore

_HOUR = 3_600_000_000


def rows(start: int, count: int, hours: int) -> pa.RecordBatch:
    """Offsets from `start`, each an hour behind the one before, over so many hours."""
    offsets = range(start, start + count)
    columns = {
        "key": [None] * count,
        "value": [b"%0100d" % offset for offset in offsets],
        "headers": [[] for _ in offsets],
        "topic": ["flights"] * count,
        "partition": [3] * count,
        "offset": list(offsets),
        "timestamp": [offset % hours * _HOUR for offset in offsets],
        "timestamp_type": [0] * count,
    }
    arrays = [pa.array(columns[field.name], field.type) for field in ROW_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=ROW_SCHEMA)


def test_five_hundred_hours_need_few_open_files_and_little_memory(tmp_path: Path) -> None:
    """All rows are there once, each in a file of its hour, in order of offset."""
    store = LocalStore(tmp_path)
    (tmp_path / "data").mkdir()

    def begin(bucket: str, number: int) -> ParquetOutput:
        path = f"data/event_hour={bucket}/part-{number}.parquet"
        return ParquetOutput(store, path)

    outputs = BucketOutputs(
        Range("flights", 3, 0, 20_000), "hour", begin, open_max=4, waiting_bytes=6_000_000
    )
    hashed = 0
    for start in range(0, 20_000, 2_000):
        batch = rows(start, 2_000, 500)
        hashed = (hashed + batch_hash(batch)) % MODULUS
        outputs.write(batch, times=batch.column("timestamp"))
    outputs.finish()

    assert outputs.opened_most == 4
    # One more group of rows than may wait: about 4 of them, each counted with what it takes beside.
    assert outputs.waiting_most < 6_000_000 + 10_000
    assert len({file.event for file in outputs.files}) == 500
    assert len(outputs.files) > 500
    assert sum(file.rows for file in outputs.files) == 20_000
    assert hash_text(sum(int(file.hash, 16) for file in outputs.files)) == hash_text(hashed)
    offsets: list[int] = []
    for file in outputs.files:
        buckets = Buckets("timestamp", "hour")
        with DamagedFiles(store) as damaged:
            found = check_file(store, file, "flights", RAW, damaged, buckets)
        assert found.problems == []
        with pq.ParquetFile(tmp_path / file.path) as content:
            offsets += content.read(columns=["offset"]).column(0).to_pylist()
    assert sorted(offsets) == list(range(20_000))


def test_files_of_one_bucket_lie_one_behind_the_other(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    (tmp_path / "data").mkdir()

    def begin(bucket: str, number: int) -> ParquetOutput:
        path = f"data/event_hour={bucket}/part-{number}.parquet"
        return ParquetOutput(store, path, row_group_rows=1)

    outputs = BucketOutputs(Range("flights", 3, 0, 40), "hour", begin, open_max=2)
    for start in range(0, 40, 10):
        batch = rows(start, 10, 5)
        outputs.write(batch, times=batch.column("timestamp"))
    outputs.finish()

    of_first = [(file.start, file.end) for file in outputs.files if file.event == "1970-01-01-00"]
    assert of_first == [(0, 6), (10, 16), (20, 26), (30, 36)]
    assert outputs.opened_most == 2


def test_without_buckets_a_range_is_one_file(tmp_path: Path) -> None:
    """Its offsets are those of the range, whichever of them have rows."""
    store = LocalStore(tmp_path)

    def begin(bucket: str, number: int) -> ParquetOutput:
        assert (bucket, number) == ("", 0)
        return ParquetOutput(store, "part.parquet")

    outputs = BucketOutputs(Range("flights", 3, 0, 100), "none", begin)
    outputs.write(rows(7, 10, 5))
    outputs.finish()
    (file,) = outputs.files
    assert (file.start, file.end, file.rows, file.event) == (0, 100, 10, "")
