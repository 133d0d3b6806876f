"""What a topic's settings mean, in sentences."""

from ottla.diagnosis.consequences import after_growth, away_sentence, notes

DEFAULTS = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "min.insync.replicas": "1",
}


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
