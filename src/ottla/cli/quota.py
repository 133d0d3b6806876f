"""`ottla quota`: how much clients may use."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.cli import options
from ottla.cli.amount import amount
from ottla.cli.connect import with_admin
from ottla.cli.output import show
from ottla.client.admin import Admin
from ottla.metadata.quota_entity import DEFAULT, Name, QuotaEntity
from ottla.quota.keys import QuotaKey, check_limit, keys_of, known_key
from ottla.quota.table import QuotaTable

_COLUMNS = ["who", "quota", "limit"]


@click.group()
def quota() -> None:
    """List, describe and alter quotas: who may use how much.

    \b
    ottla quota alter --user alice --set producer_byte_rate=10M
    ottla quota alter --default-client-id --set consumer_byte_rate=5M
    ottla quota list

    Each broker holds each client to its quotas. Of those that are set the most special counts:
    a user with a client id, then the user, then the client id; names before defaults.
    """  # noqa: D301


def _entity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Whom a quota is for."""
    for kind, words in (
        ("ip", "Whoever connects from this address."),
        ("client-id", "Clients that call themselves so."),
        ("user", "Clients of this user; ANONYMOUS while nobody has to log in."),
    ):
        command = click.option(
            f"--default-{kind}", is_flag=True, help=f"Every {kind} without a quota of its own."
        )(command)
        command = click.option(f"--{kind}", metavar="NAME", help=words)(command)
    return command


def _entity(given: dict[str, Any]) -> QuotaEntity:
    """The entity that the options name. Raises UsageError where they name none."""
    names: dict[str, Name | None] = {}
    for kind in ("user", "client_id", "ip"):
        name, default = given.pop(kind), given.pop(f"default_{kind}")
        word = kind.replace("_", "-")
        if name is not None and default:
            raise click.UsageError(f"--{word} and --default-{word} exclude each other")
        if name == "":
            raise click.UsageError(f"--{word} needs a name; --default-{word} means all the others")
        names[kind] = DEFAULT if default else name
    if not any(names.values()):
        raise click.UsageError("say whose: --user, --client-id, both, or --ip (or --default-…)")
    if names["ip"] is not None and (names["user"] or names["client_id"]):
        raise click.UsageError("an address has quotas of its own: give --ip alone")
    return QuotaEntity(**names)


@quota.command(name="list")
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


@quota.command()
@_entity_options
@options.bootstrap
@options.output
def describe(bootstrap: str, form: str, **given: Any) -> None:
    """Tell which limits hold for a client, and for whom they were set.

    \b
    ottla quota describe --user ANONYMOUS --client-id loader
    ottla quota describe --default-user
    ottla quota describe --ip 10.0.0.7
    """  # noqa: D301
    entity = _entity(given)
    found = with_admin(bootstrap, lambda admin: admin.quotas.all())
    rows = [
        {"quota": key.value, "limit": _number(limit), "set_for": str(source)}
        for key, (limit, source) in _holding(entity, found).items()
    ]
    show(form, rows, ["quota", "limit", "set_for"], empty=f"nothing limits {entity}")


@quota.command()
@_entity_options
@options.settings
@options.unset
@options.bootstrap
@options.output
def alter(
    assignments: tuple[str, ...], unset: tuple[str, ...], bootstrap: str, form: str, **given: Any
) -> None:
    """Set limits, or remove them with --unset. They hold at once, on every broker.

    \b
    ottla quota alter --user alice --set producer_byte_rate=10M --set consumer_byte_rate=20M
    ottla quota alter --client-id loader --set request_percentage=50
    ottla quota alter --default-user --set controller_mutation_rate=5
    ottla quota alter --ip 10.0.0.7 --set connection_creation_rate=10
    ottla quota alter --user alice --unset producer_byte_rate

    Rates are per second; k, M, G and Ki, Mi, Gi are understood. Shows old and new limits.
    """  # noqa: D301
    entity = _entity(given)
    changes = options.parse_changes(assignments, unset)
    if not changes:
        raise click.UsageError("say what to change: --set QUOTA=LIMIT or --unset QUOTA")
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
            "old": _number(before.get(name)),
            "new": _number(limit),
        }
        for name, limit in limits.items()
    ]
    show(form, rows, ["who", "quota", "old", "new"])


def _rows(found: Mapping[QuotaEntity, Mapping[str, float]]) -> list[dict[str, Any]]:
    return [
        {"who": str(entity), "quota": name, "limit": _number(limit)}
        for entity, limits in sorted(found.items(), key=lambda entry: str(entry[0]))
        for name, limit in sorted(limits.items())
    ]


def _holding(
    entity: QuotaEntity, found: Mapping[QuotaEntity, Mapping[str, float]]
) -> dict[QuotaKey, tuple[float, QuotaEntity]]:
    """What holds for an entity: its own, else what it falls under; of defaults, their own."""
    table = QuotaTable({one: _known(one, limits) for one, limits in found.items()})
    holding: dict[QuotaKey, tuple[float, QuotaEntity]] = {}
    for key in keys_of(entity):
        for level in _levels(entity):
            limit = table.quotas.get(level, {}).get(key)
            if limit is not None:
                holding[key] = limit, level
                break
    return holding


def _levels(entity: QuotaEntity) -> Iterable[QuotaEntity]:
    """The entities whose quotas hold for one, the most special first."""
    if entity.ip is not None:
        return dict.fromkeys((entity, QuotaEntity(ip=DEFAULT)))
    users = dict.fromkeys((entity.user, DEFAULT)) if entity.user is not None else {}
    clients = dict.fromkeys((entity.client_id, DEFAULT)) if entity.client_id is not None else {}
    levels = []
    for user in users:
        levels += [QuotaEntity(user, client) for client in clients]
        levels.append(QuotaEntity(user))
    return [*levels, *(QuotaEntity(client_id=client) for client in clients)]


def _known(entity: QuotaEntity, limits: Mapping[str, float]) -> dict[QuotaKey, float]:
    return {key: limits[key.value] for key in keys_of(entity) if key.value in limits}


def _limit(entity: QuotaEntity, name: str, text: str | None) -> float | None:
    """Raises BadParameter for what no broker would take."""
    try:
        key = known_key(entity, name)
        if text is None:
            return None
        value = amount(text)
        check_limit(key, value)
    except OttlaError as error:
        raise click.BadParameter(error.message, param_hint="--set") from None
    return value


def _number(limit: float | None) -> float | int | None:
    """Whole numbers without a fraction."""
    return int(limit) if limit is not None and limit == int(limit) else limit
