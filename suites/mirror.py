"""MirrorMaker 2 between two clusters of the same side: records, settings, offsets of groups."""

import time
from functools import partial

from rig.jars import KAFKA_VERSION
from rig.process import Process
from suites import java, topics
from suites.result import Result
from suites.suite import Side, Suite, timed

_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"
_TOOLS = "org.apache.kafka.tools"
_PATIENCE_S = 300.0
_RECORDS = 3000


def _start(side: Side) -> Process:
    left, right = side.bootstraps
    file = side.folder / "mirror.properties"
    file.write_text(
        "clusters=left,right\n"
        f"left.bootstrap.servers={left}\nright.bootstrap.servers={right}\n"
        "left->right.enabled=true\nright->left.enabled=false\n"
        "left->right.topics=mirrored.*\nleft->right.groups=readers\n"
        "left->right.sync.group.offsets.enabled=true\n"
        "left->right.emit.checkpoints.interval.seconds=2\n"
        "left->right.sync.group.offsets.interval.seconds=2\n"
        "left->right.refresh.topics.interval.seconds=5\n"
        "left->right.refresh.groups.interval.seconds=5\n"
        "left->right.sync.topic.configs.interval.seconds=5\n"
        "left->right.offset.lag.max=10\n"
        "right.exactly.once.source.support=enabled\n"
        "replication.factor=3\n"
        "checkpoints.topic.replication.factor=3\nheartbeats.topic.replication.factor=3\n"
        "offset-syncs.topic.replication.factor=3\noffset.storage.replication.factor=3\n"
        "status.storage.replication.factor=3\nconfig.storage.replication.factor=3\n"
        "offset.flush.interval.ms=1000\n"
    )
    return java.begin(side.folder, "mirror", _MAKER, file, heap="768m")


def _tool(side: Side, name: str, tool: str, *arguments: object) -> str:
    code, printed = java.run(side.folder, name, tool, *arguments)
    if code != 0:
        raise ValueError(f"{tool} ended with {code}: {java.last_lines(printed)}")
    return printed


def _offsets(side: Side) -> str | None:
    """All records of the topic have come to the other cluster, by its end offsets."""
    right = side.bootstraps[1]
    deadline_s = time.monotonic() + _PATIENCE_S
    total, printed = 0, ""
    while time.monotonic() < deadline_s:
        code, printed = java.run(
            side.folder,
            "offsets",
            f"{_TOOLS}.GetOffsetShell",
            *("--bootstrap-server", right, "--topic", "left.mirrored"),
        )
        (side.folder / "offsets.log").unlink()
        ends = [line.split(":") for line in printed.splitlines() if line.startswith("left.")]
        total = sum(int(end[2]) for end in ends)
        # Transactions leave a marker each behind their records.
        if code == 0 and total >= _RECORDS:
            return None
    return f"{total} of {_RECORDS} offsets after {_PATIENCE_S:.0f} s: {java.last_lines(printed)}"


def _read(side: Side) -> str | None:
    """The records are those that were produced, each once."""
    printed = _tool(
        side,
        "read",
        f"{_TOOLS}.consumer.ConsoleConsumer",
        *("--bootstrap-server", side.bootstraps[1], "--topic", "left.mirrored"),
        *("--from-beginning", "--max-messages", _RECORDS, "--timeout-ms", 60_000),
        *("--isolation-level", "read_committed"),
    )
    got = sorted(int(line) for line in printed.splitlines() if line.isdigit())
    return None if got == list(range(_RECORDS)) else f"{len(got)} read, {len(set(got))} different"


def _settings(side: Side) -> str | None:
    """Partitions and settings of the topic have been copied."""
    printed = _tool(
        side,
        "describe",
        f"{_TOOLS}.TopicCommand",
        *("--bootstrap-server", side.bootstraps[1]),
        *("--describe", "--topic", "left.mirrored"),
    )
    if "retention.ms=7200000" in printed and "PartitionCount: 3" in printed:
        return None
    return java.last_lines(printed, 5)


def _group(side: Side) -> str | None:
    """The group's offsets are translated, and committed to the group of the same name."""
    deadline_s = time.monotonic() + _PATIENCE_S
    printed = ""
    while time.monotonic() < deadline_s:
        _, printed = java.run(
            side.folder,
            "group",
            f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
            *("--bootstrap-server", side.bootstraps[1], "--describe"),
            *("--group", "readers", "--offsets"),
        )
        (side.folder / "group.log").unlink()
        if any("left.mirrored" in line for line in printed.splitlines()):
            return None
    return java.last_lines(printed, 6)


def _prepare(side: Side) -> str | None:
    """A topic on the left, with records, and a group that has read them."""
    left = side.bootstraps[0]
    topics.create(left, "mirrored", partitions=3, retention_ms="7200000")
    where = ("--bootstrap-server", left, "--topic", "mirrored")
    _tool(side, "produce", f"{_TOOLS}.VerifiableProducer", *where, "--max-messages", _RECORDS)
    _tool(
        side,
        "consume",
        f"{_TOOLS}.VerifiableConsumer",
        *(*where, "--group-id", "readers", "--max-messages", _RECORDS),
        *("--reset-policy", "earliest"),
    )
    return None


def _run(side: Side) -> list[Result]:
    results = [timed("a topic and a group on the left", lambda: _prepare(side))]
    maker = _start(side)
    try:
        for name, check in (
            ("all records come to the right", _offsets),
            ("each record once, in transactions", _read),
            ("partitions and settings are copied", _settings),
            ("the group's offsets are translated", _group),
        ):
            results.append(timed(name, partial(check, side)))
    finally:
        maker.kill()
    return results


SUITE = Suite(
    name="mirror",
    title="MirrorMaker 2 from one cluster to another, exactly once",
    source=f"Maven: org.apache.kafka:connect-mirror:{KAFKA_VERSION}",
    needs=("java",),
    fetch=java.fetch,
    run=_run,
    clusters=2,
)
