"""Writes the tables of these documents that the code itself knows.

`python docs/tables.py` brings them up to date; with `--check` it only tells, by exit code 1.
What stands between `<!-- begin NAME -->` and `<!-- end NAME -->` is made here.
"""

import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ottla.base.patterns import PATTERN_BYTES_MAX, PATTERN_CHARACTERS_MAX
from ottla.base.settings import BROKER_SETTINGS, TOPIC_SETTINGS
from ottla.base.settings.tables.setting import Setting, Use
from ottla.broker.access.acls import ACLS_PER_REQUEST_MAX
from ottla.broker.login.login import FIRST_BYTES_MAX
from ottla.broker.login.logins import REQUEST_BYTES_MAX
from ottla.broker.process.apis import served
from ottla.broker.requests.handler import Handler
from ottla.broker.requests.portions import ELEMENTS_MAX, WHOLE_ELEMENTS_MAX
from ottla.group.coordinator.room import GROUP_ID_CHARACTERS_MAX
from ottla.lake.source.source_options import OPTIONS
from ottla.metadata.topic_plan import PARTITIONS_PER_REQUEST_MAX
from ottla.network.memory_budget import BYTES_MAX
from ottla.network.service import ConnectionLimits
from ottla.network.tls_acceptor import HANDSHAKE_TIMEOUT_S
from ottla.record.compression import EXPANDED_FREE_BYTES, EXPANDED_RATIO_MAX, MAX_EXPANDED_BYTES
from ottla.security.sasl.scram_messages import MESSAGE_BYTES_MAX
from ottla.security.tokens import NAMES_CHARACTERS_MAX, TOKENS_OF_REQUESTER_MAX
from ottla.storage.producers.state import PRODUCERS_MAX
from ottla.wire.api import FIRST_PRIVATE_KEY
from ottla.wire.primitive import TAGS_MAX

