"""The arguments and options of the lake's commands: topics, tables, pipelines, declared options.

Most options are declared in `ottla.lake.job.options`. The lake is an extra, and slow to import, so
it is imported when a command is used.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial, wraps
from types import ModuleType
from typing import Any

import click
from click.core import ParameterSource

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.secret_options import resolved
from ottla.cli.common import options
from ottla.cli.common.error_output import wants_json
from ottla.cli.text import words

# The value of `ottla.lake.job.session.HERE`, whose import would import Arrow.
_HERE = "here"
_TYPES = {"span": words.span, "interval": words.interval, "size": words.size}
# The logger whose warnings are for people only.
_TALKATIVE = "ottla.client.ranges"


def import_lake() -> ModuleType:
    """Import `ottla.lake`. Raises OttlaError if a package that it needs is not installed."""
    try:
        import ottla.lake  # noqa: PLC0415  # Arrow is an extra, and slow to import.
    except ImportError as error:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"the lake needs a package that is not installed ({error.name}): "
            "pip install 'ottla[lake]'",
        ) from None
    # With `-o json` standard error must contain only an error object, or nothing.
    level = logging.ERROR if wants_json(sys.argv[1:]) else logging.NOTSET
    logging.getLogger(_TALKATIVE).setLevel(level)
    return ottla.lake


class _DeclaredCommand(click.Command):
    """A command with the options that a TypedDict of the lake declares."""

    declaration = ""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options, then the declared options."""
        own = super().get_params(ctx)
        known = {one.name for one in own}
        more = [one for one in _options(self.declaration) if one.name not in known]
        # `--help` comes last.
        return [*own[:-1], *more, own[-1]]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; `--here` is converted to the option `master`."""
        if ctx.meta.get(_HERE):
            master = ctx.params.get("master")
            if master not in (None, _HERE):
                raise click.UsageError(
                    f"--here is without Spark: leave --master {master} out, or it"
                )
            ctx.params["master"] = _HERE
        return super().invoke(ctx)


def declares(name: str) -> type[click.Command]:
    """Return a class of commands with the options of the TypedDict `name`."""
    return type(f"Command{name}", (_DeclaredCommand,), {"declaration": name})


def _options(name: str) -> list[click.Option]:
    import_lake()
    from ottla.lake.job import options as declarations  # noqa: PLC0415  # As above.
    from ottla.lake.model.option import declared  # noqa: PLC0415  # As above.

    found = [
        _option(one)
        for one in declared(getattr(declarations, name)).values()
        if one.flag is not None
    ]
    if any(one.name == "master" for one in found):
        found.append(_here())
    return found


def _option(one: Any) -> click.Option:
    """Return the command-line option for a `Declared`."""
    names = [one.flag, one.name]
    if one.is_flag:
        return click.Option(names, is_flag=True, default=False, help=one.option.help)
    given = {"help": one.option.help, "metavar": one.metavar}
    if one.metavar in ("NAME=TYPE", "NAME=VALUE"):
        parse = _columns if one.metavar == "NAME=TYPE" else partial(_settings, one.name)
        return click.Option(
            names,
            multiple=True,
            callback=lambda _context, _option, texts: parse(texts),
            **given,
        )
    kind: Any = click.STRING
    if one.choices:
        kind = click.Choice(one.choices)
    elif one.option.unit is not None:
        kind = _TYPES[one.option.unit]
    elif int in one.kinds:
        kind = click.IntRange(1, 1024 if one.name == "buckets" else None)
    elif one.metavar == "FILE":
        kind = click.Path(exists=True, dir_okay=False)
    shown = one.default is not None
    return click.Option(names, type=kind, default=one.default, show_default=shown, **given)


def _here() -> click.Option:
    return click.Option(
        ["--here"],
        is_flag=True,
        expose_value=False,
        callback=lambda context, _option, here: context.meta.update({_HERE: here}),
        help="Run in this process, without Spark and Java: for what one process can do.",
    )


def _columns(texts: Iterable[str]) -> dict[str, str] | None:
    pairs = _pairs(texts, "NAME=TYPE, as in id=int64")
    return {name: kind.strip() for name, kind in pairs.items()} or None


def _settings(option: str, texts: Iterable[str]) -> Mapping[str, str]:
    """Return settings of Spark or of a storage; ${NAME} in a value is an environment variable."""
    of_spark = option == "conf"
    pairs = _pairs(texts, "spark.NAME=VALUE" if of_spark else "NAME=VALUE", "spark." * of_spark)
    return resolved(pairs, "a command", os.environ)


def _pairs(texts: Iterable[str], form: str, prefix: str = "") -> dict[str, str]:
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name.strip() or not name.startswith(prefix):
            raise click.BadParameter(f"{text!r} is not {form}")
        found[name.strip()] = value
    return found


def given_options(ctx: click.Context, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given on the command line, without defaults."""
    return {
        name: value
        for name, value in options.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        # `--here` sets the option `master`.
        or (name == "master" and value is not None)
    }


def is_pipeline(word: str) -> bool:
    """Return whether an argument names a pipeline's file rather than a topic or a table."""
    return word.endswith(".toml")


def read_pipeline(ctx: click.Context, path: str, bootstrap: str) -> Any:
    """Return the pipeline in a file. `--bootstrap` and `--config`, if given, override the file.

    The settings file that the pipeline names is used by all clients of this process. Raises
    click.BadParameter if the pipeline file is wrong.
    """
    import_lake()
    from ottla.lake.edges import pipeline_file  # noqa: PLC0415  # Arrow is an extra.

    try:
        pipeline = pipeline_file.read(path, bootstrap)
    except OttlaError as error:
        raise click.BadParameter(error.message, ctx=ctx) from error
    if ctx.get_parameter_source("bootstrap") is ParameterSource.COMMANDLINE:
        pipeline = replace(pipeline, options={**pipeline.options, "bootstrap": bootstrap})
    if pipeline.config and ctx.get_parameter_source("config") is not ParameterSource.COMMANDLINE:
        options.use_config(pipeline.config)
    return pipeline


def with_spark(pipeline: Any, spark: Mapping[str, Any]) -> Any:
    """Return the pipeline with the command's Spark options, which override the file."""
    given = {name: value for name, value in spark.items() if value}
    conf = {**(pipeline.options.get("conf") or {}), **(given.pop("conf", {}))}
    return replace(pipeline, options={**pipeline.options, **given, "conf": conf})


@dataclass(frozen=True, slots=True)
class TableArgument:
    """The table that a command names, and the cluster of its topic."""

    target: str
    bootstrap: str
    store_options: Mapping[str, str]


def of_table(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument DIR|PIPELINE.toml, and call the command with its TableArgument first.

    The command's declared options include those of `TableOptions`.
    """

    @click.argument("word", metavar="DIR|PIPELINE.toml")
    @options.bootstrap
    @click.pass_context
    @wraps(command)
    def with_table(
        ctx: click.Context,
        /,
        word: str,
        bootstrap: str,
        store_options: Mapping[str, str],
        **given: Any,
    ) -> Any:
        table = TableArgument(word, bootstrap, store_options)
        if is_pipeline(word):
            pipeline = read_pipeline(ctx, word, bootstrap)
            of_store = {**pipeline.store_options, **store_options}
            table = TableArgument(pipeline.table, pipeline.bootstrap, of_store)
        return command(table, **given)

    return with_table
