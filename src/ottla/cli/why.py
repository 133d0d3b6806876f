"""`ottla why`: explains the state of a partition or group from the brokers' decisions."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.base.quantities import iso, span_words
from ottla.cli.common import options
from ottla.cli.common.completion import groups, partitions
from ottla.cli.common.connect import connected
from ottla.cli.text.output import show, show_one, show_silent, show_title
from ottla.cli.text.places import place
from ottla.cli.text.words import span
from ottla.cli.topic.definition import standing_row
from ottla.cli.txn import description
from ottla.client.admin import Admin
from ottla.client.admin.compaction import CompactionStatus
from ottla.client.admin.configs import ConfigEntry
from ottla.client.admin.decisions import DecisionHistory, DecisionRecord
from ottla.client.admin.logs import RetentionStatus
from ottla.client.admin.partitions import PartitionStatus
from ottla.client.admin.transactions import OpenTransaction
from ottla.diagnosis.clients import failure_words, slow_requests
from ottla.diagnosis.compaction import CLEANUP_POLICY, compaction_of, evidence, verdict
from ottla.diagnosis.decisions import (
    ABOUT_ISR,
    ABOUT_LEADER,
    rebalances_of,
    story_of,
)
from ottla.diagnosis.deletions import deletion_of
from ottla.diagnosis.rebalances import first_cause, rebalance_lines
from ottla.diagnosis.retention import ReaderStanding, RetentionDiagnosis, in_words, retention_of
from ottla.diagnosis.settings import SOURCE_WORDS
from ottla.diagnosis.transactions import stable_offset_of
from ottla.metadata.decisions import DecisionKind
from ottla.wire.messages.decisions import DescribedRebalance, RebalanceCause


@click.group()
def why() -> None:
    """Show the reasons for a partition's or group's state: decisions, evidence, settings.

    Each broker remembers its latest decisions since it started; all brokers are asked.
    """


@why.command()
@click.argument("name", type=place, metavar="TOPIC-P", shell_complete=partitions)
@connected
@options.output
async def compaction(admin: Admin, name: TopicPartition, form: str) -> None:
    """Show why a log is compacted, or is not.

    \b
    ottla why compaction planes-0
    ottla why compaction planes-0 -o json
    """  # noqa: D301
    found = await compaction_of(admin, name)
    if not found.is_compacted:
        _show_not_compacted(name, found.policy, form)
        return
    if form == "json":
        replicas = [_compaction_answer(one) for one in found.standings]
        show_one("json", {"partition": str(name), "replicas": replicas})
        return
    for one in found.standings:
        show_title(f"{name} on broker {one.broker_id}: {verdict(one)}")
        for line in evidence(one):
            click.echo(f"  {line}")


def _show_not_compacted(name: TopicPartition, policy: ConfigEntry, form: str) -> None:
    source = SOURCE_WORDS[policy.source]
    words = f"not compacted: {CLEANUP_POLICY} is {policy.value or 'empty'} (set by: {source})"
    if form == "json":
        show_one("json", {"partition": str(name), "verdict": words, "replicas": []})
        return
    show_title(f"{name}: {words}")
    click.echo(
        f"  to compact it: `ottla config set topic {name.topic} {CLEANUP_POLICY}=compact`; of each "
        "key only the latest record stays then"
    )


def _compaction_answer(one: CompactionStatus) -> dict[str, Any]:
    answer = asdict(one)
    del answer["name"]
    return {**answer, "ratio": one.ratio, "verdict": verdict(one)}


@why.command()
@click.argument("name", type=place, metavar="TOPIC-P", shell_complete=partitions)
@connected
@options.output
async def isr(admin: Admin, name: TopicPartition, form: str) -> None:
    """Show why a partition has its present ISR.

    \b
    ottla why isr flights-0
    ottla why isr flights-0 -o json
    """  # noqa: D301
    await _show_story(admin, name, ABOUT_ISR, "the ISR", form)


@why.command()
@click.argument("name", type=place, metavar="TOPIC-P", shell_complete=partitions)
@connected
@options.output
async def leader(admin: Admin, name: TopicPartition, form: str) -> None:
    """Show why a partition has the leader that it has, or none.

    \b
    ottla why leader flights-0
    ottla why leader flights-0 -o json
    """  # noqa: D301
    await _show_story(admin, name, ABOUT_LEADER, "the leader", form)


@why.command()
@click.argument("name", type=place, metavar="TOPIC-P", shell_complete=partitions)
@connected
@options.output
async def lso(admin: Admin, name: TopicPartition, form: str) -> None:
    """Show what holds back the last stable offset of a partition.

    \b
    ottla why lso flights-0
    ottla why lso flights-0 -o json

    Consumers with read_committed see the records before the first open transaction.
    """  # noqa: D301
    found = await stable_offset_of(admin, name)
    if form == "json":
        show_one(
            "json",
            {
                "partition": str(name),
                "last_stable_offset": found.last_stable_offset,
                "high_watermark": found.high_watermark,
                "open": [_transaction_answer(one) for one in found.opened],
            },
        )
        return
    show_title(
        f"{name}  last stable offset {found.last_stable_offset}  "
        f"high watermark {found.high_watermark}"
    )
    if not found.opened:
        click.echo("no transaction is open here: nothing is held back")
    elif found.held_back > 0:
        click.echo(f"{found.held_back} offsets wait for the first of these transactions to end")
    for one in found.opened:
        _show_transaction(one)


def _transaction_answer(one: OpenTransaction) -> dict[str, object]:
    known = one.transaction
    return {
        "start_offset": one.start_offset,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "last_written": iso(one.last_written_ms),
        "transaction": None if known is None else description(known),
    }


def _show_transaction(one: OpenTransaction) -> None:
    click.secho(
        f"offset {one.start_offset}  producer {one.producer_id} in epoch {one.producer_epoch}, "
        f"last wrote at {iso(one.last_written_ms)}",
        bold=True,
    )
    known = one.transaction
    if known is None:
        click.echo(
            "  no coordinator knows it: it hangs. If its producer is gone, "
            f"`ottla txn abort --partition {one.partition} --start-offset {one.start_offset}` "
            "ends it"
        )
        return
    click.echo(
        f"  {known.transactional_id}  {known.state} since {iso(known.start_ms)}, coordinated by "
        f"broker {known.coordinator_id}"
    )
    if known.state == "Ongoing":
        click.echo(
            f"  it is aborted {span_words(known.timeout_ms)} after its begin "
            "(transaction.timeout.ms of its producer), at "
            f"{iso(known.start_ms + known.timeout_ms)} or shortly after; "
            f"`ottla txn abort {known.transactional_id}` does so now"
        )


_REBALANCE_COLUMNS = ["began", "epoch", "ending", "took_ms", "members", "moved", "stopped", "cause"]


@why.command()
@click.argument("group_id", metavar="GROUP", shell_complete=groups)
@click.option("--all", "is_all", is_flag=True, help="Show every rebalance in detail.")
@connected
@options.output
async def rebalance(admin: Admin, group_id: str, is_all: bool, form: str) -> None:
    """Show why a group rebalanced, and what that cost.

    \b
    ottla why rebalance audit
    ottla why rebalance audit --all
    ottla why rebalance audit -o json

    Each broker remembers the latest rebalances of the groups it coordinated since it started.
    """  # noqa: D301
    group, story = await rebalances_of(admin, group_id)
    rows = [_rebalance_row(broker_id, one) for broker_id, one in story.rebalances]
    if form == "json":
        silent = {str(broker): error.message for broker, error in story.silent.items()}
        show_one(
            "json",
            {"group": group_id, "state": group.state, "rebalances": rows, "silent": silent},
        )
        return
    show_title(
        f"{group_id}  {group.state}  members {len(group.members)}  coordinated by broker "
        f"{group.coordinator_id}"
    )
    show_silent(story.silent)
    if not rows:
        click.echo(
            "no broker remembers a rebalance of it: there was none, or its coordinator has "
            "restarted since"
        )
        return
    show("table", rows, _REBALANCE_COLUMNS)
    for _, one in story.rebalances if is_all else story.rebalances[-1:]:
        _show_rebalance(one)


def _rebalance_row(broker_id: int, one: DescribedRebalance) -> dict[str, Any]:
    return {
        "began": iso(one.began_ms),
        "broker": broker_id,
        "protocol": one.protocol,
        "epoch": _known(one.epoch),
        "ending": one.ending,
        "took_ms": _known(one.duration_ms),
        "waited_for_members_ms": _known(one.formed_ms),
        "waited_until": one.ended_by,
        "members": _known(one.members),
        "partition_count": _known(one.partitions),
        "moved": _known(one.moved),
        "stopped": one.without_members,
        "without_partitions_total_ms": one.without_total_ms,
        "without_partitions": {each.member_id: each.without_ms for each in one.waits},
        "cause": first_cause(one) or "-",
        "causes": [_cause_row(cause) for cause in one.causes],
        "causes_omitted": one.causes_omitted,
    }


def _cause_row(cause: RebalanceCause) -> dict[str, Any]:
    return {
        "time": iso(cause.at_ms),
        "kind": cause.kind,
        "member_id": cause.member_id or None,
        "client_id": cause.client_id or None,
        "host": cause.host.removeprefix("/") or None,
        "instance_id": cause.instance_id,
        "words": cause.words,
        "setting": cause.setting,
        "is_trigger": cause.is_trigger,
    }


def _show_rebalance(one: DescribedRebalance) -> None:
    first, *rest = rebalance_lines(one)
    click.secho(first, bold=True)
    for line in rest:
        click.echo(f"  {line}")


@why.command()
@click.argument("name", type=place, metavar="TOPIC-P", shell_complete=partitions)
@click.option("--offset", type=click.IntRange(min=0), required=True, help="The missing offset.")
@connected
@options.output
async def deleted(admin: Admin, name: TopicPartition, offset: int, form: str) -> None:
    """Show what became of an offset: what removed it, and when.

    \b
    ottla why deleted orders-3 --offset 17
    ottla why deleted orders-3 --offset 17 -o json

    The ledger of the partition's leader knows deletions by retention, requests, compaction and
    unclean elections. `ottla topic ledger` accounts for whole ranges.
    """  # noqa: D301
    found = await deletion_of(admin, name, offset)
    at = None if found.at_ms is None else iso(found.at_ms)
    if form == "json":
        show_one("json", {**asdict(found), "partition": str(name), "at": at})
        return
    show_title(f"{name} offset {offset}: {found.words}{f', at {at}' if at else ''}")
    for line in found.evidence:
        click.echo(f"  {line}")


@why.command()
@click.option("--client-id", required=True, help="The client.id of the slow client.")
@click.option("--since", "since", type=span, default="10m", help="How far to look back: 10m.")
@connected
@options.output
async def slow(admin: Admin, client_id: str, since: int, form: str) -> None:
    """Show why the requests of a client were slow or failed.

    \b
    ottla why slow --client-id billing
    ottla why slow --client-id billing --since 5m -o json

    Brokers note requests that took 100 ms or longer, for about 20 minutes. The time that a fetch
    waits for records does not count, and brokers do not see time in the client or the network.
    """  # noqa: D301
    now_ms = round(time.time() * 1000)
    found = await slow_requests(admin, client_id, now_ms - since)
    if form == "json":
        show_one(
            "json",
            {
                "client_id": client_id,
                "causes": [asdict(one) for one in found.causes],
                "slowest": [asdict(one) for one in found.slowest],
                "failures": [asdict(one) for one in found.failures],
                "silent": {str(key): error.message for key, error in found.delays.silent.items()},
            },
        )
        return
    show_silent(found.delays.silent)
    if not found.causes and not found.failures:
        click.echo(
            f"no broker noted a slow or failed request of {client_id!r} in the last "
            f"{span_words(since)}: its time goes into the client, the network, or waiting for "
            "records"
        )
        return
    rows = [
        {
            "api": one.api,
            "partition": None if one.place is None else str(one.place),
            "requests": one.count,
            "total_ms": one.total_ms,
            "longest_ms": one.longest_ms,
            "cause": one.cause,
        }
        for one in found.causes
    ]
    if rows:
        show("table", rows, ["api", "partition", "requests", "total_ms", "longest_ms", "cause"])
    for failure in found.failures:
        click.secho(failure_words(failure), fg="red")
    for remedy in dict.fromkeys(one.remedy for one in found.causes):
        click.echo(f"what helps: {remedy}")


def _known(number: int) -> int | None:
    return None if number < 0 else number


@why.command()
@click.argument("name", type=place, metavar="TOPIC-P", shell_complete=partitions)
@connected
@options.output
async def retention(admin: Admin, name: TopicPartition, form: str) -> None:
    """Show when records will be deleted, and what delays that.

    \b
    ottla why retention flights-0
    ottla why retention flights-0 -o json

    Readers are the groups named in ottla.retention.hold.groups. If records were deleted before such
    a group had read them, that is shown as a decision.
    """  # noqa: D301
    found = await retention_of(admin, name)
    standing = found.standing
    if form == "json":
        show_one("json", _retention_answer(found))
        return
    show_title(f"{name}  offsets {standing.log_start_offset} to {standing.log_end_offset}")
    for line in _lines(standing):
        click.echo(line)
    rows = [_reader_row(reader) for reader in found.readers]
    if rows:
        click.echo()
        show("table", rows, ["group", "committed", "unread", "loss"])
    for one in found.deleted_unread:
        click.secho(f"{iso(one.at_ms)}  {one.cause}: {one.evidence}", fg="red")


def _lines(standing: RetentionStatus) -> list[str]:
    """Return lines with the retention settings, and their effect on the oldest record."""
    oldest = standing.times_left[0]
    lines = [
        f"cleanup.policy={standing.cleanup_policy}  retention.ms={standing.retention_ms}  "
        f"retention.bytes={standing.retention_bytes}",
        f"{standing.size_bytes:,} bytes, growing by {standing.bytes_per_second:,.0f} a second",
    ]
    if oldest.left_ms is None:
        lines.append("nothing deletes its records as the settings are")
    else:
        lines.append(f"the oldest record may go {in_words(oldest.left_ms)}, by {oldest.setting}")
    if standing.readers:
        lines.append(
            f"waits for readers: up to {standing.hold_max_bytes:,} bytes "
            f"(ottla.retention.hold.max.bytes) and {span_words(standing.hold_max_ms)} "
            "(ottla.retention.hold.max.ms) more"
        )
    if standing.held_bytes:
        lines.append(
            f"{standing.held_bytes:,} bytes are kept for them alone, "
            f"since {iso(standing.held_since_ms)}"
        )
    return lines


def _reader_row(reader: ReaderStanding) -> dict[str, Any]:
    return {
        "group": reader.group_id,
        "committed": reader.committed,
        "unread": reader.unread,
        "time_left_ms": reader.time_left_ms,
        "loss": None if reader.time_left_ms is None else in_words(reader.time_left_ms),
    }


def _retention_answer(found: RetentionDiagnosis) -> dict[str, Any]:
    standing = found.standing
    oldest = standing.times_left[0]
    return {
        "partition": str(standing.name),
        "leader": standing.broker_id,
        "log_start_offset": standing.log_start_offset,
        "log_end_offset": standing.log_end_offset,
        "size_bytes": standing.size_bytes,
        "bytes_per_second": standing.bytes_per_second,
        "cleanup_policy": standing.cleanup_policy,
        "retention_ms": standing.retention_ms,
        "retention_bytes": standing.retention_bytes,
        "hold_max_bytes": standing.hold_max_bytes,
        "hold_max_ms": standing.hold_max_ms,
        "oldest_left_ms": oldest.left_ms,
        "setting": oldest.setting,
        "held_bytes": standing.held_bytes,
        "held_since_ms": standing.held_since_ms,
        "readers": [_reader_row(reader) for reader in found.readers],
        "deleted_unread": [
            {"at": iso(one.at_ms), "cause": one.cause, "evidence": one.evidence}
            for one in found.deleted_unread
        ],
    }


async def _show_story(
    admin: Admin, name: TopicPartition, kinds: Sequence[DecisionKind], about: str, form: str
) -> None:
    """Ask all brokers for their decisions of these kinds, and print them."""
    standing, story = await story_of(admin, name, kinds)
    if form == "json":
        show_one("json", _story_answer(standing, story))
        return
    show_title(_standing_line(standing))
    for record in story.records:
        _show_decision(record)
    if not story.records:
        click.echo(
            f"no broker remembers a decision about {about}: the brokers that decided have "
            "restarted since"
        )
    for broker_id, error in story.silent.items():
        click.echo(f"broker {broker_id} did not answer: {error.message}", err=True)


def _standing_line(one: PartitionStatus) -> str:
    leader = "no broker" if one.is_offline else str(one.leader)
    eligible = f"  ELR {_ids(one.elr)}" if one.elr else ""
    return (
        f"{one.name}  led by {leader} in leader epoch {one.leader_epoch}  "
        f"replicas {_ids(one.replicas)}  ISR {_ids(one.isr)}{eligible}  needs {one.min_isr}"
    )


def _show_decision(record: DecisionRecord) -> None:
    click.secho(
        f"{iso(record.at_ms)}  {record.kind}, in leader epoch {record.leader_epoch}, by broker "
        f"{record.broker_id}",
        bold=True,
    )
    click.echo(f"  because     {record.cause}")
    click.echo(f"  seen        {record.evidence}")
    if record.setting is not None:
        click.echo(f"  decided by  {record.setting}")


def _story_answer(one: PartitionStatus, story: DecisionHistory) -> dict[str, Any]:
    return {
        **standing_row(one),
        "decisions": [
            {
                "time": iso(record.at_ms),
                "kind": record.kind,
                "broker": record.broker_id,
                "leader_epoch": record.leader_epoch,
                "cause": record.cause,
                "evidence": record.evidence,
                "setting": record.setting,
            }
            for record in story.records
        ],
        "silent": {str(broker): error.message for broker, error in story.silent.items()},
    }


def _ids(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids)) or "-"
