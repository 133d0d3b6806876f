"""Schemas of a registry with Confluent's API."""

import io
import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import fastavro
import pytest
from rig.registry import RigRegistry, schema_registry

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.decode_spec import Decode, Format, columns, decode_from
from ottla.lake.model.layout import TypedSchema
from ottla.lake.rows.decoder import Decoded, Decoder
from ottla.lake.rows.registry import NoSuchSchema, RegisteredSchemas, SchemaRegistry
from ottla.lake.rows.value_reader import BadValue
from tests.unit.lake.decode.batches import errors, lists, raw
from tests.unit.lake.decode.test_protobuf import MONEY, PROTO, message_class

V1 = {"type": "record", "name": "u", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "tag", "type": ["null", "string"], "default": None}]}  # type: ignore[misc]


@pytest.fixture
def registry() -> Iterator[RigRegistry]:
    with schema_registry() as running:
        yield running


def client(registry: RigRegistry, **more: Any) -> SchemaRegistry:
    more = {"environment": {}, "pause": lambda _seconds: None, **more}
    return SchemaRegistry(registry.url, **more)


def framed(number: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return b"\0" + number.to_bytes(4, "big") + out.getvalue()


def decoded(
    registry: RigRegistry, content: list[bytes | None], kind: str = "avro", **declared: str
) -> Decoded:
    how = Format(kind, columns(declared))  # type: ignore[arg-type]
    decode = Decode(value=how, registry=registry.url)
    return Decoder(
        decode, TypedSchema(value=how.columns or ()), RegisteredSchemas(client(registry))
    ).decode(raw(content))


def test_each_record_is_read_by_the_schema_that_it_names(registry: RigRegistry) -> None:
    """Two versions side by side; the registry is asked once for each."""
    first, second = (registry.register("t-value", json.dumps(one)) for one in (V1, V2))
    content = [
        framed(first, V1, {"id": 1}),
        framed(second, V2, {"id": 2, "tag": "x"}),
        framed(first, V1, {"id": 3}),
        None,
    ]
    found = decoded(registry, content, id="int64", tag="string")
    assert errors(found) == {}
    assert lists(found) == [[1, 2, 3, None], [None, "x", None, None]]
    assert registry.requests == [f"/schemas/ids/{first}", f"/schemas/ids/{second}"]


def test_a_record_of_no_schema_is_a_bad_row(registry: RigRegistry) -> None:
    """A number that the registry does not have, the wrong one, and no number at all."""
    number = registry.register("t-value", json.dumps(V1))
    other = registry.register("o-value", '"string"')
    loop = registry.register(
        "l", '{"type":"record","name":"N","fields":[{"name":"n","type":["null","N"]}]}'
    )
    as_json = registry.register("j", "{}", "JSON")
    good = framed(number, V1, {"id": 7})
    content = [
        good,
        framed(999, V1, {"id": 7}),
        framed(other, V1, {"id": 7}),
        framed(loop, V1, {"id": 0}),
        framed(as_json, V1, {"id": 0}),
        b"\x01abcde",
        b"",
        good[:5],
        good,
    ]
    found = decoded(registry, content, id="int64")
    said = errors(found)
    assert lists(found) == [[7, *[None] * 7, 7]]
    assert said.keys() == set(range(1, 8))
    assert said[1] == "schema: the registry has no schema 999"
    assert "the schema is recursive" in said[3]
    assert said[4] == f"schema: schema {as_json} of the registry is JSON"
    assert said[5].startswith("decode.value: no number of a schema stands before the value")
    assert said[7] == "decode.value: no Avro of this schema: it ends too early"
    assert {one.row: one.schema_id for one in found.refused}[1] == 999


def test_a_schema_may_refer_to_others(registry: RigRegistry) -> None:
    """In Avro by name, in Protobuf by file; references of references as well."""
    registry.register("state", '{"type":"enum","name":"State","symbols":["A"]}')
    registry.register(
        "part",
        '{"type":"record","name":"Part","fields":[{"name":"s","type":"State"}]}',
        references=[("State", "state", 1)],
    )
    main = registry.register(
        "t-value",
        '{"type":"record","name":"M","fields":[{"name":"part","type":"Part"}]}',
        references=[("Part", "part", 1)],
    )
    found = decoded(registry, [b"\0" + main.to_bytes(4, "big") + b"\0"], part="struct<s: string>")
    assert (errors(found), lists(found)) == ({}, [[{"s": "A"}]])

    registry.register("money", MONEY, "PROTOBUF")
    order = registry.register("o", PROTO, "PROTOBUF", [("common/money.proto", "money", 1)])
    reader = RegisteredSchemas(client(registry)).reader(order, (0, 0))
    assert str(reader.type) == "struct<sku: string, count: int64>"
    framing = b"\0" + order.to_bytes(4, "big")
    lines = decoded(
        registry,
        [framing + b"\x04\0\0\x0a\x01x", framing + b"\0\x08\x07"],
        "protobuf",
        sku="string",
        id="int64",
    )
    assert (errors(lines), lists(lines)) == ({}, [["x", None], [None, 7]])
    assert message_class is not None


def test_a_registry_that_does_not_answer_blames_no_record(registry: RigRegistry) -> None:
    """It is asked again; at last the whole load fails, and no row goes to the dead letters."""
    number = registry.register("t-value", json.dumps(V1))
    registry.fail_next = 4
    assert client(registry).schema(number).text == json.dumps(V1)
    assert len(registry.requests) == 5
    registry.fail_next = 100
    with pytest.raises(OttlaError, match=r"tried 5 times: .* answers 503 made to fail") as caught:
        decoded(registry, [framed(number, V1, {"id": 1})], id="int64")
    assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(OttlaError, match="does not answer"):
        SchemaRegistry("http://127.0.0.1:1", environment={}, pause=lambda _seconds: None).schema(1)


def test_the_second_registry_answers_where_the_first_does_not(registry: RigRegistry) -> None:
    """URLs are tried one after another."""
    number = registry.register("t-value", json.dumps(V1))
    several = SchemaRegistry(
        f"http://127.0.0.1:1, {registry.url}/", environment={}, pause=lambda _s: None
    )
    assert several.schema(number).kind == "AVRO"


def test_a_registry_lets_in_by_password_or_token_of_the_environment(registry: RigRegistry) -> None:
    """And a refusal says which variables are meant, without their values."""
    number = registry.register("t-value", json.dumps(V1))
    registry.user = ("ann", "secret:1")
    environment = {"OTTLA_REGISTRY_USER": "ann", "OTTLA_REGISTRY_PASSWORD": "secret:1"}
    assert client(registry, environment=environment).schema(number).id == number
    registry.user, registry.token = None, "tok"
    assert client(registry, environment={"OTTLA_REGISTRY_TOKEN": "tok"}).schema(number)
    with pytest.raises(OttlaError, match=r"refuses access: .* 401 Unauthorized") as caught:
        client(registry, environment=environment).schema(number)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://ann:secret@host:8081", "http://ann:se/secret@host:8081"])
def test_a_password_in_a_url_is_refused_before_it_is_on_record(url: str) -> None:
    """Also where no format needs the registry: what is declared stands in manifests."""
    for refuses in (SchemaRegistry, lambda one: decode_from({"value": "json", "registry": one})):
        with pytest.raises(OttlaError, match="holds no password") as refused:
            refuses(url)
        assert "secret" not in refused.value.message


def test_a_password_does_not_follow_a_redirect() -> None:
    """The server that a registry names may be anyone's."""
    seen: list[tuple[str, str | None]] = []

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers["Authorization"]))
            self.send_response(302 if self.path != "/there" else 404)
            self.send_header("Location", "/there")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = HTTPServer(("127.0.0.1", 0), Redirecting)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        asked = SchemaRegistry(
            f"http://127.0.0.1:{server.server_port}",
            environment={"OTTLA_REGISTRY_TOKEN": "tok"},
            attempts=1,
        )
        with pytest.raises(OttlaError):
            asked.schema(1)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert seen == [("/schemas/ids/1", "Bearer tok"), ("/there", None)]


