"""Exit codes of the lake's commands, for cron, Airflow and other schedulers.

0  success: the work was done, there was no work, the table is proven, or the plan has no loss
1  failure: the reason is on standard error. Nothing was committed, unless the error says that a
version was committed or may have been, or that only the file of metrics could not be written after
the load. `verify` also exits with 1 if the table has no load yet
2  the command line or the pipeline file is wrong
3  the data does not allow it: records were deleted before they were loaded, the table is not
proven, or `try-schema` found records that would be refused
4  another load, or another upkeep, committed first: this one changed nothing
"""

import sys
from typing import Any

import click

from ottla.base.errors import OttlaError
from ottla.cli.common.error_output import show_error

REFUSED_BY_RECORDS = 3
LOST_THE_RACE = 4


class LakeCommands(click.Group):
    """The group of the lake's commands. It converts their errors to exit codes."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OttlaError as error:
            code = _code_of(error)
            if code is None:
                raise
            show_error(error, sys.argv[1:])
            ctx.exit(code)


def _code_of(error: OttlaError) -> int | None:
    """Return the exit code for an error that has its own code, else None."""
    try:
        from ottla.lake.model.plan import RecordsLost  # noqa: PLC0415  # Arrow is an extra.
        from ottla.lake.tables.table import CommitConflict  # noqa: PLC0415  # As above.
    except ImportError:
        return None
    if isinstance(error, RecordsLost):
        return REFUSED_BY_RECORDS
    return LOST_THE_RACE if isinstance(error, CommitConflict) else None
