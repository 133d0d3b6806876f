"""What a load left out stands in its manifest, and older manifests left out nothing."""

import json

import pytest

from ottla.lake.manifest import Manifest, from_bytes, next_manifest, to_bytes
from ottla.lake.plan import Range
from ottla.lake.task import Task, TaskResult, result_from_text, result_to_text
from ottla.lake.telling import skipped_lines
from ottla.ledger.partition import PartitionLedger, Unreadable

SKIPPED = (Unreadable(0, 3, 5, "checksum"), Unreadable(0, 9, 10, "length"))
LEDGER = PartitionLedger(0, 0, 10, loaded=0, control=7, unreadable=3)


def manifest(skipped: tuple[Unreadable, ...] = SKIPPED) -> Manifest:
    return next_manifest(
        None,
        None,
        load_id="a" * 32,
        topic="t",
        topic_id=None,
        cluster_id=None,
        created_ms=1,
        files=[],
        ledgers=[LEDGER],
        skipped=skipped,
    )


def test_skipped_offsets_survive_the_disk() -> None:
    again = from_bytes(to_bytes(manifest()), "x")

    assert again == manifest()
    assert again.skipped == SKIPPED
    assert again.ledgers[0].unreadable == 3


def test_older_manifests_left_out_nothing() -> None:
    """As they were written before there was a term for it."""
    fields = json.loads(to_bytes(manifest()))
    del fields["skipped"]
    del fields["ledgers"][0]["unreadable"]
    again = from_bytes(json.dumps(fields).encode(), "x")

    assert again.skipped == ()
    assert again.ledgers == (PartitionLedger(0, 0, 10, control=7),)


def test_each_unreadable_offset_is_named() -> None:
    with pytest.raises(AssertionError, match="each skip has its offsets"):
        manifest(SKIPPED[:1])


def test_a_task_tells_what_it_skipped() -> None:
    result = TaskResult(LEDGER, None, SKIPPED)

    assert result_from_text(result_to_text(result)) == result


def test_a_task_skips_nothing_unless_it_is_told_to() -> None:
    assert not Task(Range("t", 0, 0, 1), "b", False, "f", "p").skip_unreadable


def test_one_line_for_each_partition() -> None:
    found = [Unreadable(1, 7, 8, "magic"), *SKIPPED]

    assert skipped_lines("t", found) == [
        "t-0: 3 unreadable offsets: 3 to 5 (checksum); 9 to 10 (length)",
        "t-1: 1 unreadable offsets: 7 to 8 (magic)",
    ]


def test_a_line_stays_a_line() -> None:
    many = [Unreadable(0, n, n + 1, "c") for n in range(0, 30, 2)]
    (line,) = skipped_lines("t", many)

    assert line.startswith("t-0: 15 unreadable offsets: 0 to 1 (c); 2 to 3 (c)")
    assert line.endswith("18 to 19 (c); and 5 more")
