"""`ottla quota list`: all quotas that are set."""

from collections.abc import Mapping
from typing import Any

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.quota.entity import number
from ottla.cli.text.output import show
from ottla.metadata.quota_entity import QuotaEntity

_COLUMNS = ["who", "quota", "limit"]


@click.command(name="list")
@options.bootstrap
@options.output
def list_(bootstrap: str, form: str) -> None:
    """List all quotas that are set.

    \b
    ottla quota list
    ottla quota list -o json
    """  # noqa: D301
    found = with_admin(bootstrap, lambda admin: admin.quotas.all())
    show(form, _rows(found), _COLUMNS, empty="no quota is set")


def _rows(found: Mapping[QuotaEntity, Mapping[str, float]]) -> list[dict[str, Any]]:
    return [
        {"who": str(entity), "quota": name, "limit": number(limit)}
        for entity, limits in sorted(found.items(), key=lambda entry: str(entry[0]))
        for name, limit in sorted(limits.items())
    ]
