"""Reads the dead letters in a table's files, and sends the letters of a load to a topic.

Notes in `_ottla/redriven/` record which letters were redriven; see `redriving`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow.parquet as pq

from ottla.base.ids import TopicPartition
from ottla.client import sync
from ottla.lake.model.live import live_letters
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.source.access import Bootstrap, as_brokers
from ottla.lake.store.store import FileStore
from ottla.lake.tables.formats import OWN_FOLDER
from ottla.lake.tables.opening import existing_table
from ottla.lake.tables.table import LakeTable
from ottla.operations.dead_letters import FoundLetter
from ottla.record.dead_letters import DeadLetter, letter_headers

MARKS = f"{OWN_FOLDER}redriven/"
_ROWS_AT_ONCE = 1 << 12


def letters_of_table(
    target: str, store_options: Mapping[str, str] | None = None
) -> list[FoundLetter]:
    """Return all letters of a table, in order of its loads. Raises OttlaError without a table."""
    table = existing_table(target, store_options)
    manifests = list(table.history())
    counting = {file.path for file in live_letters(manifests)}
    # By offset: since a letter was marked, it may have moved to another file.
    partitions = {file.path: file.partition for one in manifests for file in one.dead_letters}
    marked = {(partitions.get(path), offset) for path, offset in _marked(table.store)}
    return [
        _found(one, (file.partition, one["offset"]) in marked, file, manifest, table)
        for manifest in manifests
        for file in manifest.dead_letters
        if file.path in counting
        for one in _rows(table.store, file)
    ]


def _marked(store: FileStore) -> set[tuple[str, int]]:
    notes = [json.loads(store.read(MARKS + name)) for name in store.names(MARKS)]
    return {
        (str(path), int(offset))
        for note in notes
        if note["state"] == "done"
        for path, offset in note["letters"]
    }


def _letters_before(store: FileStore, manifest: Manifest) -> set[tuple[int, int]]:
    """Return the places of letters in replaced files, which the topic has already."""
    return {
        (file.partition, row["offset"])
        for file in manifest.removed_dead_letters
        for row in _rows_there(store, file)
    }


def _rows_there(store: FileStore, file: DataFile) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file; none if the file has expired."""
    with suppress(FileNotFoundError):
        yield from _rows(store, file)


def _rows(store: FileStore, file: DataFile) -> Iterator[dict[str, Any]]:
    with store.open(file.path) as content, pq.ParquetFile(content) as parquet:
        for batch in parquet.iter_batches(batch_size=_ROWS_AT_ONCE):
            # The time may be in a year that Python does not support; its milliseconds are kept too.
            names = [name for name in batch.schema.names if name != "timestamp"]
            yield from batch.select(names).to_pylist()


def _found(
    row: Mapping[str, Any], redriven: bool, file: DataFile, manifest: Manifest, table: LakeTable
) -> FoundLetter:
    letter = DeadLetter(
        row["topic"],
        row["partition"],
        row["offset"],
        table.store.url,
        row["error"],
        row["stage"],
        schema_id=row["schema_id"],
        timestamp_ms=row["timestamp_ms"],
    )
    headers = tuple((one["key"], one["value"]) for one in row["headers"])
    return FoundLetter(
        file.path,
        row["partition"],
        row["offset"],
        manifest.created_ms,
        letter,
        row["key"],
        row["value"],
        headers,
        redriven,
    )


def send_letters(
    target: str, topic: str, bootstrap: Bootstrap, store_options: Mapping[str, str] | None = None
) -> int:
    """Send the table's letters that are not in `topic` yet; return how many. Raises OttlaError.

    The version up to which letters were sent is the committed offset of a group, committed with the
    letters. So if a load is killed before it sends them, the next load does, and no letter is sent
    twice as long as the cluster keeps the group's offset.
    """
    table = existing_table(target, store_options)
    name = hashlib.sha256(f"{table.store.url} {topic}".encode()).hexdigest()[:16]
    group = f"ottla-dead-letters-{name}"
    place = TopicPartition(topic, 0)
    sent = 0
    brokers = as_brokers(bootstrap)
    with (
        sync.Admin(brokers.bootstrap, config=brokers.access.client_config()) as admin,
        sync.Producer(
            brokers.bootstrap,
            client_id="ottla-dead-letters",
            transactional_id=group,
            config=brokers.access.client_config(),
        ) as producer,
    ):
        count = len(admin.topics.describe_all([topic])[0].partitions)
        producer.init_transactions()
        committed = admin.groups.offsets(group).get(place)
        after = committed.offset if committed is not None else 0
        for manifest in table.history():
            if manifest.version <= after or not manifest.dead_letters:
                continue
            with producer.transaction():
                known = _letters_before(table.store, manifest)
                for file in manifest.dead_letters:
                    for row in _rows_there(table.store, file):
                        if (file.partition, row["offset"]) in known:
                            continue
                        one = _found(row, False, file, manifest, table)
                        producer.send(
                            topic,
                            one.value,
                            one.key,
                            partition=one.letter.partition % count,
                            headers=[*one.headers, *letter_headers(one.letter)],
                        )
                        sent += 1
                producer.send_offsets({place: manifest.version}, group)
    return sent
