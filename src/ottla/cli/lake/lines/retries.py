"""Shows a failure that is retried, as one line on standard error."""

import click

from ottla.base.errors import OttlaError


def show_trouble(error: OttlaError) -> None:
    """Show a failure that is retried, or an outage that is waited out."""
    from ottla.lake.source.cluster import is_outage  # noqa: PLC0415  # Arrow is an extra.

    text = f"{error.message}; it is tried again"
    if is_outage(error):
        text = f"waiting for brokers: {error.message}; it goes on by itself"
    click.secho(text, fg="yellow", err=True)


def show_recovery(seconds: float) -> None:
    """Show that an outage is over."""
    waited = f"going on: the brokers answer again after {seconds:.0f} s"
    click.secho(waited, fg="yellow", err=True)
