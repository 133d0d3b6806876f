"""Tables of real rows, made without a broker, and what can be done to their files."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from ottla.lake.job.output import ParquetOutput
from ottla.lake.model.manifest import DataFile, Manifest, next_manifest, seal, unseal
from ottla.lake.model.row_hash import hash_text
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.tables.own import OwnTable
from ottla.ledger.partition import PartitionLedger

TOPIC = "flights"


def rows(partition: int, start: int, end: int) -> pa.RecordBatch:
    """A row for each offset of [start, end), every third with a header."""
    offsets = range(start, end)
    header = [{"key": "n", "value": b"1"}]
    columns = {
        "key": [b"k%d" % offset for offset in offsets],
        "value": [b"v%d" % offset for offset in offsets],
        "headers": [header if offset % 3 == 0 else [] for offset in offsets],
        "topic": [TOPIC] * len(offsets),
        "partition": [partition] * len(offsets),
        "offset": list(offsets),
        "timestamp": [1_700_000_000_000_000 + 1000 * offset for offset in offsets],
        "timestamp_type": [0] * len(offsets),
    }
    arrays = [pa.array(columns[field.name], field.type) for field in ROW_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=ROW_SCHEMA)


def commit(table: OwnTable, count: int, partitions: int = 2) -> Manifest:
    """Load `count` more rows of each partition, as `load` would do."""
    manifest = written(table, count, uuid.uuid4().hex, partitions)
    table.commit(manifest)
    return manifest


def written(table: OwnTable, count: int, load_id: str, partitions: int = 2) -> Manifest:
    """Write the files of a load and return the manifest that names them."""
    before, before_digest = table.latest()
    version = before.version + 1 if before else 1
    files, ledgers = [], []
    for partition in range(partitions):
        start = before.positions[partition] if before else 0
        path = f"{table.file_stem(version, load_id, partition, start)}-{version:012x}.parquet"
        output = ParquetOutput(table.store, path)
        output.write(rows(partition, start, start + count))
        output.finish()
        files.append(data_file(path, partition, start, start + count, output))
        ledgers.append(PartitionLedger(partition, start, start + count, loaded=count))
    return next_manifest(
        before,
        before_digest,
        load_id=load_id,
        topic=TOPIC,
        topic_id=None,
        cluster_id="c",
        created_ms=1,
        files=files,
        ledgers=ledgers,
    )


def data_file(path: str, partition: int, start: int, end: int, output: ParquetOutput) -> DataFile:
    return DataFile(
        path=path,
        partition=partition,
        start=start,
        end=end,
        rows=output.rows,
        size_bytes=output.size_bytes,
        hash=hash_text(output.hash),
        sha256=output.sha256,
    )


def manifest_path(folder: Path, version: int) -> Path:
    return folder / f"_ottla/manifests/{version:020d}.json"


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change fields of a JSON file and leave its digest as it is."""
    fields = json.loads(path.read_bytes())
    change(fields)
    path.write_bytes(json.dumps(fields, indent=1).encode() + b"\n")


def forge(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change fields of a JSON file and its digest with them."""
    fields, _ = unseal(path.read_bytes())
    change(fields)
    path.write_bytes(seal(fields))
