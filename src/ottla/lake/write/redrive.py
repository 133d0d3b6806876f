"""Sends the records of a table's dead letters again, exactly once even if killed at any step.

    note the letters → one transaction: their records, and a mark with the note's name → note done

A table's files can't join a transaction of brokers, so the transaction records that its note was
carried out: the mark is a committed offset with metadata, of a group named like the transactional
id, committed with the records (as a sink's is). The next redrive takes the id over, which decides
any open transaction, and reads the mark. The note that the mark names was carried out; any other
unfinished note was not.
"""

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.quantities import counted
from ottla.client.admin import Admin
from ottla.client.connection.coordinator import OffsetAndMetadata
from ottla.client.producer.producer import Producer
from ottla.lake.store.store import FileStore
from ottla.lake.tables.opening import existing_table
from ottla.lake.write.dead_letters import MARKS, letters_of_table
from ottla.operations.dead_letters import FoundLetter, Redriven, send_again

_PORTION = 500
_KIND = "ottla redrive"
# Brokers keep a group's offsets for offsets.retention.minutes, by default seven days.
_MARK_KEPT_MS = 24 * 60 * 60 * 1000

OnStep = Callable[[str], None]
Marks = Mapping[TopicPartition, OffsetAndMetadata]


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
    """Send the records of a table's letters again, as `operations.dead_letters.redrive` does.

    Raises OttlaError, for example if a redrive was killed and the brokers have since forgotten
    whether its letters were sent; with `again` those count as not sent.
    """
    store = existing_table(target, store_options).store
    name = f"ottla-redrive-{hashlib.sha256(store.url.encode()).hexdigest()[:16]}"
    async with Producer(bootstrap, client_id="ottla-redrive", transactional_id=name) as producer:
        # Before the letters are read, so that no other redrive's transaction is committed
        # afterwards.
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
            path = f"{MARKS}{note}.json"
            store.put_if_absent(path, _note("begun", portion))
            on_step("noted")
            async with producer.transaction():
                for one in portion:
                    await send_again(producer, one, to)
                on_step("sent")
                await producer.send_offsets({place: _mark(number, note)}, name)
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
    """Find out which unfinished notes were carried out: no other process is working on one now."""
    notes = {name: json.loads(store.read(MARKS + name)) for name in store.names(MARKS)}
    begun = {name: note for name, note in notes.items() if note["state"] == "begun"}
    done = len(notes) - len(begun)
    committed = {_named(one) for one in marks.values()}
    for name, note in begun.items():
        if name in committed:
            store.replace(MARKS + name, json.dumps({**note, "state": "done"}).encode())
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
        store.remove(MARKS + name)


def _named(mark: OffsetAndMetadata) -> str | None:
    """Return the file of the note that a mark names."""
    try:
        found: Any = json.loads(mark.metadata)
        return f"{found['note']}.json" if found["kind"] == _KIND else None
    except (ValueError, KeyError, TypeError):
        return None


def _is_old(note: Mapping[str, Any]) -> bool:
    return time.time_ns() // 1_000_000 - int(note.get("noted_ms", 0)) > _MARK_KEPT_MS
