"""Kafka's LogCompactionTester: the last value of every key is compared with what was written."""

from functools import partial

from rig.jars import KAFKA_VERSION
from suites import java
from suites.result import Result
from suites.suite import Side, Suite, timed
from suites.tools import run_tool


def _compacted(side: Side, codec: str) -> str | None:
    """The tester passes also where nothing was compacted when it read; here that is a failure."""
    printed = run_tool(
        side,
        f"compaction-{codec}",
        "LogCompactionTester",
        *("--bootstrap-server", side.bootstrap, "--messages", 300_000, "--duplicates", 10),
        *("--percent-deletes", 10, "--topics", 1, "--sleep", 20, "--compression-type", codec),
    )
    if "(0.0% reduction)" in printed:
        return "nothing was compacted within 20 s"
    return None if "Data verification is completed" in printed else java.last_lines(printed)


def _run(side: Side) -> list[Result]:
    return [timed(codec, partial(_compacted, side, codec)) for codec in ("none", "lz4")]


SUITE = Suite(
    name="compaction",
    title="Kafka's LogCompactionTester",
    source=f"Maven: org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
    needs=("java",),
    fetch=java.fetch,
    run=_run,
    # So that its topics have closed segments, and are compacted soon.
    settings={
        "log.cleaner.backoff.ms": "500",
        "log.cleaner.min.cleanable.ratio": "0.01",
        "log.segment.bytes": "1048576",
    },
)
