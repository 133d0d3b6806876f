"""`ottla cluster log-dirs`: the log directories of the brokers, and what they hold."""

from typing import Any

import click

from ottla.base.quantities import size_words
from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.client.admin import Admin
from ottla.client.admin.logs import LogDirectory

_COLUMNS = ["broker", "path", "replicas", "logs", "usable", "total"]


@click.command(name="log-dirs")
@click.option(
    "--broker", "brokers", multiple=True, type=int, metavar="ID", help="Only of this one."
)
@options.bootstrap
@options.output
def log_dirs(brokers: tuple[int, ...], bootstrap: str, form: str) -> None:
    """Show the log directories of the brokers. With their sizes and the room on their disks.

    \b
    ottla cluster log-dirs
    ottla cluster log-dirs --broker 1 -o json

    With -o json also the bytes of each partition.
    """  # noqa: D301

    async def work(admin: Admin) -> list[LogDirectory]:
        return await admin.logs.directories(brokers or None)

    found = with_admin(bootstrap, work)
    show(form, [_row(one) if form == "json" else _cells(one) for one in found], _COLUMNS)


def _row(one: LogDirectory) -> dict[str, Any]:
    return {
        "broker": one.broker_id,
        "path": one.path,
        "bytes": sum(one.partition_bytes.values()),
        "usable_bytes": one.usable_bytes,
        "total_bytes": one.total_bytes,
        "partitions": [
            {"topic": place.topic, "partition": place.partition, "bytes": size}
            for place, size in sorted(one.partition_bytes.items())
        ],
    }


def _cells(one: LogDirectory) -> dict[str, Any]:
    return {
        "broker": one.broker_id,
        "path": one.path,
        "replicas": len(one.partition_bytes),
        "logs": size_words(sum(one.partition_bytes.values())),
        # Kafka before 3.3 does not report it.
        "usable": None if one.usable_bytes < 0 else size_words(one.usable_bytes),
        "total": None if one.total_bytes < 0 else size_words(one.total_bytes),
    }
