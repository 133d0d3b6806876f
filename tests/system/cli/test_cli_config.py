"""`ottla config`: what is set, who set it, what it does."""

from collections.abc import Callable

from tests.system.cli.ottla_command import Command

MakeTopic = Callable[..., str]


def test_settings_are_shown_with_their_sources(run: Command, make_topic: MakeTopic) -> None:
    """All, or those named, or those that somebody set."""
    topic = make_topic(segment_ms="60000")
    lines = [line.split() for line in run("config", "get", "topic", topic).lines]
    assert lines[0] == ["setting", "value", "source"]
    assert ["segment.ms", "60000", "topic"] in lines
    assert ["cleanup.policy", "delete", "default"] in lines
    assert [line[0] for line in lines[1:]] == sorted(line[0] for line in lines[1:])
    changed = run("config", "get", "topic", topic, "--changed").lines
    assert [line.split() for line in changed[1:]] == [["segment.ms", "60000", "topic"]]
    one = run("config", "get", "topic", topic, "segment.ms", "-o", "json").json
    assert one == [
        {
            "setting": "segment.ms",
            "value": "60000",
            "source": "topic",
            "read_only": False,
            "synonyms": [{"setting": "segment.ms", "value": "60000", "source": "topic"}],
        }
    ]
    broker = run("config", "get", "broker", "0", "--changed", "-o", "json").json
    assert ("offsets.topic.num.partitions", "broker-file") in [
        (row["setting"], row["source"]) for row in broker
    ]


def test_a_change_shows_old_and_new_and_holds_at_once(run: Command, make_topic: MakeTopic) -> None:
    """Of one topic, one broker, all brokers, one group; unset returns to the default."""
    topic = make_topic()
    changed = run("config", "set", "topic", topic, "retention.ms=5", "-o", "json").json
    assert changed == [{"setting": "retention.ms", "old": "604800000", "new": "5"}]
    back = run("config", "set", "topic", topic, "--unset", "retention.ms").lines
    assert [line.split() for line in back] == [
        ["setting", "old", "new"],
        ["retention.ms", "5", "604800000"],
    ]
    run("config", "set", "broker", "all", "log.cleaner.threads=2")
    (row,) = run("config", "get", "broker", "0", "log.cleaner.threads", "-o", "json").json
    assert (row["value"], row["source"]) == ("2", "cluster-dynamic")
    run("config", "set", "broker", "0", "log.cleaner.threads=3")
    (row,) = run("config", "get", "broker", "0", "log.cleaner.threads", "-o", "json").json
    assert (row["value"], row["source"]) == ("3", "broker-dynamic")
    run("config", "set", "broker", "0", "-u", "log.cleaner.threads")
    run("config", "set", "broker", "all", "-u", "log.cleaner.threads")
    run("config", "set", "group", "readers", "consumer.session.timeout.ms=50000")
    (row,) = run("config", "get", "group", "readers", "--changed", "-o", "json").json
    assert (row["value"], row["source"]) == ("50000", "group")


def test_a_change_that_makes_settings_odd_is_noted(run: Command, make_topic: MakeTopic) -> None:
    """As where the topic is created or described; on standard error, so that JSON stays JSON."""
    topic = make_topic(retention_ms="60000", segment_ms="60000")
    odd = run("config", "set", "topic", topic, "segment.ms=3600000", "-o", "json")
    assert odd.json == [{"setting": "segment.ms", "old": "60000", "new": "3600000"}]
    assert odd.error.startswith(
        "Note: segment.ms=3600000 is above retention.ms=60000: only whole segments are"
    )
    assert run("config", "set", "topic", topic, "max.message.bytes=1000").error == ""
    assert run("topic", "alter", topic, "-s", "segment.ms=1h").error == odd.error
    assert run("config", "set", "topic", topic, "segment.ms=1m").error == ""


def test_a_setting_is_explained_without_a_broker() -> None:
    """Explaining needs nobody to answer."""
    nowhere = Command("localhost:1")
    assert nowhere("config", "explain", "retention.ms").lines[0] == "setting   retention.ms"
    assert "did you mean retention.ms" in nowhere.refused("config", "explain", "retentoin.ms")


def test_wrong_words_about_settings_are_told_with_the_right_ones(
    run: Command, make_topic: MakeTopic
) -> None:
    """Unknown names are answered with the nearest, wrong values with the rule."""
    topic = make_topic()
    assert "did you mean retention.ms" in run.refused(
        "config", "get", "topic", topic, "retention.s"
    )
    assert "did you mean retention.ms" in run.refused(
        *("config", "set", "topic", topic, "retention.m=1")
    )
    assert "choose one of" in run.refused("config", "set", "topic", topic, "compression.type=rar")
    assert "there are 0 (and `all`" in run.refused("config", "get", "broker", "9")
    told = run.refused("config", "set", "broker", "0", "num.partitions=3")
    assert "restart the broker" in told
    assert "is not NAME=VALUE" in run.misused("config", "set", "topic", topic, "x")
    assert "nothing to change" in run.misused("config", "set", "topic", topic)
    assert "both set and unset" in run.misused(*("config", "set", "topic", topic, "a=1", "-u", "a"))
    assert f"did you mean {topic}" in run.refused("config", "get", "topic", topic[1:])


def test_values_take_units_wherever_a_setting_is_typed(run: Command, name: str) -> None:
    """The broker gets Kafka's plain numbers."""
    run("topic", "create", name, "--set", "retention.ms=1d", "--set", "segment.bytes=64Mi")
    changed = run("config", "set", "topic", name, "retention.ms=36h", "-o", "json").json
    assert changed == [{"setting": "retention.ms", "old": "86400000", "new": "129600000"}]
    (row,) = run("config", "get", "topic", name, "segment.bytes", "-o", "json").json
    assert row["value"] == "67108864"
    run("topic", "alter", name, "--set", "retention.ms=2h")
    (row,) = run("config", "get", "topic", name, "retention.ms", "-o", "json").json
    assert row["value"] == "7200000"
    said = run.refused("config", "set", "topic", name, "retention.ms=1parsec")
    assert "or a span such as 500ms, 10m or 7d" in said


def test_every_setting_can_be_listed_without_a_broker() -> None:
    """`config explain` alone shows all, with what each is for."""
    rows = Command("localhost:1")("config", "explain", "-o", "json").json
    listed = {(row["kind"], row["setting"]) for row in rows}
    assert {
        ("topic", "retention.ms"),
        ("broker", "log.flush.policy"),
        ("group", "share.session.timeout.ms"),
    } <= listed
    assert all(row["doc"] for row in rows)


def test_an_unknown_setting_of_a_broker_is_answered_with_the_nearest(run: Command) -> None:
    """For one broker and for all; the message says whose settings they are."""
    one = run.refused("config", "set", "broker", "0", "log.retention.mss=1")
    assert "the settings of broker '0'" in one
    assert "did you mean log.retention.ms" in one
    every = run.refused("config", "set", "broker", "all", "log.retention.mss=1")
    assert "the settings of all brokers" in every
