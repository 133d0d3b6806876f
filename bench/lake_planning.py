"""What a load does with a table before and after it reads, by the number of its loads.

python -m bench.lake_planning FOLDER 10 1000 [--format parquet,delta,iceberg]

Medians, sizes in turn, and the last size's as a multiple of the first's. `planning` opens the
table and reads where it stands, `commit` adds one load of four files, `orphans` is the look for
files of loads that never counted.
"""

import argparse
import io
import statistics
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from ottla.lake.model.manifest import DataFile, Manifest, next_manifest
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import open_table
from ottla.lake.tables.table import LakeTable
from ottla.ledger.partition import PartitionLedger

FORMATS = get_args(Format)
PARTITIONS = 4
ROWS = 5


def small_file() -> bytes:
    """A Parquet file of few rows: tables take its statistics, and nothing here reads its rows."""
    rows = {"topic": "t", "partition": 0, "offset": 0, "timestamp": 0, "timestamp_type": 0}
    columns = [pa.array([rows.get(field.name)] * ROWS, field.type) for field in ROW_SCHEMA]
    content = io.BytesIO()
    pq.write_table(pa.table(columns, schema=ROW_SCHEMA), content)
    return content.getvalue()


def next_load(table: LakeTable, content: bytes) -> Manifest:
    """Write the files of the next load, and give the manifest that would commit them."""
    before, digest = table.latest()
    load_id = uuid.uuid4().hex
    files, ledgers = [], []
    for partition in range(PARTITIONS):
        start = before.positions[partition] if before else 0
        version = before.version + 1 if before else 1
        path = f"{table.file_stem(version, load_id, partition, start)}-a.parquet"
        file = table.store.create(path)
        file.write(content)
        file.finish()
        end, size = start + ROWS, len(content)
        files.append(DataFile(path, partition, start, end, ROWS, size, f"{ROWS:032x}", f"{0:064x}"))
        ledgers.append(PartitionLedger(partition, start, end, loaded=ROWS))
    return next_manifest(
        before,
        digest,
        load_id=load_id,
        topic="t",
        topic_id=None,
        cluster_id=None,
        created_ms=1,
        files=files,
        ledgers=ledgers,
    )


def grow(target: Path, kind: Format, loads: int, content: bytes) -> None:
    """Commit loads until the table has so many."""
    table = open_table(str(target), kind)
    newest, _ = table.latest()
    for _ in range(newest.version if newest else 0, loads):
        table.commit(next_load(table, content))


def measure_round(target: Path, kind: Format, content: bytes) -> dict[str, tuple[float, float]]:
    """Seconds of each step of one more load, and seconds of the processor."""
    found: dict[str, tuple[float, float]] = {}

    def timed(step: str, act: Callable[[], Any]) -> Any:
        wall, processor = time.perf_counter(), time.process_time()
        result = act()
        found[step] = (time.perf_counter() - wall, time.process_time() - processor)
        return result

    def plan() -> LakeTable:
        table = open_table(str(target), kind)
        table.latest()
        return table

    table = timed("planning", plan)
    manifest = next_load(table, content)
    timed("commit", lambda: table.commit(manifest))
    timed("orphans", table.remove_orphans)
    return found


def measure(folder: Path, kind: Format, sizes: list[int], rounds: int) -> None:
    """Print the median of each step, sizes in turn."""
    content = small_file()
    targets = {size: (folder / f"{kind}-{size}").absolute() for size in sizes}
    for size, target in targets.items():
        grow(target, kind, size, content)
    steps: dict[str, dict[int, list[tuple[float, float]]]] = {}
    for _ in range(rounds):
        for size, target in targets.items():
            for step, seconds in measure_round(target, kind, content).items():
                steps.setdefault(step, {}).setdefault(size, []).append(seconds)
    for step, found in steps.items():
        shown, middles = [], []
        for size in sizes:
            wall, processor = (
                statistics.median(times) * 1000 for times in zip(*found[size], strict=True)
            )
            middles.append((wall, processor))
            shown.append(f"{size} loads {wall:7.2f} ms ({processor:.2f} CPU)")
        (wall, processor), (wall_last, processor_last) = middles[0], middles[-1]
        times = f"{wall_last / wall:.2f} × ({processor_last / processor:.2f} × CPU)"
        print(f"{kind:<8} {step:<9} {', '.join(shown)}   {times}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.lake_planning", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--format", default=",".join(FORMATS))
    parser.add_argument("--rounds", type=int, default=31)
    arguments = parser.parse_args()
    for kind in FORMATS:
        if kind in arguments.format.split(","):
            measure(arguments.folder, kind, arguments.sizes, arguments.rounds)


if __name__ == "__main__":
    main()
