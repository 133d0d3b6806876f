"""`ottla broker list`: the brokers of a cluster, with their processes on this machine."""

from typing import Any

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.client.admin import Admin
from ottla.operations.restart import pids

_COLUMNS = ["broker", "address", "rack", "controller", "pid"]


@click.command(name="list")
@options.bootstrap
@options.output
def list_(bootstrap: str, form: str) -> None:
    """List the live brokers; of those on this machine also the process.

    \b
    ottla broker list
    ottla broker list -o json
    """  # noqa: D301

    async def work(admin: Admin) -> list[dict[str, Any]]:
        processes = await pids(admin)
        found = await admin.cluster.describe()
        return [
            {
                "broker": one.broker_id,
                "address": str(one.address),
                "rack": one.rack,
                "controller": one.broker_id == found.controller_id,
                "pid": processes.get(one.broker_id),
            }
            for one in found.brokers
        ]

    show(form, with_admin(bootstrap, work), _COLUMNS)
