"""`ottla lake environment`: packs the packages that executors need into one archive."""

import os

import click

from ottla.base.quantities import counted, size_words
from ottla.cli.lake.ledgers import import_lake


@click.command()
@click.option(
    "--to", "path", required=True, metavar="FILE", help="The archive to write, such as env.tar.gz."
)
def environment(path: str) -> None:
    """Pack ottla and its packages for a Spark cluster.

    \b
    ottla lake environment --to env.tar.gz
    ottla lake run flights.toml --master spark://head:7077 \\
        --conf spark.archives=env.tar.gz#environment \\
        --conf spark.executorEnv.PYTHONPATH=environment/lib \\
        --conf spark.pyspark.python=python3.11

    The workers need a Python of the same version as this one, under that name on their path, and
    nothing of ottla. PySpark is left out: the executors' Spark has its own.
    """  # noqa: D301
    import_lake()
    from ottla.lake.edges.environment import PYTHON, ship  # noqa: PLC0415  # Arrow is an extra.

    packed = ship(path)
    size = size_words(os.path.getsize(path))
    click.echo(f"{path}: {size}, {counted(len(packed), 'package')}, for {PYTHON} on the workers")
    click.echo(
        f"spark-submit --archives {path}#environment "
        "--conf spark.executorEnv.PYTHONPATH=environment/lib "
        f"--conf spark.pyspark.python={PYTHON} …"
    )
