"""Options that say how keys and values become typed columns."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ottla.base.errors import WrongWords
from ottla.cli.lake.ledgers import import_lake

Command = TypeVar("Command", bound=Callable[..., Any])

_FORMATS = "json, csv, avro, protobuf, string, bytes, debezium-json, debezium-avro"
_OPTIONS = (
    click.option("--value", default=None, metavar="FORMAT", help=f"What values are: {_FORMATS}."),
    click.option("--key", default=None, metavar="FORMAT", help="What keys are, likewise."),
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="NAME=TYPE",
        help="A typed column of the value; repeatable. Default: by the schema, or by a sample.",
    ),
    click.option(
        "--key-column", "key_columns", multiple=True, metavar="NAME=TYPE", help="One of the key."
    ),
    click.option(
        "--schema-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        default=None,
        help="The values' schema: an .avsc or a .proto file.",
    ),
    click.option(
        "--key-schema-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        default=None,
        help="The keys' schema.",
    ),
    click.option("--message", default=None, help="The name of the values' message (Protobuf)."),
    click.option("--key-message", default=None, help="The name of the keys' message (Protobuf)."),
    click.option(
        "--registry", default=None, metavar="URL", help="A schema registry with Confluent's API."
    ),
    click.option(
        "--on-bad-record",
        type=click.Choice(["fail", "dead-letter", "null"]),
        default=None,
        help="What becomes of a record that can't be decoded. Default: fail.",
    ),
    click.option(
        "--drop-raw",
        is_flag=True,
        help="Keep a hash of each record instead of its key, value and headers.",
    ),
    click.option(
        "--decode-file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        default=None,
        help="A TOML file with a table [decode] that says all of this; options overrule it.",
    ),
)


def decode_options(command: Command) -> Command:
    """Give a command the options of decoding."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def declared(given: dict[str, Any]) -> Any:
    """What the options declare, as `ottla.lake.Decode`; None where none is given.

    Raises OttlaError.
    """
    options = _of_file(given["decode_file"]) if given["decode_file"] else {}
    for name in ("value", "key", "message", "key_message", "registry", "on_bad_record"):
        if given[name] is not None:
            options[name] = given[name]
    for name in ("columns", "key_columns"):
        if given[name]:
            options[name] = dict(map(_column, given[name]))
    for side, prefix in (("value", ""), ("key", "key_")):
        path = given[f"{prefix}schema_file"] or _named(options, f"{prefix}schema_file", given)
        if path is not None:
            options[f"{prefix}schema"] = _schema(path, str(options.get(side, "")))
    if given["drop_raw"]:
        options["keep_raw"] = False
    return import_lake().decode_from(options) if options else None


def _of_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text())
        if "decode" not in found:
            raise WrongWords(f"{path} has no table [decode]")
        return dict(found["decode"])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError, ValueError) as error:
        raise WrongWords(f"{path} has no table [decode] that can be read: {error}") from None


def _named(options: dict[str, Any], name: str, given: dict[str, Any]) -> Path | None:
    """A schema's file that the TOML file names, relative to itself."""
    found = options.pop(name, None)
    return None if found is None else Path(given["decode_file"]).parent / str(found)


def _column(text: str) -> tuple[str, str]:
    name, separator, kind = text.partition("=")
    if not separator or not name:
        raise click.BadParameter(f"{text!r} is not NAME=TYPE, as in id=int64")
    return name.strip(), kind.strip()


def _schema(path: Path, kind: str) -> str:
    import_lake()
    from ottla.lake.decode.schema_files import schema_text  # noqa: PLC0415  # As above.

    return schema_text(path, kind)
