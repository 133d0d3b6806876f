"""`ottla lake`: loads from topics into tables of Parquet files, proven. A file per verb."""

import click

from ottla.cli.lake.certificate import certificate
from ottla.cli.lake.changelog import changelog
from ottla.cli.lake.files import files
from ottla.cli.lake.follow import follow
from ottla.cli.lake.load import load
from ottla.cli.lake.publish import publish
from ottla.cli.lake.try_schema import try_schema
from ottla.cli.lake.verify import verify


@click.group()
def lake() -> None:
    """Load topics into a lake, and prove it."""


for verb in (certificate, changelog, files, follow, load, publish, try_schema, verify):
    lake.add_command(verb)
