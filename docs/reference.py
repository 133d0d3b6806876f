"""Writes docs/reference: settings, commands, client API, environment, errors and complaints.

`python docs/reference.py` brings them up to date. With `--check` it changes nothing, and exits with
1 if it would. Each entry has a heading, so that its address stays the same.
"""

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

import ottla.client
from ottla.base.errors import ErrorCode
from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS
from ottla.base.settings.tables.setting import Setting, Use
from ottla.broker.metrics.catalog import SECTIONS
from ottla.broker.metrics.samples import SampleKind
from ottla.cli.command import cli
from ottla.client import Admin, Consumer, Producer
from ottla.client.admin import AdminOptions
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.producer.options import ProducerOptions

DOCS = Path(__file__).resolve().parent
PAGES = DOCS / "reference"
_SOURCE = DOCS.parent / "src"
_MADE = "This page is made by `python docs/reference.py`.\n"
_WIDTH = 80

# Environment variables of Ottla's own, and how they are used.
ENVIRONMENT = {
    "OTTLA_BOOTSTRAP": "The brokers that commands connect to unless `--bootstrap` is given, as "
    "`HOST:PORT,HOST:PORT`. The default is `localhost:9092`.",
    "OTTLA_CONFIG": "The path of a file with client settings (TLS, logins), for commands, clients "
    "and loads unless `--config` or `config` is given. Executors of Spark read it, too.",
    "OTTLA_PASSWORD": "The password for `ottla user add` and `ottla user password`, so that "
    "scripts need no terminal.",
    "OTTLA_OAUTHBEARER_ALLOWED_URLS": "The addresses, separated by commas, from which clients may "
    "read OAUTHBEARER tokens. `sasl.oauthbearer.token.endpoint.url` must be one of them.",
    "OTTLA_REGISTRY_USER": "The user for a schema registry with basic authentication.",
    "OTTLA_REGISTRY_PASSWORD": "The password that goes with OTTLA_REGISTRY_USER.",
    "OTTLA_REGISTRY_TOKEN": "A bearer token for a schema registry, instead of user and password.",
    "OTTLA_PURE": "If set to anything but `0`, the record codec runs as plain Python although it "
    "was compiled.",
}
# Variables of other programs that Ottla reads, with the page that says how.
ENVIRONMENT_OF_OTHERS = {
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and others of the clouds": "Credentials of object "
    "stores ([storages](../how-to/store-tables.md)).",
    "JAVA_HOME, SPARK_HOME, SPARK_CONF_DIR, MASTER, PYSPARK_PYTHON": "As for Spark itself.",
    "SSL_CERT_FILE": "Certificate authorities for requests to schema registries.",
}


def settings() -> str:
    """Every setting that has an effect, by the kind of thing that it belongs to."""
    lines = [
        "# Settings",
        "",
        "Settings have Kafka's names, types and defaults unless the entry says otherwise. "
        "`ottla config explain NAME` prints the same. Settings that are accepted without effect, "
        "or refused, are listed in [differences](differences.md#defaults-and-settings).",
        "",
        _MADE,
    ]
    for title, kind, table in (
        ("Settings of brokers", "broker", BROKER_SETTINGS),
        ("Settings of topics", "topic", TOPIC_SETTINGS),
        ("Settings of groups", "group", GROUP_SETTINGS),
    ):
        lines += [f"## {title}", ""]
        for _, setting in sorted(table.items()):
            if setting.use is Use.USED and not setting.internal:
                lines += _setting(kind, setting)
    return "\n".join(lines)


def _setting(kind: str, setting: Setting) -> Iterator[str]:
    default = setting.text_of(setting.default)
    facts = [
        f"{kind}, {setting.type.name.lower()}",
        f"default `{default}`" if default else "no default",
    ]
    if setting.validator:
        facts.append(f"valid: {setting.validator.rule}")
    if kind == "broker":
        facts.append(f"changes: {setting.update.value}")
    # The same name may be that of a broker's and of a topic's setting: addresses must differ.
    yield f"### {setting.name}" if kind == "broker" else f"### {setting.name} ({kind})"
    yield ""
    yield f"{setting.doc} ({'; '.join(facts)})"
    yield ""
    if setting.differs:
        yield f"Differs from Kafka: {setting.differs.rstrip('.')}."
        yield ""


