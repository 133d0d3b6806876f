"""What commands say of topics, tables and changes."""

import click
import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.cli import options
from ottla.cli.connect import naming_nearest
from ottla.cli.consequences import after_creation, after_growth, away_sentence, size_words
from ottla.cli.output import show, show_one

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
        ({"retention.ms": "-1"}, "Records are kept until somebody deletes them."),
        (
            {"retention.bytes": "1073741824"},
            "Records are deleted after 7 days or once a partition exceeds 1.0 GiB.",
        ),
        ({"cleanup.policy": "compact,delete"}, "every record needs a key. Records are deleted"),
        ({"cleanup.policy": ""}, "Records are kept until somebody deletes them."),
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


def test_size_words() -> None:
    """Sizes are told in the unit that keeps them short."""
    assert [size_words(size) for size in (0, 1023, 1536, 1 << 20, 5 << 40)] == [
        "0 bytes",
        "1,023 bytes",
        "1.5 KiB",
        "1.0 MiB",
        "5.0 TiB",
    ]


def test_table_puts_numbers_right_and_words_left(capsys: pytest.CaptureFixture[str]) -> None:
    """Columns line up; what is missing is a dash; nothing is cut."""
    rows = [
        {"name": "a", "end_offset": 5, "isr": [1, 2], "internal": False},
        {"name": "longer", "end_offset": None, "isr": [], "internal": True},
    ]
    show("table", rows, ["name", "end_offset", "isr", "internal"])
    assert capsys.readouterr().out == (
        "name    end offset  isr   internal\n"
        "a                5  1, 2  no\n"
        "longer           -  -     yes\n"
    )


def test_empty_table_says_so_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A program that reads the table reads nothing, and JSON stays JSON."""
    show("table", [], ["name"], empty="there are no topics")
    assert capsys.readouterr() == ("", "there are no topics\n")
    show("json", [], ["name"], empty="there are no topics")
    assert capsys.readouterr() == ("[]\n", "")


def test_one_answer_is_lines_of_name_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    """Names line up."""
    show_one("table", {"state": "Empty", "end_offset": 3})
    assert capsys.readouterr().out == "state       Empty\nend offset  3\n"


def test_settings_are_split_at_the_first_sign() -> None:
    """A value may hold the sign, or be empty."""
    assert options.parse_settings(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    with pytest.raises(click.BadParameter, match="'a' is not NAME=VALUE"):
        options.parse_settings(["a"])


def test_a_setting_is_not_set_and_unset_at_once() -> None:
    """None stands for the default."""
    assert options.parse_changes(["a=1"], ["b"]) == {"a": "1", "b": None}
    with pytest.raises(click.BadParameter, match="both set and unset"):
        options.parse_changes(["a=1"], ["a"])


def test_nearest_setting_is_proposed_once() -> None:
    """Where the broker proposed it already, or the name is right, nothing is added."""
    error = OttlaError(ErrorCode.INVALID_CONFIG, "Unknown topic config name: retention.m")
    told = naming_nearest(error, ["retention.m"], ["retention.ms", "segment.ms"])
    assert told.message.endswith("retention.m: did you mean retention.ms?")
    said = OttlaError(ErrorCode.INVALID_CONFIG, "Unknown: x; did you mean retention.ms?")
    assert naming_nearest(said, ["retention.m"], ["retention.ms"]).message == said.message
    right = naming_nearest(error, ["retention.ms"], ["retention.ms"])
    assert right.message == error.message
    other = OttlaError(ErrorCode.TOPIC_ALREADY_EXISTS, "there")
    assert naming_nearest(other, ["retention.m"], ["retention.ms"]) is other
