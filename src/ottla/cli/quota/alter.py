"""`ottla quota alter`: sets and removes limits."""

from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.base.units import amount
from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.quota.entity import entity_of, entity_options, number
from ottla.cli.text.output import show
from ottla.client.admin import Admin
from ottla.metadata.quota_entity import QuotaEntity
from ottla.quota.keys import check_limit, known_key


@click.command()
@entity_options
@options.settings("producer_byte_rate=10M")
@options.unset
@options.bootstrap
@options.output
def alter(
    assignments: tuple[str, ...], unset: tuple[str, ...], bootstrap: str, form: str, **given: Any
) -> None:
    """Set limits, or remove them with --unset. Changes apply at once, on every broker.

    \b
    ottla quota alter --user alice --set producer_byte_rate=10M --set consumer_byte_rate=20M
    ottla quota alter --client-id loader --set request_percentage=50
    ottla quota alter --default-user --set controller_mutation_rate=5
    ottla quota alter --ip 10.0.0.7 --set connection_creation_rate=10
    ottla quota alter --user alice --unset producer_byte_rate

    Rates are per second; LIMIT may end in k, M, G or Ki, Mi, Gi. Shows old and new limits.
    """  # noqa: D301
    entity = entity_of(given)
    changes = options.parse_changes(assignments, unset)
    if not changes:
        raise click.UsageError("nothing to change: give --set QUOTA=LIMIT or --unset QUOTA")
    limits = {name: _limit(entity, name, text) for name, text in changes.items()}

    async def work(admin: Admin) -> dict[str, float]:
        before = (await admin.quotas.all()).get(entity, {})
        await admin.quotas.alter(entity, limits)
        return before

    before = with_admin(bootstrap, work)
    rows = [
        {
            "who": str(entity),
            "quota": name,
            "old": number(before.get(name)),
            "new": number(limit),
        }
        for name, limit in limits.items()
    ]
    show(form, rows, ["who", "quota", "old", "new"])


def _limit(entity: QuotaEntity, name: str, text: str | None) -> float | None:
    """The limit; None removes it. Raises BadParameter where a broker would refuse it."""
    try:
        key = known_key(entity, name)
        if text is None:
            return None
        value = amount(text)
        if value is not None:
            check_limit(key, value)
            return value
    except OttlaError as error:
        raise click.BadParameter(error.message, param_hint="--set") from None
    raise click.BadParameter(
        f"{text!r} is no number; write one such as 500000, 500k or 2Mi", param_hint="--set"
    )
