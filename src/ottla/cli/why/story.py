"""The state of a partition with its decisions, for `why isr` and `why leader`."""

from collections.abc import Sequence
from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.base.quantities import iso
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show_one, show_title
from ottla.cli.topic.condition_list import standing_row
from ottla.client.admin.decisions import DecisionRecord, Story
from ottla.client.admin.partitions import PartitionStanding
from ottla.diagnosis.decisions import story_of
from ottla.metadata.decisions import DecisionKind


def show_story(
    name: TopicPartition, kinds: Sequence[DecisionKind], about: str, bootstrap: str, form: str
) -> None:
    """Ask all brokers for their decisions of these kinds, and show them."""
    found = with_admin(bootstrap, lambda admin: story_of(admin, name, kinds))
    standing, story = found.standing, found.story
    if form == "json":
        show_one("json", _answer(standing, story))
        return
    show_title(_now(standing))
    for record in story.records:
        _show_record(record)
    if not story.records:
        click.echo(
            f"no broker remembers a decision about {about}: the brokers that decided have "
            "restarted since"
        )
    for broker_id, error in story.silent.items():
        click.echo(f"broker {broker_id} did not answer: {error.message}", err=True)


def _now(one: PartitionStanding) -> str:
    leader = "no broker" if one.is_offline else str(one.leader)
    eligible = f"  ELR {_ids(one.elr)}" if one.elr else ""
    return (
        f"{one.name}  led by {leader} in leader epoch {one.leader_epoch}  "
        f"replicas {_ids(one.replicas)}  ISR {_ids(one.isr)}{eligible}  needs {one.min_isr}"
    )


def _show_record(record: DecisionRecord) -> None:
    click.secho(
        f"{iso(record.at_ms)}  {record.kind}, in leader epoch {record.leader_epoch}, by broker "
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
