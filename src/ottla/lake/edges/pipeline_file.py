"""Parses pipeline files: TOML with source, decode, target, schedule and spark.

    [source]
    topic = "flights"
    bootstrap = "localhost:9092"          # Ottla or Apache Kafka
    config = "client.properties"          # TLS and logins, in the words of Kafka's clients
    from = "earliest"                     # where the first load of a partition starts

    [target]
    table = "/lake/flights"               # or s3://…
    format = "parquet"                    # or delta, iceberg
    kind = "rows"                         # or latest, history: a changelog table

Other keys have the defaults of `ottla lake load`; `PIPELINE_KEYS` lists all keys. An unknown key is
an error that names the nearest known key, so that a mistyped option is not ignored.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args, get_origin

from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.base.quantities import size_bytes, span_ms
from ottla.base.secret_options import expanded, is_secret, is_setting, resolved
from ottla.lake.job.options import ChangelogOptions, FollowOptions, LoadOptions
from ottla.lake.model.manifest import Keeps
from ottla.lake.model.option import Declared, O, declared, filled, hint
from ottla.lake.write.settings import schemas_beside

_FIXED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\~]")
_BOOTSTRAP = "localhost:9092"
_STRING, _FLAG, _TEXT_TABLE = "a string", "true or false", "a table of strings"
_NUMBER = "a number above 0"

_MEANS = {
    "span": 'a span such as "10m", or "0s"',
    "interval": 'a time such as "10s" or "5m"',
    "size": 'a size such as "256MB"',
}


def _meaning(one: Declared) -> str:
    """Return a description of the values that a key may have."""
    if one.option.unit is not None:
        return _MEANS[one.option.unit]
    if one.is_flag:
        return _FLAG
    if int in one.kinds:
        return _NUMBER
    return _TEXT_TABLE if any(get_origin(kind) is Mapping for kind in one.kinds) else _STRING


def _by_key() -> dict[str, Declared]:
    """Return the options that a file may give, by section and key."""
    kinds = (LoadOptions, FollowOptions, ChangelogOptions)
    every = (one for kind in kinds for one in declared(kind).values())
    return {one.option.key: one for one in every if one.option.key is not None}


_OPTIONS = _by_key()
# Keys that are not declared options. The keys of `decode` are in `model.decode_spec`.
_OWN_KEYS = {
    "source": ("topic", "config"),
    "target": ("table", "kind"),
    "schedule": (),
    "report": ("metrics",),
    "spark": (),
}
_KINDS = ("rows", *get_args(Keeps))
# The description of the values of each key, by section.
PIPELINE_KEYS: Mapping[str, Mapping[str, str]] = {
    section: {
        **dict.fromkeys(own, _STRING),
        **{
            name.removeprefix(f"{section}."): _meaning(one)
            for name, one in _OPTIONS.items()
            if name.startswith(f"{section}.")
        },
    }
    for section, own in _OWN_KEYS.items()
}
# The first part of the names of Kafka's client settings; TOML reads the rest as nested tables.
_OF_CLIENTS = frozenset({"sasl", "ssl", "security", "username", "password"})
_REQUIRED = (("source", "topic"), ("target", "table"))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A parsed pipeline. `options` are the options of lake functions in the file."""

    topic: str
    table: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    config: str | None = None  # The settings file of Kafka's clients.
    # `rows`, or for a changelog table `latest` or `history`.
    kind: str = "rows"
    metrics: str | None = None  # The path of the metrics of the last run.

    @property
    def is_changelog(self) -> bool:
        """Return whether the table is a changelog table."""
        return self.kind != "rows"

    @property
    def load(self) -> LoadOptions:
        """Return the options of a load with their defaults, even for a changelog table."""
        return filled(LoadOptions, self.options_of(LoadOptions))

    @property
    def bootstrap(self) -> str:
        return self.load["bootstrap"]

    @property
    def store_options(self) -> Mapping[str, str]:
        return self.load["store_options"] or {}

    def options_of(self, kind: type[O]) -> O:
        """Return the options in the file that the TypedDict `kind` of a function declares."""
        known = declared(kind)
        found: Any = {name: one for name, one in self.options.items() if name in known}
        return found  # type: ignore[no-any-return]  # As they were declared.


def read(path: str, bootstrap: str = _BOOTSTRAP) -> Pipeline:
    """Read a pipeline from a file. `bootstrap` is the default cluster.

    Raises OttlaError that names a wrong key.
    """
    try:
        content = Path(path).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(path, f"can't be read: {error}") from error
    parsed = parse(content, path, bootstrap, os.environ)
    folder = Path(path).parent
    options = dict(parsed.options)
    if "decode" in options:
        options["decode"] = schemas_beside(options["decode"], folder)
    return replace(
        parsed,
        options=options,
        table=_beside(folder, parsed.table),
        config=parsed.config and _beside(folder, parsed.config),
        metrics=parsed.metrics and _beside(folder, parsed.metrics),
    )


