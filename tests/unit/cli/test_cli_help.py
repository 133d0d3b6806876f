"""What the command tells of itself, without a cluster."""

import json

import pytest
from click.testing import CliRunner

from ottla.base.errors import OttlaError
from ottla.cli.command import cli


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


def test_help_shows_examples_and_options() -> None:
    """As a person sees it; `test_cli_files` looks for examples in the help of every command."""
    shown = CliRunner().invoke(cli, ["topic", "create", "--help"]).output
    examples, _, options = shown.partition("Options:")
    assert "  ottla topic create flights --partitions 6 --set retention.ms=1d\n" in examples
    assert "--replication-factor" in options


def test_an_unknown_command_is_answered_with_the_nearest() -> None:
    """Where none is near, all are listed."""
    near = CliRunner().invoke(cli, ["topik"])
    assert near.exit_code == 2
    assert "there is no command 'topik'; did you mean topic?" in near.stderr
    far = CliRunner().invoke(cli, ["zzz"])
    assert (
        "there are start, broker, cluster, topic, partition, produce, consume, perf, group, txn, "
        "dlq, config" in far.stderr
    )