def commands() -> str:
    """Every command with its help text."""
    lines = [
        "# Commands",
        "",
        "The text of each command's `--help`. Nearly every command takes `-o json`. `--bootstrap` "
        "may be an Apache Kafka.",
        "",
        _MADE,
    ]
    root = click.Context(cli, info_name="ottla", **cli.context_settings)
    for context in _contexts(cli, root):
        text = "\n".join(line.rstrip() for line in context.get_help().splitlines())
        lines += [f"## {context.command_path}", "", "```text", text, "```", ""]
    return "\n".join(lines)


def _contexts(group: click.Group, parent: click.Context) -> Iterator[click.Context]:
    """Of each command; settings such as names of the help option come from its groups."""
    for name in sorted(group.list_commands(parent)):
        command = group.get_command(parent, name)
        assert command is not None
        settings = {**command.context_settings, "terminal_width": _WIDTH}
        context = click.Context(command, parent=parent, info_name=name, **settings)
        context.max_content_width = _WIDTH
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from _contexts(command, context)
        else:
            yield context


def client_api() -> str:
    """Producer, consumer, administration and their options; values and errors."""
    lines = [
        "# Client API",
        "",
        "`ottla.client` is for asyncio. `ottla.client.sync` has the same names as plain calls. "
        "[Clients](clients.md#ottlaclient) explains how to use them.",
        "",
        _MADE,
    ]
    for one, options in (
        (Producer, ProducerOptions),
        (Consumer, ConsumerOptions),
        (Admin, AdminOptions),
    ):
        lines += [f"## {one.__name__}", "", _prose(one), ""]
        lines += [
            f"### {one.__name__} options",
            "",
            _prose(options),
            "",
            "| option | type |",
            "|---|---|",
        ]
        for name, kind in options.__annotations__.items():
            lines.append(f"| `{name}` | `{_type(kind)}` |")
        lines.append("")
        lines += _members(one.__name__, one)
    for name, part in sorted(_parts().items()):
        lines += [f"## Admin.{name}", "", _prose(part), ""]
        lines += _members(f"Admin.{name}", part)
    lines += ["## Values and errors", ""]
    listed = {"Producer", "Consumer", "Admin"}
    for name in sorted(set(ottla.client.__all__) - listed):
        value = getattr(ottla.client, name)
        if inspect.isclass(value):
            lines += [f"### {name}", "", _prose(value), ""]
    return "\n".join(lines)


def _parts() -> dict[str, type]:
    """The parts of Admin by their names, as their classes are built."""
    admin = Admin("localhost:9092")
    found = {name: type(part) for name, part in vars(admin).items() if not name.startswith("_")}
    return {name: part for name, part in found.items() if part.__module__.startswith("ottla.")}


def _members(owner: str, one: type) -> Iterator[str]:
    for name in sorted(vars(one)):
        member = inspect.unwrap(getattr(one, name))
        if name.startswith("_") or not inspect.isfunction(member):
            continue
        said = _prose(member)
        if said:
            yield f"### {owner}.{name}"
            yield ""
            yield f"`{name}({_parameters(member)})`"
            yield ""
            yield said
            yield ""


def _parameters(function: Callable[..., Any]) -> str:
    shown: list[str] = []
    for name, one in inspect.signature(function).parameters.items():
        if name == "self":
            continue
        is_rest, is_rest_by_name = one.kind is one.VAR_POSITIONAL, one.kind is one.VAR_KEYWORD
        stars = "*" if is_rest else "**" if is_rest_by_name else ""
        default = "" if one.default is one.empty else f"={_value(one.default)}"
        if one.kind is one.KEYWORD_ONLY and not any(x.startswith("*") for x in shown):
            shown.append("*")
        shown.append(f"{stars}{name}{default}")
    return ", ".join(shown)


def _value(value: object) -> str:
    text = repr(value)
    return "…" if " at 0x" in text or len(text) > 30 else text


def _type(kind: object) -> str:
    text = kind.__name__ if isinstance(kind, type) else str(kind)
    return re.sub(r"\b(?:[a-z_]+\.)+", "", text).replace("|", "or")


def _prose(thing: object) -> str:
    """A docstring as Markdown: examples, which are indented, stay blocks."""
    if inspect.isclass(thing):
        return _class_prose(thing)
    return (inspect.getdoc(thing) or "").strip()


def _class_prose(one: type) -> str:
    """From the source: a compiled class has another docstring than a plain one."""
    path = _SOURCE.joinpath(*one.__module__.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ClassDef) and node.name == one.__name__:
            return (ast.get_docstring(node) or "").strip()
    return ""


