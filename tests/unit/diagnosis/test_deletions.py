"""What became of one offset, in words."""

from dataclasses import replace

import pytest

from ottla.client.common.offset_account import CompactedBy, DeletedBy, DeletionEvidence, LostBy
from ottla.diagnosis.deletions import explained
from ottla.ledger.history import StartCause

from .test_ledger import account

DAY = 86_400_000
NOTHING = replace(account(), data=0)


@pytest.mark.parametrize("term", ["data", "control", "aborted", "undecided", "unexplained"])
def test_an_offset_that_nothing_removed_is_what_the_ledger_says(term: str) -> None:
    """Without a time."""
    found = explained(replace(NOTHING, **{term: 1}))
    assert (found.fate, found.at_ms, found.evidence) == (term, None, ())


def test_a_record_that_its_timestamp_expired_says_how_long_it_was_here() -> None:
    """With the setting, and the remedy."""
    found = explained(
        replace(
            NOTHING,
            deleted=1,
            deleted_by=(DeletedBy(0, 9, {StartCause.RETENTION_TIME: 9}, 1, 101 * DAY),),
            evidence=(DeletionEvidence(0, 9, 101 * DAY, "retention.ms=1", 90 * DAY, 100 * DAY),),
        )
    )
    assert (found.fate, found.at_ms) == ("deleted", 101 * DAY)
    assert found.evidence == (
        "deleted with offsets 0 to 9, by retention.ms",
        "decided by retention.ms=1",
        "the newest record of its segment, offsets 0 to 9, has the timestamp "
        "1970-04-01T00:00:00.000Z and arrived before 1970-04-11T00:00:00.000Z",
        "so it was kept for only 1 day, because its timestamp was already 10 days old: mend the "
        "producer's timestamps, or count from arrival with ottla.retention.by=append",
    )


def test_a_request_names_its_principal_and_a_record_of_its_time_no_clock() -> None:
    """A timestamp is only to blame if it is older than the record's life here."""
    deleted = (DeletedBy(0, 9, {StartCause.DELETE_RECORDS: 9}, 1, 2),)
    asked = (DeletionEvidence(0, 9, 2, "User:alice", -1, -1),)
    found = explained(replace(NOTHING, deleted=1, deleted_by=deleted, evidence=asked))
    assert found.evidence[-1] == "User:alice asked for it (DeleteRecords)"
    usual = (DeletionEvidence(0, 9, 8 * DAY, "retention.ms=1", DAY, DAY + 5),)
    found = explained(replace(NOTHING, deleted=1, deleted_by=deleted, evidence=usual))
    assert not any("was kept for only" in line for line in found.evidence)


def test_compaction_and_elections_are_named() -> None:
    """The pass, and the epoch."""
    found = explained(replace(NOTHING, compacted=1, compacted_by=(CompactedBy(4, 4, 60_000, 1),)))
    assert (found.fate, found.at_ms) == ("compacted", 60_000)
    assert found.evidence[0].startswith("removed by pass 4 of the cleaner")
    found = explained(replace(NOTHING, lost=1, lost_by=(LostBy(0, 3, 6, 90_000),)))
    assert (found.fate, found.evidence) == ("lost", ("lost: election of epoch 6, 0 to 3",))