def _beside(folder: Path, place: str) -> str:
    """Return a relative path as relative to the pipeline's file; other paths and URLs unchanged."""
    return place if not place or _FIXED.match(place) else str(folder / place)


def parse(
    text: str,
    name: str,
    bootstrap: str = _BOOTSTRAP,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Pipeline:
    """Parse the text of a pipeline. `name` is its name in errors. Raises OttlaError.

    In the options of target and Spark, and in `config`, `${NAME}` is replaced by the variable of
    `environment`.
    """
    try:
        sections = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _wrong(name, f"is no TOML: {error}") from error
    for section, content in sections.items():
        if section not in (*PIPELINE_KEYS, "decode"):
            raise _unknown(name, f"section [{section}]", section, (*PIPELINE_KEYS, "decode"))
        if not isinstance(content, dict):
            raise _wrong(name, f"has {section} outside of a section: write [{section}]")
        if section != "decode":
            _require_keys(name, section, content)
    for section, key in _REQUIRED:
        if key not in sections.get(section, {}):
            raise _wrong(name, f"has no {key} in [{section}]")
    place = f"the pipeline {name}"
    source, target, report = sections["source"], sections["target"], sections.get("report", {})
    options: dict[str, Any] = {"bootstrap": bootstrap}
    for key, one in _OPTIONS.items():
        section, _, word = key.partition(".")
        if word in sections.get(section, {}):
            value = sections[section][word]
            options[one.name] = (
                resolved(value, place, environment) if isinstance(value, dict) else one.read(value)
            )
    if "decode" in sections:
        options["decode"] = sections["decode"]
    config = source.get("config")
    return Pipeline(
        topic=source["topic"],
        table=target["table"],
        options=options,
        config=config and expanded(config, f"config in {place}", environment),
        kind=target.get("kind", "rows"),
        metrics=report.get("metrics"),
    )


def _require_keys(name: str, section: str, content: Mapping[str, Any]) -> None:
    known = PIPELINE_KEYS[section]
    for key, value in content.items():
        if key not in known:
            if key in _OF_CLIENTS:
                raise _wrong(
                    name,
                    f"has {key} in [{section}]: settings of Kafka's clients, and the secrets in "
                    'them, stand in a file of their own, which config = "client.properties" names',
                )
            raise _unknown(name, f"key {key} in [{section}]", key, tuple(known))
        if isinstance(value, str):
            _require_no_secret(name, section, key, value)
        if not _fits(value, known[key]):
            # Tables may contain secrets.
            shown = f" = {value!r}" if isinstance(value, str | int | float) else ""
            raise _wrong(name, f"has {key}{shown} in [{section}], which is not {known[key]}")
        one = _OPTIONS.get(f"{section}.{key}")
        choices = _KINDS if key == "kind" else one.choices if one else ()
        if choices and value not in choices:
            words = ", ".join(choices)
            raise _wrong(name, f"has {key} = {value!r} in [{section}]; it is one of {words}")


def _require_no_secret(name: str, section: str, key: str, value: str) -> None:
    """Raise OttlaError for a secret in the file. The message does not show the value."""
    if key == "config" and is_setting(value):
        raise _wrong(
            name,
            f"has settings of Kafka's clients as config in [{section}], where the path of their "
            'file belongs, as in config = "client.properties"',
        )
    if is_secret("", value):
        raise _wrong(
            name,
            f"has a secret in {key} in [{section}]: brokers get theirs from the file that config "
            "names, storages from the environment or from ${NAME} in options, Spark Connect from "
            "the environment variable SPARK_REMOTE",
        )


def _fits(value: object, wanted: str) -> bool:
    if wanted == _FLAG:
        return isinstance(value, bool)
    if wanted == _TEXT_TABLE:
        return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    if wanted == _NUMBER:
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if not isinstance(value, str):
        return False
    if wanted == _MEANS["span"]:
        return span_ms(value) is not None
    if wanted == _MEANS["interval"]:
        return bool(span_ms(value))
    return wanted != _MEANS["size"] or size_bytes(value) is not None


def _unknown(name: str, what: str, word: str, known: tuple[str, ...]) -> OttlaError:
    return _wrong(name, f"has a {what}, which is not known; {hint(word, known)}")


def _wrong(name: str, what: str) -> OttlaError:
    return WrongWords(f"the pipeline {name} {what}", ErrorCode.INVALID_CONFIG)