DOCS = Path(__file__).resolve().parent
_BLOCK = re.compile(r"(<!-- begin ([a-z-]+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)
# How the docstring of a handler begins: name, key, versions, and a sentence.
_HEADING = re.compile(r"(\w+) \((\d+)\)(?:, versions? [\d-]+)?[:;] (.*?)\.(?:\s|$)", re.DOTALL)


def settings_that_differ() -> str:
    """Settings whose default or meaning is not Kafka's, and why."""
    rows = [
        (f"`{setting.name}`", _default(setting), setting.differs)
        for setting in _visible(BROKER_SETTINGS, TOPIC_SETTINGS)
        if setting.differs and setting.use is Use.USED
    ]
    return _table(("setting", "default here", "difference"), rows)


def options_table() -> str:
    """Options of the data source `ottla`."""
    rows = [
        (f"`{one.name}`", one.meaning, "all" if one.name == "columns" else one.default or "")
        for one in OPTIONS
    ]
    return _table(("option", "means", "default"), rows)


def limits_table() -> str:
    """What bounds clients, with the defaults of settings and the numbers of the code."""
    connection = ConnectionLimits()
    defaults = {name: _default(setting) for name, setting in BROKER_SETTINGS.items()}
    rows = [
        ("a request before the client has chosen a SASL mechanism", _size(FIRST_BYTES_MAX), ""),
        ("a request before login", _size(REQUEST_BYTES_MAX), "sasl.server.max.receive.size"),
        ("parts of requests before login, of all connections", _size(BYTES_MAX), ""),
        ("a message of SCRAM", _size(MESSAGE_BYTES_MAX), ""),
        ("a TLS handshake", f"{HANDSHAKE_TIMEOUT_S:.0f} s", ""),
        ("time from connection to login", "", "connection.authentication.timeout.ms"),
        ("delay of the answer to a failed login, doubled with each up to 5 s", "",
         "connection.failed.authentication.delay.ms"),
        ("failed logins and handshakes a second of an address before it is slowed; twice as many "
         "of all addresses", "", "max.failed.authentication.rate"),
        ("connections of the broker; `listener.name.NAME.` in front: of a listener", "",
         "max.connections"),
        ("connections of all listeners but the brokers' own", "half of the open files allowed", ""),
        ("connections of an address", "", "max.connections.per.ip"),
        ("connections of a user", "", "max.connections.per.user"),
        ("new connections a second; of a listener, too", "", "max.connection.creation.rate"),
        ("time without a request", "", "connections.max.idle.ms"),
        ("a request after login", "", "socket.request.max.bytes"),
        ("elements of all lists in a request, where it is served in portions",
         f"{ELEMENTS_MAX:,}", ""),
        ("elements of all lists in any other request", f"{WHOLE_ELEMENTS_MAX:,}", ""),
        *(
            (f"the same, of {api.name}", f"{api.fewer_elements_max:,}", "")
            for _, api in sorted(served().items())
            if api.fewer_elements_max is not None
        ),
        ("tagged fields of one section of a request", f"{TAGS_MAX:,}", ""),
        ("requests of one connection without an answer",
         f"{connection.unanswered_requests_max}, {_size(connection.unanswered_bytes_max)}", ""),
        ("bytes of large requests that are being received, on the whole broker", "1 GiB if unset",
         "queued.max.request.bytes"),
        ("of these, of a user, or of an address without login", "a quarter", ""),
        ("partitions made by one request", f"{PARTITIONS_PER_REQUEST_MAX:,}", ""),
        ("a compressed batch where the broker must expand it",
         f"{_size(EXPANDED_FREE_BYTES)} and {EXPANDED_RATIO_MAX:,} times its size, at most "
         f"{_size(MAX_EXPANDED_BYTES)}", ""),
        ("a batch", "", "message.max.bytes"),
        ("delegation tokens of one requester", f"{TOKENS_OF_REQUESTER_MAX:,}", ""),
        ("total length of the names in a delegation token", _size(NAMES_CHARACTERS_MAX), ""),
        ("fetch sessions", "", "max.incremental.fetch.session.cache.slots"),
        ("groups of a broker; of these, one user begins a quarter", "", "group.max.count"),
        ("the name of a new group", f"{GROUP_ID_CHARACTERS_MAX:,} characters", ""),
        ("idempotent producers that a partition remembers", f"{PRODUCERS_MAX:,}", ""),
        ("ACLs made or deleted by one request", f"{ACLS_PER_REQUEST_MAX:,}", ""),
        ("members of a group, by protocol", "", "group.max.size"),
        ("", "", "group.consumer.max.size"),
        ("metadata of a committed offset", "", "offset.metadata.max.bytes"),
        ("a pattern of topics or transactional ids, read by RE2",
         f"{PATTERN_CHARACTERS_MAX:,} characters, {_size(PATTERN_BYTES_MAX)}", ""),
    ]  # fmt: skip
    return _table(
        ("what", "at most", "setting"),
        ((what, most or defaults[name], f"`{name}`" if name else "") for what, most, name in rows),
    )


def _size(size_bytes: int) -> str:
    if size_bytes >= 1 << 20:
        return f"{size_bytes >> 20} MiB"
    return f"{size_bytes >> 10} KiB"


def settings_refused() -> str:
    """Settings that switch on what is not there: setting them is an error."""
    names = _names(Use.REFUSED)
    return _list(names)


def settings_without_effect() -> str:
    """Settings that are taken, so that an existing file works, and change nothing: by prefix."""
    every = [*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values()]
    used = {setting.name for setting in every if setting.use is Use.USED}
    unused = _names(Use.UNUSED)
    return _list(sorted({_family(name, unused, used) for name in unused}))


def _family(name: str, unused: list[str], used: set[str]) -> str:
    """The shortest beginning that `name` shares with others of its kind and no used one."""
    words = name.split(".")
    for count in range(1, len(words)):
        prefix = ".".join(words[:count]) + "."
        alike = sum(one.startswith(prefix) for one in unused)
        if alike > 1 and not any(one.startswith(prefix) for one in used):
            return prefix + "*"
    return name


def apis_served() -> str:
    """Every API that clients are told of, with its versions here and in Kafka 4.3."""
    rows = []
    kafka = {each["key"]: _span(*each["versions"]) for each in kafka_apis().values()}
    for key, api in sorted(served().items()):
        if api.between_brokers:
            continue
        rows.append(
            (
                str(key),
                api.name,
                _span(*api.versions),
                "none: Ottla's own" if key >= FIRST_PRIVATE_KEY else kafka[key],
                _purpose(key),
            )
        )
    return _table(("key", "API", "served", "Kafka 4.3", "for"), rows)


def apis_that_differ() -> str:
    """APIs and versions of a broker of Kafka's that are not served here, and why not."""
    rows = []
    for name, kafka in kafka_apis().items():
        key, (first, last) = kafka["key"], kafka["versions"]
        api = served().get(key)
        here = "not served"
        if api is not None:
            here = "brokers only" if api.between_brokers else _span(*api.versions)
        is_whole = here == _span(first, last)
        assert is_whole == ("why" not in kafka), f"{name}: is it served, or why not?"
        if not is_whole:
            rows.append((f"{name} ({key})", _span(first, last), here, kafka["why"]))
    return _table(("API", "Kafka 4.3", "here", "why"), rows)


def kafka_apis() -> dict[str, dict[str, Any]]:
    """What a broker of Kafka 4.3 serves, by name."""
    return tomllib.loads((DOCS / "kafka_apis.toml").read_text())


BLOCKS: dict[str, Callable[[], str]] = {
    "settings-that-differ": settings_that_differ,
    "data-source-options": options_table,
    "settings-refused": settings_refused,
    "settings-without-effect": settings_without_effect,
    "limits": limits_table,
    "apis-served": apis_served,
    "apis-that-differ": apis_that_differ,
}


def updated(text: str) -> str:
    """A document with its blocks made anew. Raises KeyError for a block nobody makes."""
    return _BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}\n{found[3]}", text)


def main(arguments: list[str]) -> int:
    """Rewrite the documents, or tell which of them are not up to date."""
    stale = []
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text()
        new = updated(text)
        if new != text:
            stale.append(path.name)
            if "--check" not in arguments:
                path.write_text(new)
    sys.stdout.write("".join(f"{name} changes\n" for name in stale))
    return 1 if stale and "--check" in arguments else 0


def _visible(*tables: dict[str, Setting]) -> list[Setting]:
    return [setting for table in tables for setting in table.values() if not setting.internal]


def _default(setting: Setting) -> str:
    text = setting.text_of(setting.default)
    return f"`{text}`" if text else "unset"


def _names(use: Use) -> list[str]:
    tables = _visible(BROKER_SETTINGS, TOPIC_SETTINGS)
    return sorted({setting.name for setting in tables if setting.use is use})


@cache
def _handlers() -> dict[int, type[Handler]]:
    found: dict[int, type[Handler]] = {}
    kinds = list(Handler.__subclasses__())
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if "api" in vars(kind) and kind.__module__.startswith("ottla."):
            found[kind.api.key] = kind
    return found


def _purpose(key: int) -> str:
    handler = _handlers()[key]
    name = handler.__name__
    # A handler that has a module of its own is described there.
    described = (inspect.getdoc(each) or "" for each in (handler, inspect.getmodule(handler)))
    found = next(filter(None, map(_HEADING.match, described)), None)
    assert found, f"{name} does not begin as its siblings do"
    assert int(found[2]) == key, f"{name} calls itself {found[2]}"
    return " ".join(found[3].split())


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) + "."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
