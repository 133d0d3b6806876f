"""What a load does with a table before and after it reads, by the number of its loads.

python -m bench.lake_planning FOLDER 10 1000
"""

import statistics
import sys
import time
import uuid
from pathlib import Path

from ottla.lake.manifest import DataFile, next_manifest
from ottla.lake.stores.local import LocalStore
from ottla.lake.tables.own import OwnTable
from ottla.ledger.partition import PartitionLedger

PARTITIONS = 4
ROUNDS = 101
ROWS = 5


def grow(table: OwnTable, loads: int) -> None:
    """Commit loads of empty files, which neither planning nor cleaning opens."""
    for _ in range(loads):
        before, digest = table.latest()
        load_id = uuid.uuid4().hex
        files, ledgers = [], []
        for partition in range(PARTITIONS):
            start = before.positions[partition] if before else 0
            version = before.version + 1 if before else 1
            path = f"{table.file_stem(version, load_id, partition, start)}-a.parquet"
            table.store.create(path).finish()
            end = start + ROWS
            files.append(
                DataFile(path, partition, start, end, ROWS, 0, f"{ROWS:032x}", f"{0:064x}")
            )
            ledgers.append(PartitionLedger(partition, start, end, loaded=ROWS))
        manifest = next_manifest(
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
        table.commit(manifest)


def main(folder: Path, sizes: list[int]) -> None:
    """Print the median of each step, sizes in turn."""
    steps: dict[tuple[int, str], list[float]] = {}
    for size in sizes:
        grow(OwnTable.create_or_open(LocalStore((folder / str(size)).absolute())), size)
    for _ in range(ROUNDS):
        for size in sizes:
            began = time.perf_counter()
            table = OwnTable.create_or_open(LocalStore((folder / str(size)).absolute()))
            table.latest()
            planned = time.perf_counter()
            table.remove_orphans()
            steps.setdefault((size, "planning"), []).append(planned - began)
            steps.setdefault((size, "orphans"), []).append(time.perf_counter() - planned)
    for (size, step), seconds in steps.items():
        median, least = statistics.median(seconds) * 1000, min(seconds) * 1000
        print(f"{size:>6} loads  {step:<9} {median:7.2f} ms, least {least:.2f} ms")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(size) for size in sys.argv[2:]])