def environment() -> str:
    """Variables that Ottla reads."""
    lines = ["# Environment variables", "", _MADE]
    for name, meaning in sorted(ENVIRONMENT.items()):
        lines += [f"## {name}", "", meaning, ""]
    lines += ["## Variables of other programs", "", "| variable | use |", "|---|---|"]
    for name, meaning in ENVIRONMENT_OF_OTHERS.items():
        lines.append(f"| {name} | {meaning} |")
    return "\n".join([*lines, ""])


def variables_in_source() -> set[str]:
    """The names of Ottla's own variables that the source speaks of."""
    texts = (path.read_text() for path in _SOURCE.rglob("*.py"))
    return {name for text in texts for name in re.findall(r"\bOTTLA_[A-Z_]*[A-Z]\b", text)}


def errors() -> str:
    """Every error code with what it means and what to do."""
    said = tomllib.loads((DOCS / "errors.toml").read_text())
    lines = [
        "# Errors",
        "",
        "Errors have Kafka's codes. With each one, Ottla's clients and commands print a sentence "
        "that names the cause and the remedy; with `-o json` it is an object. "
        "[Exit codes](../how-to/schedule-loads.md#exit-codes) of `ottla lake` are on another page.",
        "",
        _MADE,
    ]
    for code in ErrorCode:
        meaning, *remedy = said[code.name]
        retry = " A retry may succeed." if code.retriable else ""
        lines += [f"## {code.name}", "", f"Code {int(code)}. {meaning}{retry}", ""]
        if remedy:
            lines += [f"What to do: {remedy[0]}", ""]
    return "\n".join(lines)


def complaints() -> str:
    """What users complain about, each with the command that answers it, or plainly none."""
    found = tomllib.loads((DOCS / "complaints.toml").read_text())["complaint"]
    answered = sum("command" in one for one in found)
    lines = [
        "# Complaints, and what answers them",
        "",
        f"What users of Kafka, of its relatives and of its clients complain about in public. "
        f"{answered} of {len(found)} have a command here; a test runs each of them where the "
        "complaint is true, and checks what it says. The others say what is missing.",
        "",
        _MADE,
    ]
    for one in found:
        lines += [f"## {one['number']}. {one['text'].rstrip('.')}", ""]
        if "command" in one:
            lines += ["```sh", one["command"], "```", ""]
        lines += [f"{one.get('answer') or one['none']} ([seen]({one['seen']}))", ""]
    return "\n".join(lines)


def metrics() -> str:
    """Every metric of a broker, by the origin of its name."""
    lines = [
        "# Metrics",
        "",
        "What a broker serves at the address of "
        "[`metrics.listen`](settings.md#metricslisten), and sends to "
        "[`metrics.otlp.endpoint`](settings.md#metricsotlpendpoint). "
        "[Watch a cluster](../how-to/watch-a-cluster.md) says how they are collected. Each sample "
        "has one broker that reports it: a partition's leader, a group's coordinator, the "
        "controller for the cluster. So sums over all brokers count nothing twice. "
        "`cluster_name` is the id of the cluster. The endpoint also has `process_*` and "
        "`python_*`, the figures of the process. Metrics of tables come from pipelines "
        "([write a pipeline](../how-to/write-a-pipeline.md#metrics)).",
        "",
        _MADE,
    ]
    for section in SECTIONS:
        lines += [f"## {section.title}", "", "| metric | labels | it is |", "|---|---|---|"]
        for metric in section.metrics:
            labels = ", ".join(f"`{label}`" for label in metric.labels)
            kind = "" if metric.kind is SampleKind.GAUGE else " (counter)"
            lines.append(f"| `{metric.name}`{kind} | {labels} | {metric.help} |")
        lines.append("")
    return "\n".join(lines)


MADE: dict[str, Callable[[], str]] = {
    "settings.md": settings,
    "commands.md": commands,
    "client-api.md": client_api,
    "environment.md": environment,
    "errors.md": errors,
    "complaints.md": complaints,
    "metrics.md": metrics,
}


def main(arguments: list[str]) -> int:
    """Rewrite the pages; with `--check`, only print those that would change."""
    stale = []
    for name, made in MADE.items():
        path, text = PAGES / name, made().rstrip() + "\n"
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(text)
    sys.stdout.write("".join(f"{name} changes\n" for name in stale))
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
