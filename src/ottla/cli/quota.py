"""`ottla quota`: how much clients may use."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.base.quantities import amount
from ottla.cli.common import options
from ottla.cli.common.connect import connected
from ottla.cli.text.output import show
from ottla.client.admin import Admin
from ottla.diagnosis.access import limits_of
from ottla.metadata.quota_entity import DEFAULT, Name, QuotaEntity
from ottla.quota.table import check_limit, known_key


def entity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name the entity of a quota: user, client id or address."""
    for kind, words in (
        ("ip", "Clients that connect from this address."),
        ("client-id", "Clients with this client.id."),
        ("user", "Clients of this user; ANONYMOUS if clients do not authenticate."),
    ):
        command = click.option(
            f"--default-{kind}", is_flag=True, help=f"Every {kind} without a quota of its own."
        )(command)
        command = click.option(f"--{kind}", metavar="NAME", help=words)(command)
    return command


def entity_of(given: dict[str, Any]) -> QuotaEntity:
    """Return the entity that the options name. Raises UsageError for none or a contradiction."""
    names: dict[str, Name | None] = {}
    for kind in ("user", "client_id", "ip"):
        name, default = given.pop(kind), given.pop(f"default_{kind}")
        word = kind.replace("_", "-")
        if name is not None and default:
            raise click.UsageError(f"--{word} and --default-{word} exclude each other")
        if name == "":
            raise click.UsageError(
                f"--{word} needs a name; --default-{word} is for each {word} without its own quota"
            )
        names[kind] = DEFAULT if default else name
    if not any(names.values()):
        raise click.UsageError(
            "no entity given: give --user, --client-id, both, or --ip (or their --default-…)"
        )
    if names["ip"] is not None and (names["user"] or names["client_id"]):
        raise click.UsageError("--ip cannot be combined with a user or client id: give it alone")
    return QuotaEntity(**names)


def number(limit: float | None) -> float | int | None:
    """Return a limit as a number; a whole number becomes an int."""
    return int(limit) if limit is not None and limit == int(limit) else limit


@click.group()
def quota() -> None:
    """List, describe and alter quotas: how much clients may use.

    \b
    ottla quota alter --user alice --set producer_byte_rate=10M
    ottla quota alter --default-client-id --set consumer_byte_rate=5M
    ottla quota list

    Each broker enforces quotas on its own. If several quotas match a client, the most specific one
    applies: a user with a client id, then the user, then the client id; names before defaults.
    """  # noqa: D301


@quota.command()
@entity_options
@options.settings("producer_byte_rate=10M")
@options.unset
@connected
@options.output
async def alter(
    admin: Admin, assignments: tuple[str, ...], unset: tuple[str, ...], form: str, **given: Any
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

    before = (await admin.quotas.all()).get(entity, {})
    await admin.quotas.alter(entity, limits)
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
    """Parse a limit; None removes it. Raises BadParameter if a broker would refuse the limit."""
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


@quota.command()
@entity_options
@connected
@options.output
async def describe(admin: Admin, form: str, **given: Any) -> None:
    """Show which limits apply to a client, and where each is set.

    \b
    ottla quota describe --user ANONYMOUS --client-id loader
    ottla quota describe --default-user
    ottla quota describe --ip 10.0.0.7
    """  # noqa: D301
    entity = entity_of(given)
    found = await admin.quotas.all()
    rows = [
        {"quota": held.key.value, "limit": number(held.limit), "set_for": str(held.set_for)}
        for held in limits_of(entity, found)
    ]
    show(form, rows, ["quota", "limit", "set_for"], empty=f"nothing limits {entity}")


_COLUMNS = ["who", "quota", "limit"]


@quota.command(name="list")
@connected
@options.output
async def list_(admin: Admin, form: str) -> None:
    """List all quotas that are set.

    \b
    ottla quota list
    ottla quota list -o json
    """  # noqa: D301
    found = await admin.quotas.all()
    show(form, _rows(found), _COLUMNS, empty="no quota is set")


def _rows(found: Mapping[QuotaEntity, Mapping[str, float]]) -> list[dict[str, Any]]:
    return [
        {"who": str(entity), "quota": name, "limit": number(limit)}
        for entity, limits in sorted(found.items(), key=lambda entry: str(entry[0]))
        for name, limit in sorted(limits.items())
    ]
