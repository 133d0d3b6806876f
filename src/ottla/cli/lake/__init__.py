"""The commands `ottla lake`, which load topics into tables and prove the tables."""

import click

from ottla.cli.lake.exits import LakeCommands
from ottla.cli.lake.follow import changelog, follow
from ottla.cli.lake.load import load, run, try_schema
from ottla.cli.lake.proof import certificate, verify
from ottla.cli.lake.publish import publish
from ottla.cli.lake.state import files, history, plan, status
from ottla.cli.lake.upkeep import compact, expire, replace


@click.group(cls=LakeCommands)
def lake() -> None:
    """Load topics into a lake, and prove it."""


for verb in (
    certificate,
    changelog,
    compact,
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
):
    lake.add_command(verb)
