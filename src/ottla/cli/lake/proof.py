"""`ottla lake verify` and `certificate`: prove a table again, and write the proof to a file."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.lake.arguments import TableArgument, declares, import_lake, of_table
from ottla.cli.lake.exits import REFUSED_BY_RECORDS
from ottla.cli.lake.results import ledger_rows, show_ledgers, show_yellow, skipped_lines
from ottla.cli.text.output import show, show_one

_BROKER_COLUMNS = [
    "partition",
    "data",
    "control",
    "aborted",
    "compacted",
    "deleted",
    "lost",
    "unexplained",
]


@click.command(cls=declares("VerifyOptions"))
@of_table
@click.option("--offline", is_flag=True, help="Check files and manifests only, not the topic.")
@options.output
@click.pass_context
def verify(
    ctx: click.Context, /, table: TableArgument, offline: bool, form: str, **given: Any
) -> None:
    """Derive the proof of a table again, from files and topic.

    \b
    ottla lake verify /lake/flights
    ottla lake verify /lake/flights --offline
    ottla lake verify s3://lake/flights --spark --master spark://head:7077

    Names every offset that is missing, duplicated or altered. Exits with 3 if there is one, and
    with 1 if the table has no load yet.
    """  # noqa: D301
    if given["on_spark"] and given["master"] == "here":
        raise click.UsageError("--spark and --here contradict each other: leave one out")
    bootstrap = None if offline else table.bootstrap
    given["store_options"] = table.store_options
    found = import_lake().verify(table.target, bootstrap=bootstrap, **given)
    if form == "json":
        answer = asdict(found)
        answer["ledgers"] = ledger_rows(found.ledgers.values())
        answer["read_again"] = ledger_rows(found.read_again)
        show_one("json", {**answer, "proven": found.proven})
    else:
        _show(found)
    if not found.proven:
        ctx.exit(REFUSED_BY_RECORDS if found.problems else 1)


def _show(found: Any) -> None:
    show_ledgers(found.ledgers.values(), empty="an empty table")
    if found.reported:
        click.echo("\nwhat the brokers' ledger says of these offsets now:")
        rows = [{"partition": p, **asdict(one)} for p, one in sorted(found.reported.items())]
        show("table", rows, _BROKER_COLUMNS)
    for one in found.read_again:
        place = f"{found.topic}-{one.partition}: offsets {one.start} to {one.end}"
        click.echo(f"{place} were read again since: {counted(one.loaded, 'row')}")
    skipped = skipped_lines(found.topic, found.skipped)
    show_yellow(f"left out when loaded: {line}" for line in skipped)
    show_yellow([*found.replaced, *found.remarks])
    show_yellow(f"{path} is of a load or task that did not count (yet)" for path in found.uncounted)
    for first, last in found.expired:
        versions = f"versions {first} to {last} are" if last > first else f"version {first} is"
        click.echo(f"{versions} expired: files that only such old ones have are gone")
    show_yellow(found.overridden)
    for problem in found.problems:
        click.secho(problem, fg="red")
    if found.is_empty and not found.problems:
        click.echo("nothing to prove: the table has no load yet")
        return
    verdict = "proven" if found.proven else f"NOT proven: {len(found.problems)} problem(s)"
    commits = [counted(found.loads, "load")]
    commits += [counted(count, kind) for kind, count in sorted(found.other_commits.items())]
    click.echo(
        f"{verdict}: {counted(found.rows, 'row')} of {found.topic} in "
        f"{', '.join(commits)}, hash {found.hash}; {found.compared:,} compared "
        f"with the topic, {found.only_in_lake:,} only in the lake by now"
    )


@click.command(cls=declares("TableOptions"))
@of_table
@click.option("--to", "path", metavar="FILE", help="Write it to a file. Default: print it.")
@click.option("--offline", is_flag=True, help="Do not compare the rows with the topic.")
@click.pass_context
def certificate(
    ctx: click.Context, /, table: TableArgument, path: str | None, offline: bool
) -> None:
    """Verify a table and write its proof to a file.

    \b
    ottla lake certificate /lake/flights --to flights.json
    ottla lake certificate flights.toml --to flights.json
    python examples/check_certificate.py flights.json /lake/flights

    The document names every file with its SHA-256 and accounts for every offset. Keep it apart from
    the table: a later certificate must repeat it. If the table is not proven, the certificate is
    written and says so, and the exit code is 3.
    """  # noqa: D301
    loads = import_lake()
    document = loads.certificate(
        table.target,
        bootstrap=None if offline else table.bootstrap,
        store_options=table.store_options,
    )
    text = loads.certificate_text(document)
    if path is None:
        click.echo(text, nl=False)
    else:
        _write(path, text)
        click.echo(
            f"{path}: {counted(document['rows'], 'row')} of {document['topic']} in "
            f"{counted(len(document['loads']), 'load')}, SHA-256 {document['sha256']}"
        )
    for problem in document["verdict"]["problems"]:
        click.secho(problem, fg="red", err=True)
    if not document["verdict"]["proven"]:
        ctx.exit(REFUSED_BY_RECORDS)


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text)
    except OSError as error:
        raise OttlaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{path} can't be written: {error.strerror or error}; choose another file",
        ) from error
