"""`ottla cluster health`: what is wrong with a cluster, why, and what helps."""

from typing import Any

import click

from ottla.cli.cluster.cleaners import cleaner_line, cleaner_row
from ottla.cli.cluster.numbers import numbers_sentence
from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show_one
from ottla.cli.text.places import few
from ottla.diagnosis import cluster
from ottla.diagnosis.cluster import ClusterHealth
from ottla.diagnosis.findings import Finding


@click.command()
@options.bootstrap
@options.output
@click.pass_context
def health(context: click.Context, bootstrap: str, form: str) -> None:
    """Show what is wrong with the cluster, why, and what helps. The exit code is 1 if anything is.

    \b
    ottla cluster health
    ottla cluster health -o json

    Under-replicated: a replica is not in sync. Offline: there is no leader. Under min ISR: acks=all
    is refused. At min ISR: the next loss leads there. Besides: disks that are full or failed,
    internal topics that were made with too few replicas, and logs that a broker fails to compact.
    """  # noqa: D301
    found = with_admin(bootstrap, cluster.health)
    if form == "json":
        show_one("json", _answer(found))
    else:
        _show(found)
    if found.findings:
        context.exit(1)


def _answer(found: ClusterHealth) -> dict[str, Any]:
    return {
        "healthy": not found.findings,
        "controller": found.controller,
        "brokers": list(found.live),
        "partition_count": found.partition_count,
        **found.counts,
        "findings": [_finding_row(finding) for finding in found.findings],
        "cleaners": [cleaner_row(cleaner) for cleaner in found.cleaners],
    }


def _finding_row(finding: Finding) -> dict[str, Any]:
    return {
        "trouble": finding.trouble,
        "cause": finding.cause,
        "remedy": finding.remedy,
        "partitions": [str(name) for name in finding.partitions],
    }


def _show(found: ClusterHealth) -> None:
    if not found.findings:
        click.secho("all is well", fg="green", bold=True)
    for finding in found.findings:
        many = f" ({len(finding.partitions):,})" if finding.partitions else ""
        click.secho(f"{finding.trouble}{many}", fg="red", bold=True)
        click.echo(f"  why   {finding.cause}")
        click.echo(f"  do    {finding.remedy}")
        if finding.partitions:
            click.echo(f"  where {few(finding.partitions)}")
    click.echo(numbers_sentence(found.partition_count, found.counts))
    for line in filter(None, map(cleaner_line, found.cleaners)):
        click.echo(line)
