"""Kafka's verifiable clients and its other tools that check what they read."""

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from rig.jars import KAFKA_VERSION
from suites import java, topics
from suites.result import Result
from suites.suite import Side, Suite, timed

_TOOLS = "org.apache.kafka.tools"
_RECORDS = 10_000


def run_tool(side: Side, name: str, tool: str, *arguments: object) -> str:
    """What the tool printed. Raises ValueError where it failed."""
    code, printed = java.run(side.folder, name, f"{_TOOLS}.{tool}", *arguments)
    if code != 0:
        raise ValueError(f"{tool} ended with {code}: {java.last_lines(printed)}")
    return printed


def _events(printed: str, name: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return [event for event in events if event.get("name") == name]


def _produce(side: Side, topic: str, *more: object) -> list[dict[str, Any]]:
    """Every record that VerifiableProducer was promised. Raises ValueError at a failed send."""
    where = ("--bootstrap-server", side.bootstrap, "--topic", topic)
    printed = run_tool(
        side, f"produce-{topic}", "VerifiableProducer", *where, "--max-messages", _RECORDS, *more
    )
    if failed := _events(printed, "producer_send_error"):
        raise ValueError(f"{len(failed)} sends failed, the first: {failed[0]}")
    return _events(printed, "producer_send_success")


def _verifiable(side: Side, protocol: str) -> str | None:
    topic = f"verifiable-{protocol}"
    topics.create(side.bootstrap, topic, partitions=3)
    sent = {(e["partition"], e["offset"]): e["value"] for e in _produce(side, topic)}
    printed = run_tool(
        side,
        f"consume-{topic}",
        "VerifiableConsumer",
        *("--bootstrap-server", side.bootstrap, "--topic", topic, "--group-id", topic),
        *("--max-messages", _RECORDS, "--reset-policy", "earliest", "--verbose"),
        *("--group-protocol", protocol),
    )
    got = [((e["partition"], e["offset"]), e["value"]) for e in _events(printed, "record_data")]
    if len(sent) != _RECORDS or sorted(got) != sorted(sent.items()):
        return f"{len(sent)} acknowledged, {len(got)} consumed, {len(set(got))} different"
    return None


def _share(side: Side, mode: str) -> str | None:
    topic = f"share-{mode}"
    topics.create(side.bootstrap, topic, partitions=3)
    sent = {(e["partition"], e["offset"]) for e in _produce(side, topic)}
    printed = run_tool(
        side,
        f"consume-{topic}",
        "VerifiableShareConsumer",
        *("--bootstrap-server", side.bootstrap, "--topic", topic, "--group-id", topic),
        *("--max-messages", _RECORDS, "--offset-reset-strategy", "earliest", "--verbose"),
        *("--acknowledgement-mode", mode),
    )
    got = {(e["partition"], e["offset"]) for e in _events(printed, "record_data")}
    acknowledged = sum(e["count"] for e in _events(printed, "offsets_acknowledged") if e["success"])
    if got != sent or acknowledged < _RECORDS:
        return f"{len(sent)} produced, {len(got)} delivered, {acknowledged} acknowledged"
    return None


def _copied(side: Side, mode: str) -> str | None:
    """Copied in transactions, some of them aborted: each record stands once in the output."""
    source, target = f"copy-from-{mode}", f"copy-to-{mode}"
    topics.create(side.bootstrap, source, target)
    sent = [e["value"] for e in _produce(side, source)]
    run_tool(
        side,
        f"copy-{mode}",
        "TransactionalMessageCopier",
        *("--broker-list", side.bootstrap, "--input-topic", source, "--input-partition", 0),
        *("--output-topic", target, "--transactional-id", f"copier-{mode}"),
        *("--consumer-group", f"copier-{mode}", "--transaction-size", 250),
        *("--enable-random-aborts", "--use-group-metadata"),
        *(("--group-mode",) if mode == "group" else ()),
    )
    printed = run_tool(
        side,
        f"read-{target}",
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", side.bootstrap, "--topic", target, "--from-beginning"),
        *("--isolation-level", "read_committed", "--max-messages", _RECORDS),
        *("--timeout-ms", 60_000),
    )
    got = [line for line in printed.splitlines() if line.isdigit()]
    if sorted(got) != sorted(sent):
        return f"{len(sent)} produced, {len(got)} copied, {len(set(got))} different"
    return None


def _performance(side: Side, how: str) -> str | None:
    """The measuring tools, for their options: transactions, compression, all of a topic."""
    topic = f"performance-{how}"
    topics.create(side.bootstrap, topic, partitions=3)
    where = ("--bootstrap-server", side.bootstrap, "--topic", topic)
    transactions = ("--transaction-duration-ms", 50) if how == "transactions" else ()
    printed = run_tool(
        side,
        f"produce-{topic}",
        "ProducerPerformance",
        *where,
        *("--num-records", 50_000, "--record-size", 500, "--throughput", -1),
        *("--command-property", "acks=all", "compression.type=zstd"),
        *transactions,
    )
    if "50000 records sent" not in printed:
        return java.last_lines(printed)
    tool = "ShareConsumerPerformance" if how == "share" else "ConsumerPerformance"
    if how == "share":
        _earliest(side, f"group-{topic}")
    printed = run_tool(
        side,
        f"consume-{topic}",
        tool,
        *where,
        *("--num-records", 50_000, "--group", f"group-{topic}", "--timeout", 60_000),
    )
    # The consumer's table has the count in its fifth column, the share consumer's too.
    return None if " 50000," in printed.replace("50000.", "50000,") else java.last_lines(printed)


def _earliest(side: Side, group: str) -> None:
    """Let a share group begin with the oldest record."""
    setting = ConfigEntry(
        "share.auto.offset.reset",
        "earliest",
        incremental_operation=AlterConfigOpType.SET,
    )
    wanted = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=[setting])
    admin = AdminClient({"bootstrap.servers": side.bootstrap, "log_level": 0})
    for future in admin.incremental_alter_configs([wanted]).values():
        future.result(60.0)


def _end_to_end(side: Side) -> str | None:
    topics.create(side.bootstrap, "end-to-end")
    began_s = time.perf_counter()
    printed = run_tool(
        side, "end-to-end", "EndToEndLatency", side.bootstrap, "end-to-end", 500, "all", 100
    )
    elapsed_s = time.perf_counter() - began_s
    return None if "Percentiles" in printed else f"{elapsed_s:.0f} s: {java.last_lines(printed)}"


def _checks(side: Side) -> list[tuple[str, Callable[[], str | None]]]:
    both = "VerifiableProducer, VerifiableConsumer"
    return [
        (f"{both}: classic", partial(_verifiable, side, "classic")),
        (f"{both}: consumer", partial(_verifiable, side, "consumer")),
        *(
            (f"VerifiableShareConsumer: {mode}", partial(_share, side, mode))
            for mode in ("auto", "sync", "async")
        ),
        ("TransactionalMessageCopier: one partition", partial(_copied, side, "assigned")),
        ("TransactionalMessageCopier: in a group", partial(_copied, side, "group")),
        *(
            (f"ProducerPerformance, consumed: {how}", partial(_performance, side, how))
            for how in ("plain", "transactions", "share")
        ),
        ("EndToEndLatency: acks=all", partial(_end_to_end, side)),
    ]


def _run(side: Side) -> list[Result]:
    return [timed(name, check) for name, check in _checks(side)]


SUITE = Suite(
    name="tools",
    title="Kafka's verifiable clients and tools",
    source=f"Maven: org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
    needs=("java",),
    fetch=java.fetch,
    run=_run,
)
