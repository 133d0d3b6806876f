"""`ottla cluster describe`: brokers, what they lead and follow, and what is not in sync."""

from typing import Any

import click

from ottla.cli.cluster.numbers import numbers_sentence
from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show, show_one, show_title
from ottla.client.admin import Admin
from ottla.client.admin.cluster import ClusterDescription
from ottla.client.admin.partitions import PartitionStanding
from ottla.diagnosis.cluster import BrokerLoad, broker_loads, live_controller
from ottla.diagnosis.health import counts

_COLUMNS = ["broker", "address", "rack", "state", "leads", "follows", "not_in_sync"]


@click.command()
@options.bootstrap
@options.output
def describe(bootstrap: str, form: str) -> None:
    """Describe the cluster: its brokers, what they lead and follow.

    \b
    ottla cluster describe
    ottla cluster describe -o json
    """  # noqa: D301

    async def work(admin: Admin) -> tuple[ClusterDescription, list[PartitionStanding]]:
        return await admin.cluster.describe(), await admin.partitions.standings()

    found, standings = with_admin(bootstrap, work)
    rows = [_row(load) for load in broker_loads(found, standings)]
    numbers = counts(standings)
    controller = live_controller(found)
    if form == "json":
        answer = {
            "cluster_id": found.cluster_id,
            "controller": controller,
            "partition_count": len(standings),
            **numbers,
            "brokers": rows,
        }
        show_one("json", answer)
        return
    show_title(
        f"cluster {found.cluster_id}  controller {'-' if controller is None else controller}"
    )
    show(form, rows, _COLUMNS)
    click.echo(f"\n{numbers_sentence(len(standings), numbers)}")


def _row(load: BrokerLoad) -> dict[str, Any]:
    return {
        "broker": load.broker_id,
        "address": load.address,
        "rack": load.rack,
        "state": "alive" if load.is_alive else "down",
        "leads": load.leads,
        "follows": load.follows,
        "not_in_sync": load.not_in_sync,
    }
