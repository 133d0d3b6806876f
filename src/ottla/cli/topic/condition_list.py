"""Partitions in trouble, for `ottla topic describe --under-replicated` and similar options."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.cli.text.topics import matching
from ottla.client.admin import Admin
from ottla.client.admin.partitions import PartitionStanding
from ottla.client.connection.cluster import connections_of

Condition = Callable[[PartitionStanding], bool]

_COLUMNS = ["partition", "leader", "replicas", "isr", "elr", "min_isr"]


def list_where(
    conditions: Iterable[Condition], words: Sequence[str], regex: bool, bootstrap: str, form: str
) -> None:
    """Show the partitions of the named topics (or of all) that meet any of the conditions."""
    wanted = list(conditions)

    async def work(admin: Admin) -> list[PartitionStanding]:
        names = await matching(connections_of(admin), words, regex=regex)
        return await admin.partitions.standings(names or None)

    rows = [
        standing_row(one)
        for one in with_admin(bootstrap, work)
        if any(condition(one) for condition in wanted)
    ]
    show(form, rows, _COLUMNS, empty="there is no such partition")


def standing_row(one: PartitionStanding) -> dict[str, Any]:
    """The state of one partition, for a table or for JSON."""
    return {
        "partition": str(one.name),
        "leader": None if one.is_offline else one.leader,
        "leader_epoch": one.leader_epoch,
        "replicas": list(one.replicas),
        "isr": list(one.isr),
        "elr": list(one.elr),
        "min_isr": one.min_isr,
    }
