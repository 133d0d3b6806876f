"""The options that name a quota's entity, and the display of limits."""

from collections.abc import Callable
from typing import Any

import click

from ottla.metadata.quota_entity import DEFAULT, Name, QuotaEntity


def entity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name the entity of a quota."""
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
    """The entity that the options name. Raises UsageError if they name none or contradict."""
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
    """A limit; whole numbers have no fraction."""
    return int(limit) if limit is not None and limit == int(limit) else limit
