"""Command-line options that are declared in `ottla.lake.job.options`."""

import os
from collections.abc import Mapping
from typing import Any

import click

from ottla.base.secret_options import resolved
from ottla.cli.lake.ledgers import import_lake
from ottla.cli.text import words

# The value of `ottla.lake.job.session.HERE`, whose import would import Arrow.
_HERE = "here"
_TYPES = {"span": words.span, "interval": words.interval, "size": words.size}


class DeclaredCommand(click.Command):
    """A command with the options that a TypedDict of the lake declares.

    They are created when the command is used: the lake is an extra, and slow to import.
    """

    declaration = ""
    left_out: tuple[str, ...] = ()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options, then the declared ones."""
        own = super().get_params(ctx)
        known = {one.name for one in own}
        more = [one for one in _options(self.declaration, self.left_out) if one.name not in known]
        # Keep `--help` last.
        return [*own[:-1], *more, own[-1]]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; `--here` becomes a master."""
        if ctx.meta.get(_HERE):
            master = ctx.params.get("master")
            if master not in (None, _HERE):
                raise click.UsageError(
                    f"--here is without Spark: leave --master {master} out, or it"
                )
            ctx.params["master"] = _HERE
        return super().invoke(ctx)


def declares(name: str, *left_out: str) -> type[DeclaredCommand]:
    """Return a command class with the options of the TypedDict `name`, except `left_out`."""
    members = {"declaration": name, "left_out": left_out}
    return type(f"Command{name}", (DeclaredCommand,), members)


def _options(name: str, left_out: tuple[str, ...]) -> list[click.Option]:
    import_lake()
    from ottla.lake.job import options  # noqa: PLC0415  # As above.
    from ottla.lake.model.option import declared  # noqa: PLC0415  # Arrow is an extra.

    found = [
        _option(one)
        for one in declared(getattr(options, name)).values()
        if one.option.flag is not None and one.name not in left_out
    ]
    if any(one.name == "master" for one in found):
        found.append(_here())
    return found


def _option(one: Any) -> click.Option:
    """Return the command-line option for a `Declared`."""
    option = one.option
    given: dict[str, Any] = {"help": option.help, "show_default": option.shown}
    if one.is_flag:
        return click.Option([option.flag, one.name], is_flag=True, default=False, **given)
    if option.metavar == "NAME=TYPE":
        return click.Option([option.flag, one.name], multiple=True, metavar=option.metavar,
                            callback=_columns, **given)  # fmt: skip
    if option.metavar == "NAME=VALUE":
        is_spark = one.name == "conf"
        return click.Option([option.flag, one.name], multiple=True, metavar=option.metavar,
                            callback=_spark if is_spark else _settings, **given)  # fmt: skip
    kind: Any = click.STRING
    if one.choices:
        kind = click.Choice(one.choices)
    elif option.unit is not None:
        kind = _TYPES[option.unit]
    elif int in one.kinds:
        kind = click.IntRange(1, 1024 if one.name == "buckets" else None)
    elif option.metavar == "FILE":
        kind = click.Path(exists=True, dir_okay=False)
    return click.Option(
        [option.flag, one.name], type=kind, default=option.default, metavar=option.metavar, **given
    )


def _here() -> click.Option:
    return click.Option(
        ["--here"],
        is_flag=True,
        expose_value=False,
        callback=_use_here,
        help="Run in this process, without Spark and Java: for what one process can do.",
    )


def _use_here(context: click.Context, _option: click.Parameter, here: bool) -> None:
    if here:
        context.meta[_HERE] = True


def _columns(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str] | None:
    return dict(map(_column, texts)) or None


def _column(text: str) -> tuple[str, str]:
    name, separator, kind = text.partition("=")
    if not separator or not name:
        raise click.BadParameter(f"{text!r} is not NAME=TYPE, as in id=int64")
    return name.strip(), kind.strip()


def _spark(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> Mapping[str, str]:
    for text in texts:
        if "=" not in text or not text.startswith("spark."):
            raise click.BadParameter(f"{text!r} is not spark.NAME=VALUE")
    return _named(texts)


def _settings(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> Mapping[str, str]:
    for text in texts:
        if not text.partition("=")[0] or "=" not in text:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return _named(texts)


def _named(texts: tuple[str, ...]) -> Mapping[str, str]:
    """Return values by name, from `NAME=VALUE`; ${NAME} is a variable."""
    return resolved(dict(text.split("=", 1) for text in texts), "a command", os.environ)
