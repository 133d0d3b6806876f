"""Reads the dead letters in a table's files, and redrives their records.

A redrive sends the records of letters again, exactly once even if it is killed at any step:

    write a note of the letters → one transaction: the records, and a mark that names the note
    → set the note to done

A table's files can't be part of a Kafka transaction, so the transaction itself records which note
it carried out. This mark is a committed offset with metadata, in a group named like the
transactional id, and is committed with the records. The next redrive initializes the transactional
id, which ends any open transaction, and reads the mark. The note that the mark names was carried
out; any other unfinished note was not. Notes are in `_ottla/redriven/`.
"""

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow.parquet as pq

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted
from ottla.client import OffsetAndMetadata
from ottla.client.admin import Admin
from ottla.client.producer.producer import Producer
from ottla.lake.model.live import live_letters
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.store.store import FileStore
from ottla.lake.tables.formats import OWN_FOLDER
from ottla.lake.tables.opening import existing_table
from ottla.lake.tables.table import LakeTable
from ottla.operations.dead_letters import FoundLetter, Redriven, send_again
from ottla.record.dead_letters import DeadLetter

_MARKS = f"{OWN_FOLDER}redriven/"
_ROWS_AT_ONCE = 1 << 12
_PORTION = 500
_KIND = "ottla redrive"
# Brokers keep a group's offsets for offsets.retention.minutes, by default seven days.
_MARK_KEPT_MS = 24 * 60 * 60 * 1000

OnStep = Callable[[str], None]
Marks = Mapping[TopicPartition, OffsetAndMetadata]


def letters_of_table(
    target: str, store_options: Mapping[str, str] | None = None
) -> list[FoundLetter]:
    """Return all dead letters of a table, in the order of its loads.

    Raises OttlaError if there is no table.
    """
    table = existing_table(target, store_options)
    manifests = list(table.history())
    counting = {file.path for file in live_letters(manifests)}
    # Compare by offset: the letter may have moved to another file since it was redriven.
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
    notes = [json.loads(store.read(_MARKS + name)) for name in store.names(_MARKS)]
    return {
        (str(path), int(offset))
        for note in notes
        if note["state"] == "done"
        for path, offset in note["letters"]
    }


def _rows(store: FileStore, file: DataFile) -> Iterator[dict[str, Any]]:
    with store.open(file.path) as content, pq.ParquetFile(content) as parquet:
        for batch in parquet.iter_batches(batch_size=_ROWS_AT_ONCE):
            # Python does not support all years of a timestamp, so read only its milliseconds.
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


async def redrive_table(
    bootstrap: str,
    target: str,
    chosen: Callable[[FoundLetter], bool],
    *,
    to: str | None = None,
    again: bool = False,
    store_options: Mapping[str, str] | None = None,
    on_step: OnStep = lambda _step: None,
) -> Redriven:
    """Send a table's `chosen` dead letters again, as `operations.dead_letters.redrive` does.

    Letters that were redriven before are left out unless `again` is set. Raises OttlaError, for
    example if a redrive was killed and its mark has expired, so that it is unknown whether its
    letters were sent. With `again` such letters are sent.
    """
    store = existing_table(target, store_options).store
    name = f"ottla-redrive-{hashlib.sha256(store.url.encode()).hexdigest()[:16]}"
    async with Producer(bootstrap, client_id="ottla-redrive", transactional_id=name) as producer:
        # Initialize the id before reading letters, so that no other redrive commits afterwards.
        await producer.init_transactions()
        async with Admin(bootstrap) as admin:
            marks = await admin.groups.offsets(name)
        _settle(store, marks, forget=again)
        on_step("settled")
        place = max(marks, key=lambda one: marks[one].offset, default=None)
        number = marks[place].offset if place is not None else 0
        letters = [one for one in letters_of_table(target, store_options) if chosen(one)]
        due = [one for one in letters if again or not one.redriven]
        for start in range(0, len(due), _PORTION):
            portion = due[start : start + _PORTION]
            place = place or TopicPartition(to or portion[0].letter.topic, 0)
            number += 1
            note = uuid.uuid4().hex
            path = f"{_MARKS}{note}.json"
            store.put_if_absent(path, _note("begun", portion))
            on_step("noted")
            async with producer.transaction():
                for one in portion:
                    await send_again(producer, one, to)
                on_step("sent")
                await producer.send_offsets_to_transaction({place: _mark(number, note)}, name)
                on_step("marked")
            on_step("committed")
            store.replace(path, _note("done", portion))
            on_step("done")
    return Redriven(len(due), len(letters) - len(due), 0)


def _note(state: str, portion: Sequence[FoundLetter]) -> bytes:
    letters = [[one.source, one.offset] for one in portion]
    noted_ms = time.time_ns() // 1_000_000
    return json.dumps({"state": state, "letters": letters, "noted_ms": noted_ms}).encode()


def _mark(number: int, note: str) -> OffsetAndMetadata:
    return OffsetAndMetadata(number, json.dumps({"kind": _KIND, "note": note}))


def _settle(store: FileStore, marks: Marks, *, forget: bool) -> None:
    """Set unfinished notes that were carried out to done, and remove the other unfinished notes.

    No other process is working on a note now. Raises OttlaError if the marks have expired, unless
    `forget` is set.
    """
    notes = {name: json.loads(store.read(_MARKS + name)) for name in store.names(_MARKS)}
    begun = {name: note for name, note in notes.items() if note["state"] == "begun"}
    done = len(notes) - len(begun)
    committed = {_named(one) for one in marks.values()}
    for name, note in begun.items():
        if name in committed:
            store.replace(_MARKS + name, json.dumps({**note, "state": "done"}).encode())
            continue
        if not marks and not forget and (done or _is_old(note)):
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"whether {counted(len(note['letters']), 'dead letter')} of {store.url} were sent "
                "by a redrive that was killed is not known any more: the brokers have forgotten "
                "its mark (offsets.retention.minutes), or this is another cluster. Look for "
                "records with the header __dlq.redriven.from in their topic; `--again` sends them "
                "in any case",
            )
        store.remove(_MARKS + name)


def _named(mark: OffsetAndMetadata) -> str | None:
    """Return the file name of the note that a mark names; None if it is not a redrive's mark."""
    try:
        found: Any = json.loads(mark.metadata)
        return f"{found['note']}.json" if found["kind"] == _KIND else None
    except (ValueError, KeyError, TypeError):
        return None


def _is_old(note: Mapping[str, Any]) -> bool:
    return time.time_ns() // 1_000_000 - int(note.get("noted_ms", 0)) > _MARK_KEPT_MS
