"""`ottla why compaction`: the cleaners' state for a log, with reasons."""

from dataclasses import asdict
from typing import Any

import click

from ottla.base.ids import TopicPartition
from ottla.cli.common import options
from ottla.cli.common.completion import partitions
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show_one, show_title
from ottla.cli.text.places import place
from ottla.cli.text.settings import SOURCE_WORDS
from ottla.client.admin.compaction import CompactionStanding
from ottla.client.admin.configs import ConfigEntry
from ottla.diagnosis.compaction import CLEANUP_POLICY, compaction_of, evidence, verdict


@click.command()
@click.argument("name", type=place, metavar="TOPIC-P", shell_complete=partitions)
@options.bootstrap
@options.output
def compaction(name: TopicPartition, bootstrap: str, form: str) -> None:
    """Show why a log is compacted, or is not.

    \b
    ottla why compaction planes-0
    ottla why compaction planes-0 -o json
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: compaction_of(admin, name))
    if not found.is_compacted:
        _show_not_compacted(name, found.policy, form)
        return
    if form == "json":
        replicas = [_answer(one) for one in found.standings]
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


def _answer(one: CompactionStanding) -> dict[str, Any]:
    answer = asdict(one)
    del answer["name"]
    return {**answer, "ratio": one.ratio, "verdict": verdict(one)}
