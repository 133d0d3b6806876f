"""`ottla perf`: what is counted is what is in the topic."""

from collections.abc import Callable

from tests.system.cli.ottla_command import Command


def test_what_is_measured_was_sent_and_read(run: Command, make_topic: Callable[..., str]) -> None:
    """Every record of its size, acknowledged; the rest is arithmetic."""
    topic = make_topic(partitions=2)
    words = ("perf", "produce", topic, "-n", "2500", "--size", "1KiB")
    sent = run(*words, "-o", "json").json
    assert (sent["topic"], sent["records"], sent["bytes"]) == (topic, 2500, 2500 * 1024)
    assert 0 < sent["latency_ms_p50"] <= sent["latency_ms_p99"] <= sent["latency_ms_max"]
    assert "records/s" in run(*words, "--acks", "1", "-z", "lz4").out
    read = run("perf", "consume", topic, "-o", "json").json
    assert (read["records"], read["bytes"]) == (5000, 5000 * 1024)
    assert read["latency_ms_p50"] is None
    assert 1 <= run("perf", "consume", topic, "-n", "1", "-o", "json").json["records"] <= 5000
    assert "there is no topic" in run.refused("perf", "consume", "nothing-here")
