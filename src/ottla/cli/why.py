"""`ottla why`: the decisions that made a partition or a group what it is, from their brokers."""

from collections.abc import Sequence
from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli import options
from ottla.cli.compact import compaction
from ottla.cli.connect import with_admin
from ottla.cli.loss import retention
from ottla.cli.moment import iso
from ottla.cli.output import show_one, show_title
from ottla.cli.places import place
from ottla.cli.rebalance import rebalance
from ottla.cli.stable import lso
from ottla.cli.standing import standing_row
from ottla.client.admin import Admin
from ottla.client.admin.decisions import DecisionRecord, Story
from ottla.client.admin.partitions import PartitionStanding
from ottla.metadata.decisions import DecisionKind

# An election changes the ISR, too: who is dead leaves it.
_ABOUT_ISR = (
    DecisionKind.CREATED,
    DecisionKind.ISR_SHRUNK,
    DecisionKind.ISR_EXPANDED,
    DecisionKind.ISR_REFUSED,
    DecisionKind.FENCED,
    DecisionKind.TRUNCATED,
    DecisionKind.RESTARTED,
    DecisionKind.ELECTED,
    DecisionKind.NO_LEADER,
)
_ABOUT_LEADER = (
    DecisionKind.CREATED,
    DecisionKind.ELECTED,
    DecisionKind.NO_LEADER,
    DecisionKind.RESIGNED,
)


@click.group()
def why() -> None:
    """Tell why a partition or group is as it is: what was decided, on what evidence, by what.

    Each broker remembers the latest decisions it took since it started; all are asked.
    """


@why.command()
@click.argument("name", type=place, metavar="TOPIC-P")
@options.bootstrap
@options.output
def isr(name: TopicPartition, bootstrap: str, form: str) -> None:
    """Tell why the in-sync replicas of a partition are those they are.

    \b
    ottla why isr flights-0
    ottla why isr flights-0 -o json
    """  # noqa: D301
    _tell(name, _ABOUT_ISR, "the ISR", bootstrap, form)


@why.command()
@click.argument("name", type=place, metavar="TOPIC-P")
@options.bootstrap
@options.output
def leader(name: TopicPartition, bootstrap: str, form: str) -> None:
    """Tell why a partition is led by whom it is, or by nobody.

    \b
    ottla why leader flights-0
    ottla why leader flights-0 -o json
    """  # noqa: D301
    _tell(name, _ABOUT_LEADER, "the leader", bootstrap, form)


why.add_command(compaction)
why.add_command(lso)
why.add_command(retention)
why.add_command(rebalance)


def _tell(
    name: TopicPartition, kinds: Sequence[DecisionKind], about: str, bootstrap: str, form: str
) -> None:
    async def work(admin: Admin) -> tuple[PartitionStanding, Story]:
        standings = {one.name: one for one in await admin.partitions.standings([name.topic])}
        if name not in standings:
            raise OttlaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"topic {name.topic!r} has partitions 0 to {len(standings) - 1}, not "
                f"{name.partition}",
            )
        return standings[name], await admin.decisions.about(name, kinds)

    standing, story = with_admin(bootstrap, work)
    if form == "json":
        show_one("json", _answer(standing, story))
        return
    show_title(_now(standing))
    for record in story.records:
        _tell_record(record)
    if not story.records:
        click.echo(
            f"no broker remembers a decision about {about}: the brokers that decided have "
            "restarted since"
        )
    for broker_id, error in story.silent.items():
        click.echo(f"broker {broker_id} told nothing: {error.message}", err=True)


def _now(one: PartitionStanding) -> str:
    leader = "nobody" if one.is_offline else str(one.leader)
    eligible = f"  ELR {_ids(one.elr)}" if one.elr else ""
    return (
        f"{one.name}  led by {leader} in term {one.leader_epoch}  replicas {_ids(one.replicas)}  "
        f"ISR {_ids(one.isr)}{eligible}  needs {one.min_isr}"
    )


def _tell_record(record: DecisionRecord) -> None:
    click.secho(
        f"{iso(record.at_ms)}  {record.kind}, in term {record.leader_epoch}, by broker "
        f"{record.broker_id}",
        bold=True,
    )
    click.echo(f"  because     {record.cause}")
    click.echo(f"  seen        {record.evidence}")
    if record.setting is not None:
        click.echo(f"  decided by  {record.setting}")


def _answer(one: PartitionStanding, story: Story) -> dict[str, Any]:
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
