"""What a topic's settings mean, in sentences."""

import pytest

from ottla.diagnosis.consequences import after_creation, after_growth, away_sentence, notes

DEFAULTS = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "min.insync.replicas": "1",
}


def test_one_copy_is_told_what_it_risks() -> None:
    """A topic on one broker is as available as that broker, and as safe as its disk."""
    assert after_creation(1, 1, DEFAULTS) == (
        "1 partition, one copy of each: while the broker that has it is down it can be neither "
        "read nor written, and what that disk loses is lost. Records are deleted after 7 days."
    )


def test_copies_and_in_sync_replicas_are_told_as_losses_survived() -> None:
    """min.insync.replicas decides both what may be down and what may be lost."""
    told = after_creation(6, 3, {**DEFAULTS, "min.insync.replicas": "2"})
    assert told.startswith(
        "6 partitions, 3 copies of each: writable with 1 broker down; a record acknowledged with "
        "acks=all survives the loss of 1 disk."
    )
    all_needed = after_creation(6, 2, {**DEFAULTS, "min.insync.replicas": "2"})
    assert "writable only while all of them are in sync" in all_needed
    careless = after_creation(6, 3, DEFAULTS)
    assert "may stand on one disk alone (min.insync.replicas=1)" in careless


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"cleanup.policy": "compact"}, "Of each key the last record is kept"),
        ({"retention.ms": "-1"}, "Records are kept until DeleteRecords or the topic's deletion."),
        (
            {"retention.bytes": "1073741824"},
            "Records are deleted after 7 days or once a partition exceeds 1.0 GiB.",
        ),
        ({"cleanup.policy": "compact,delete"}, "every record needs a key. Records are deleted"),
        ({"cleanup.policy": ""}, "Records are kept until DeleteRecords or the topic's deletion."),
    ],
)
def test_retention_is_told(settings: dict[str, str], sentence: str) -> None:
    """When records go away is part of what a topic promises."""
    assert sentence in after_creation(1, 1, {**DEFAULTS, **settings})


def test_replicas_on_brokers_that_are_down_are_named() -> None:
    """A new topic is not whole while they are away; with too few left it refuses acks=all."""
    assert away_sentence([3], 2, {"min.insync.replicas": "2"}) == (
        "broker 3 is down: replicas placed there are not in sync, and catch up when it is back."
    )
    assert away_sentence([2, 3], 1, {"min.insync.replicas": "2"}) == (
        "brokers 2, 3 are down: replicas placed there are not in sync, and catch up when they are "
        "back. Until then acks=all is refused where fewer than 2 replicas are alive "
        "(min.insync.replicas)."
    )


def test_growth_says_that_keys_move() -> None:
    """More partitions break the order of a key's records; the same number changes nothing."""
    assert "Keys are placed anew" in after_growth("flights", 3, 4)
    assert after_growth("flights", 3, 3) == "flights has 3 partitions already."


def test_notes_are_of_settings_in_effect_and_of_those_that_were_changed() -> None:
    """A segment that is older than retention is odd, whichever of the two was changed."""
    settings: dict[str, str | None] = {
        **DEFAULTS,
        "retention.ms": "1000",
        "segment.ms": "5000",
        "segment.bytes": "1073741824",
    }
    (note,) = notes(1, settings)
    assert note.startswith("segment.ms=5000 is above retention.ms=1000: only whole segments are")
    assert notes(1, settings, {"segment.ms"}) == [note]
    assert notes(1, settings, {"retention.ms"}) == [note]
    assert notes(1, settings, {"segment.bytes"}) == []
    assert notes(1, {**settings, "segment.ms": "1000"}) == []


def test_no_note_is_made_of_settings_that_the_broker_did_not_send() -> None:
    """An older broker may not know one of those that are compared."""
    assert notes(1, {"retention.ms": "1000", "segment.ms": "5000"}) == []
