"""What stands in a manifest is what was written, or an error that names the manifest."""

import pickle
from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.lake.job.load_task import LoadTask
from ottla.lake.job.task import TaskResult
from ottla.lake.model.manifest import Manifest, from_bytes, next_manifest, seal, to_bytes, unseal
from ottla.lake.model.plan import Range
from ottla.lake.source.ledgers import skipped_lines
from ottla.lake.store.local import LocalStore
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
    again, _ = from_bytes(to_bytes(manifest()), "x")

    assert again == manifest()
    assert again.skipped == SKIPPED
    assert again.ledgers[0].unreadable == 3


@pytest.mark.parametrize(("number", "remedy"), [(1, "new folder"), (4, "use a later version")])
def test_another_format_is_refused_with_what_to_do(number: int, remedy: str) -> None:
    """An earlier one has no digest, a later one means what is not known here."""
    content = to_bytes(manifest()).replace(b'"format": 3', b'"format": %d' % number)

    with pytest.raises(OttlaError, match=f"x is of format {number}.*{remedy}"):
        from_bytes(content, "x")


def test_no_bit_of_a_manifest_can_be_flipped_unseen() -> None:
    """Each of them: the manifest is refused by its name."""
    content = to_bytes(manifest())
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(OttlaError, match="the manifest x "):
            from_bytes(bytes(flipped), "x")


@pytest.mark.parametrize(
    "change",
    [
        {"rows": "10"},
        {"hash": "no hash"},
        {"positions": {"0": "x"}},
        {"positions": None},
        {"files": [{"path": "data/x"}]},
        {"ledgers": [{"partition": 0, "start": None, "end": 10}]},
        {"skipped": [[]]},
        {"more": 1},
    ],
)
def test_fields_of_other_types_are_an_error_of_the_manifest(change: dict[str, object]) -> None:
    """Under a right digest, too, as a program with a mistake would write it."""
    fields, _ = unseal(to_bytes(manifest()))

    with pytest.raises(OttlaError, match="the manifest x can't be read"):
        from_bytes(seal({**fields, **change}), "x")


def test_each_unreadable_offset_is_named() -> None:
    with pytest.raises(AssertionError, match="each skip has its offsets"):
        manifest(SKIPPED[:1])


def test_a_task_tells_what_it_skipped() -> None:
    result = TaskResult(LEDGER, (), SKIPPED)

    assert pickle.loads(pickle.dumps(result)) == result


def test_a_task_skips_nothing_unless_it_is_told_to() -> None:
    assert not LoadTask(
        Range("t", 0, 0, 1), "b", False, LocalStore(Path("/f")), "p"
    ).skip_unreadable


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
