"""How the commands of the lake end, for cron, Airflow and other schedulers.

0  done, or nothing was to do; proven; planned without a loss
1  failed: nothing was committed, and the reason is on standard error
2  the words of the command, or the pipeline's file, are wrong
3  the records say no: some were deleted before they were loaded, the table is not proven, or
columns that were tried would refuse some
"""

import sys
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.cli.failing import show_error

REFUSED_BY_RECORDS = 3


class LakeCommands(click.Group):
    """The verbs of the lake; what they raise decides how they end."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OttlaError as error:
            if not _is_loss(error):
                raise
            show_error(error, sys.argv[1:])
            ctx.exit(REFUSED_BY_RECORDS)


def _is_loss(error: OttlaError) -> bool:
    try:
        from ottla.lake.loss import RecordsLost  # noqa: PLC0415  # Arrow is an extra.
    except ImportError:
        return False
    return isinstance(error, RecordsLost)
