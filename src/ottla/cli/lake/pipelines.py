"""Resolves arguments that name a pipeline's file or a table."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import click
from click.core import ParameterSource

from ottla.base.errors import OttlaError
from ottla.cli.common import options
from ottla.cli.lake.ledgers import import_lake

_SUFFIX = ".toml"


@dataclass(frozen=True, slots=True)
class TableArgument:
    """A table, and the cluster that has its topic."""

    target: str
    bootstrap: str
    store_options: Mapping[str, str]


def is_pipeline(word: str) -> bool:
    """Return whether an argument names a pipeline's file rather than a topic or a table."""
    return word.endswith(_SUFFIX)


def read_pipeline(ctx: click.Context, path: str, bootstrap: str) -> Any:
    """Return the pipeline in a file. `--bootstrap` and `--config`, if given, overrule the file.

    Clients of this process then read the settings that it names.

    Raises click.BadParameter if the file is wrong.
    """
    import_lake()
    from ottla.lake.edges import pipeline_file as settings  # noqa: PLC0415  # Arrow is an extra.

    try:
        pipeline = settings.read(path, bootstrap)
    except OttlaError as error:
        raise click.BadParameter(error.message, ctx=ctx) from error
    if ctx.get_parameter_source("bootstrap") is ParameterSource.COMMANDLINE:
        pipeline = replace(pipeline, options={**pipeline.options, "bootstrap": bootstrap})
    if pipeline.config and ctx.get_parameter_source("config") is not ParameterSource.COMMANDLINE:
        options.use_config(pipeline.config)
    return pipeline


def table_argument(
    ctx: click.Context, word: str, bootstrap: str, store_options: Mapping[str, str]
) -> TableArgument:
    """Return the table that `word` names: a target, or the target of a pipeline."""
    if not is_pipeline(word):
        return TableArgument(word, bootstrap, store_options)
    pipeline = read_pipeline(ctx, word, bootstrap)
    return TableArgument(
        pipeline.table, pipeline.bootstrap, {**pipeline.store_options, **store_options}
    )


def with_spark(pipeline: Any, spark: Mapping[str, Any]) -> Any:
    """Return the pipeline with the command's Spark options, which overrule the file."""
    said = {name: value for name, value in spark.items() if value}
    conf = {**(pipeline.options.get("conf") or {}), **(said.pop("conf", {}))}
    return replace(pipeline, options={**pipeline.options, **said, "conf": conf})