def test_a_server_that_is_no_registry_makes_no_dead_letters(registry: RigRegistry) -> None:
    """A 404 without the registry's code is no word about a schema."""
    with pytest.raises(OttlaError, match="404"):
        SchemaRegistry(f"{registry.url}/elsewhere", environment={}).schema(1)
    with pytest.raises(OttlaError, match="is no URL of a registry"):
        SchemaRegistry("registry:8081")
    with pytest.raises(NoSuchSchema):
        client(registry).schema(99)


def test_a_schema_that_cannot_be_used_is_compiled_once(registry: RigRegistry) -> None:
    """Each record that names it is refused with the same reason."""
    number = registry.register("p", "syntax = oops", "PROTOBUF")
    schemas = RegisteredSchemas(client(registry))
    for _ in range(2):
        with pytest.raises(BadValue, match="can't be compiled"):
            schemas.reader(number, (0,))
    assert len(registry.requests) == 1


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("text/html", b"<html>Please log in: hunter2</html>", r"answer \(text/html\) is no JSON"),
        ("application/json", b"[1]", "is no JSON object; is the URL that of a registry"),
        ("application/json", b"[" * 100_000, "is no JSON object"),
        ("application/json", b'{"token": "hunter2"}', "answer for 1 has no schema; is the URL"),
        ("application/json", b'{"schema": "x", "references": [1]}', "in a form that is not known"),
        ("application/json", b'{"schema": "x", "references": 7}', "in a form that is not known"),
    ],
)
def test_an_answer_that_is_no_schema_is_named_and_not_repeated(
    kind: str, body: bytes, said: str
) -> None:
    """What stands in it may be of another server, and for others."""
    server = answering(lambda _path: (200, {"Content-Type": kind}, body))
    with server as url, pytest.raises(OttlaError, match=said) as error:
        SchemaRegistry(url, environment={}, pause=lambda _s: None).schema(1)
    assert "hunter2" not in error.value.message


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("file:///etc/passwd", "a redirect to file://,"),
        ("ftp://127.0.0.1/key", "a redirect to ftp://127.0.0.1"),
        ("http://metadata.example/role?key=hunter2", "a redirect to http://metadata.example,"),
        ("http://127.0.0.1:1/other", "a redirect to http://127.0.0.1,"),
    ],
)
def test_a_redirect_to_another_server_is_not_followed(to: str, said: str) -> None:
    """A registry does not choose what the machines of a cluster ask for."""
    asked: list[str] = []

    def answer(path: str) -> tuple[int, dict[str, str], bytes]:
        asked.append(path)
        return 302, {"Location": to}, b""

    with answering(answer) as url, pytest.raises(OttlaError, match=re.escape(said)) as error:
        SchemaRegistry(url, environment={}, pause=lambda _s: None).schema(1)
    assert "hunter2" not in error.value.message
    assert asked == ["/schemas/ids/1"]


def test_an_answer_that_does_not_end_is_broken_off() -> None:
    """A server may send a byte now and then: each in time, and all of it never."""
    now_s = itertools.count(0, 40)
    body = b'{"schema": "\\"long\\""}' + b" " * (4 << 20)
    with answering(lambda _path: (200, {}, body)) as url:
        slow = SchemaRegistry(url, environment={}, attempts=1, now_s=lambda: float(next(now_s)))
        with pytest.raises(OttlaError, match="its answer took more than 60 seconds"):
            slow.schema(1)
        assert SchemaRegistry(url, environment={}).schema(1).text == '"long"'


@contextmanager
def answering(
    answer: Callable[[str], tuple[int, dict[str, str], bytes]],
) -> Iterator[str]:
    """The URL of a server that answers each path so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
