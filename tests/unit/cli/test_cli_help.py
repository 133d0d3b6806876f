"""What the command tells of itself, without a cluster."""

import json

import pytest
from click.testing import CliRunner

from ottla.base.errors import OttlaError
from ottla.cli import cli


def explained(*words: str) -> str:
    """What `ottla config explain` prints. Raises what it raises."""
    result = CliRunner().invoke(cli, ["config", "explain", *words])
    if isinstance(result.exception, OttlaError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_setting_is_explained() -> None:
    """What it does, its default in words, its rule, when it may change, how ours differs."""
    lines = explained("retention.ms").splitlines()
    assert lines == [
        "setting   retention.ms",
        "kind      topic",
        "doc       Age at which closed segments are deleted, in milliseconds; -1 for never.",
        "type      long",
        "default   604800000 (7 days)",
        "rule      [-1,...]",
        "change    while running, for one topic",
        "synonyms  broker's log.retention.ms, broker's log.retention.minutes, "
        "broker's log.retention.hours",
    ]
    policy = json.loads(explained("log.flush.policy", "-o", "json"))
    assert [set(entry) for entry in policy] == [
        {
            *("setting", "kind", "doc", "type", "default", "rule", "change", "synonyms"),
            *("differs", "use"),
        }
    ]
    assert "Kafka has no such setting" in policy[0]["differs"]
    both = json.loads(explained("min.insync.replicas", "-o", "json"))
    assert [entry["kind"] for entry in both] == ["topic", "broker"]
    (former,) = json.loads(explained("zookeeper.connect", "-o", "json"))
    assert former["use"] == "accepted, and changes nothing"
    alike = explained("retention")
    assert "offsets.retention.minutes" in alike
    assert "delete.retention.ms" in alike
    with pytest.raises(OttlaError, match=r"did you mean retention\.ms"):
        explained("retentoin.ms")


def test_every_command_has_an_example_in_its_help() -> None:
    """Help costs no broker, names the options, and shows how it is meant."""
    for words in (
        *(("start",), ("produce",), ("consume",), ("log", "dump")),
        *(("broker", verb) for verb in ("run", "drain")),
        *(("cluster", verb) for verb in ("describe", "health", "controller", "balance")),
        *(("partition", verb) for verb in ("elect", "plan", "reassign", "status", "cancel")),
        ("partition", "unthrottle"),
        *(("why", what) for what in ("isr", "leader", "lso")),
        *(("txn", verb) for verb in ("list", "describe", "abort", "hanging")),
        *(("topic", verb) for verb in ("create", "list", "describe", "alter", "delete")),
        *(("group", verb) for verb in ("list", "describe", "reset", "delete")),
        *(("config", verb) for verb in ("get", "set", "explain")),
        *(("quota", verb) for verb in ("list", "describe", "alter")),
        *(("lake", verb) for verb in ("load", "verify", "files")),
    ):
        shown = CliRunner().invoke(cli, [*words, "--help"]).output
        assert "ottla " + " ".join(words) in shown.split("Options:")[0].partition("\n")[2], words


def test_an_unknown_command_is_answered_with_the_nearest() -> None:
    """Where none is near, all are listed."""
    near = CliRunner().invoke(cli, ["topik"])
    assert near.exit_code == 2
    assert "there is no command 'topik'; did you mean topic?" in near.stderr
    far = CliRunner().invoke(cli, ["zzz"])
    assert (
        "there are start, broker, cluster, topic, partition, produce, consume, group, txn, config"
        in far.stderr
    )
