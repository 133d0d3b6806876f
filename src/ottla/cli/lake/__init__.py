"""`ottla lake`: loads topics into tables of Parquet files and proves them. One file per verb."""

import click

from ottla.cli.lake.certificate import certificate
from ottla.cli.lake.changelog import changelog
from ottla.cli.lake.compact import compact
from ottla.cli.lake.environment import environment
from ottla.cli.lake.exits import LakeCommands
from ottla.cli.lake.expire import expire
from ottla.cli.lake.files import files
from ottla.cli.lake.follow import follow
from ottla.cli.lake.history import history
from ottla.cli.lake.load import load
from ottla.cli.lake.plan import plan
from ottla.cli.lake.publish import publish
from ottla.cli.lake.replace import replace
from ottla.cli.lake.run import run
from ottla.cli.lake.status import status
from ottla.cli.lake.try_schema import try_schema
from ottla.cli.lake.verify import verify

_VERBS = (
    certificate,
    changelog,
    compact,
    environment,
    expire,
    files,
    follow,
    history,
    load,
    plan,
    publish,
    replace,
    run,
    status,
    try_schema,
    verify,
)


@click.group(cls=LakeCommands)
def lake() -> None:
    """Load topics into a lake, and prove it."""


for verb in _VERBS:
    lake.add_command(verb)
