"""`ottla lake history`: shows a line for each commit of a table."""

import click

from ottla.base.quantities import counted, size_words
from ottla.cli.common import options
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.lake.pipelines import table_argument
from ottla.cli.lake.stores import store_options as with_store_options
from ottla.cli.text.output import show

_COLUMNS = ["version", "kind", "time", "rows", "files", "size", "topic_id", "on_record"]


@click.command()
@click.argument("target", metavar="DIR|PIPELINE.toml")
@click.option("--last", type=click.IntRange(1), default=None, help="So many commits at most.")
@click.option("--html", "page", metavar="FILE", help="Write a report with plots to a file.")
@with_store_options
@options.bootstrap
@options.output
@click.pass_context
def history(
    ctx: click.Context,
    target: str,
    last: int | None,
    page: str | None,
    store_options: dict[str, str],
    bootstrap: str,
    form: str,
) -> None:
    """List the commits of a table, with what is on record.

    \b
    ottla lake history /lake/flights
    ottla lake history flights.toml --last 10 -o json
    ottla lake history flights.toml --html flights.html

    On record is what is not plain loading: losses that were accepted, problems that were
    overridden, offsets that could not be read, dead letters, changes of columns.
    """  # noqa: D301
    import_lake()
    from ottla.lake.edges import commits, pipeline_state  # noqa: PLC0415  # Arrow is an extra.

    table = table_argument(ctx, target, bootstrap, store_options)
    if page is not None:
        from ottla.lake.edges.reporting import write_report  # noqa: PLC0415  # As above.

        write_report(page, table.target, table.bootstrap, table.store_options)
        click.echo(f"{page}: the report of {table.target}")
        return
    manifests = pipeline_state.history(table.target, table.store_options)
    found = [one.row() for one in commits.commits(manifests)]
    shown = found[-last:] if last else found
    rows = [{**row, "size": size_words(row["size_bytes"])} for row in shown]
    show(form, rows, _COLUMNS, empty="no commit yet")
    if form != "json" and manifests:
        total = counted(manifests[-1].total_rows, "row")
        click.echo(f"{counted(len(found), 'commit')}; the table holds {total}")
