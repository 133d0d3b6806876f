"""`ottla lake verify`: derives the proof of a table again."""

from dataclasses import asdict
from typing import Any

import click

from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.lake.declared import declares
from ottla.cli.lake.exits import REFUSED_BY_RECORDS
from ottla.cli.lake.ledgers import LEDGER_COLUMNS, import_lake, ledger_rows, skipped_lines
from ottla.cli.lake.pipelines import table_argument
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
@click.argument("target", metavar="DIR|PIPELINE.toml")
@click.option("--offline", is_flag=True, help="Check files and manifests only, not the topic.")
@options.bootstrap
@options.output
@click.pass_context
def verify(
    ctx: click.Context,
    /,
    target: str,
    offline: bool,
    bootstrap: str,
    form: str,
    **given: Any,
) -> None:
    """Derive the proof of a table again, from files and topic.

    \b
    ottla lake verify /lake/flights
    ottla lake verify /lake/flights --offline
    ottla lake verify s3://lake/flights --spark --master spark://head:7077

    Names every offset that is missing, doubled or altered; exits with 3 where there is one, and
    with 1 where the table has no load yet.
    """  # noqa: D301
    if given["on_spark"] and given["master"] == "here":
        raise click.UsageError("--spark and --here contradict each other: leave one out")
    loads = import_lake()
    table = table_argument(ctx, target, bootstrap, given["store_options"])
    given["store_options"] = table.store_options
    found = loads.verify(table.target, bootstrap=None if offline else table.bootstrap, **given)
    if form == "json":
        answer = asdict(found)
        answer["ledgers"] = ledger_rows(found.ledgers.values())
        answer["read_again"] = ledger_rows(found.read_again)
        show_one("json", {**answer, "proven": found.proven})
    else:
        _show(found, form)
    if not found.proven:
        ctx.exit(REFUSED_BY_RECORDS if found.problems else 1)


def _show(found: Any, form: str) -> None:
    show(form, ledger_rows(found.ledgers.values()), LEDGER_COLUMNS, empty="an empty table")
    if found.told:
        click.echo("\nwhat the brokers' ledger says of these offsets now:")
        rows = [{"partition": p, **asdict(one)} for p, one in sorted(found.told.items())]
        show(form, rows, _BROKER_COLUMNS)
    for one in found.read_again:
        place = f"{found.topic}-{one.partition}: offsets {one.start} to {one.end}"
        click.echo(f"{place} were read again since: {counted(one.loaded, 'row')}")
    for line in skipped_lines(found.topic, found.skipped):
        click.secho(f"left out when loaded: {line}", fg="yellow")
    for line in found.replaced:
        click.secho(line, fg="yellow")
    for line in found.remarks:
        click.secho(line, fg="yellow")
    for path in found.uncounted:
        click.secho(f"{path} is of a load or task that did not count (yet)", fg="yellow")
    for first, last in found.expired:
        versions = f"versions {first} to {last} are" if last > first else f"version {first} is"
        click.secho(f"{versions} expired: files that only such old ones have are gone")
    for problem in found.overridden:
        click.secho(problem, fg="yellow")
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
