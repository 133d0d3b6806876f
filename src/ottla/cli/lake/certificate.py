"""`ottla lake certificate`: writes a document to check a table without ottla."""

from pathlib import Path

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import counted
from ottla.cli.common import options
from ottla.cli.lake.exits import REFUSED_BY_RECORDS
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.lake.pipelines import table_argument
from ottla.cli.lake.stores import store_options as with_store_options


@click.command()
@click.argument("target", metavar="DIR|PIPELINE.toml")
@click.option("--to", "path", metavar="FILE", help="Write it to a file. Default: print it.")
@click.option("--offline", is_flag=True, help="Do not compare the rows with the topic.")
@with_store_options
@options.bootstrap
@click.pass_context
def certificate(
    ctx: click.Context,
    target: str,
    path: str | None,
    offline: bool,
    store_options: dict[str, str],
    bootstrap: str,
) -> None:
    """Verify a table and write down what is proven of it.

    \b
    ottla lake certificate /lake/flights --to flights.json
    ottla lake certificate flights.toml --to flights.json
    python examples/check_certificate.py flights.json /lake/flights

    The document names every file with its SHA-256 and accounts for every offset. Keep it away
    from the table: a later certificate has to repeat it. Exits with 3 where the table is not
    proven; the certificate is written and says so.
    """  # noqa: D301
    loads = import_lake()
    table = table_argument(ctx, target, bootstrap, store_options)
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
