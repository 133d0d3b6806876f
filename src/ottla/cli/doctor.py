"""`ottla doctor`: what is wrong with a cluster, as its clients see it."""

import asyncio
from dataclasses import asdict

import click

from ottla.cli.common import options
from ottla.cli.text.output import show_one
from ottla.cli.text.places import few
from ottla.diagnosis.doctor import Examination, examine
from ottla.diagnosis.findings import Finding, Severity

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


@click.command()
@options.bootstrap
@options.output
@click.pass_context
def doctor(context: click.Context, bootstrap: str, form: str) -> None:
    """Find what is wrong with a cluster, as its clients see it; exit with 1 if anything is.

    \b
    ottla doctor
    ottla doctor -b kafka.example.com:9092 --config client.properties

    Tries every address that the brokers advertise: name, connection, TLS or plaintext, login. Then
    compares brokers, clocks, certificates, disks, settings and versions. Also of Apache Kafka, and
    useful if nothing answers. Changes and writes nothing. Errors do not work now, warnings will
    fail some day, notes do not count.
    """  # noqa: D301
    found = asyncio.run(examine(bootstrap))
    if form == "json":
        show_one("json", _answer(found))
    else:
        _show(found)
    if not found.is_well:
        context.exit(1)


def _answer(found: Examination) -> dict[str, object]:
    return {
        "well": found.is_well,
        "cluster_id": found.cluster_id,
        "findings": [asdict(one) for one in found.findings],
        "checked": [{"area": area, "seen": seen} for area, seen in found.checked.items()],
    }


def _show(found: Examination) -> None:
    for one in found.findings:
        _show_finding(one)
    if found.is_well:
        click.secho("all is well", fg="green", bold=True)
    width = max(map(len, found.checked), default=0)
    for area, sentence in found.checked.items():
        click.echo(f"{area:<{width}}  {sentence}")


def _show_finding(one: Finding) -> None:
    click.secho(f"{one.severity}: {one.trouble}", fg=_COLOURS[one.severity], bold=True)
    click.echo(f"  why   {one.cause}")
    click.echo(f"  do    {one.remedy}")
    if one.where:
        click.echo(f"  where {few(one.where)}")
