"""`ottla partition unthrottle`: removes the throttle of moves that have ended."""

import click

from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.operations.throttle import remove_throttle


@click.command()
@options.bootstrap
def unthrottle(bootstrap: str) -> None:
    """Remove the throttle of moves that have ended.

    \b
    ottla partition unthrottle

    `ottla partition reassign --throttle` leaves it where it does not --wait.
    """  # noqa: D301
    throttled = with_admin(bootstrap, remove_throttle)
    click.echo(
        f"Nothing is throttled any more; {', '.join(throttled)} was."
        if throttled
        else "No topic was throttled."
    )
