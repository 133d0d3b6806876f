"""A client of a schema registry with Confluent's API, and the readers of its schemas.

Credentials come from the environment: OTTLA_REGISTRY_USER with OTTLA_REGISTRY_PASSWORD, or
OTTLA_REGISTRY_TOKEN. They never appear in a manifest or a message.
"""

import json
import os
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import requests
from requests.auth import HTTPBasicAuth
from urllib3.exceptions import HTTPError

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.decode_spec import Decode, registry_urls
from ottla.lake.rows.avro_values import AvroReader
from ottla.lake.rows.protobuf_values import ProtobufReader, compiled_texts
from ottla.lake.rows.value_reader import BadValue, SchemaUnusable, ValueReader
from ottla.lake.store.retries import retried

_ATTEMPTS = 5
_TIMEOUT_SECONDS = 10.0
_REDIRECTS_MAX = 5
_ANSWER_BYTES_MAX = 64 << 20
# The time limit for a whole answer, as a server may send it byte by byte.
_ANSWER_SECONDS = 60.0
_CHUNK_BYTES = 1 << 20
# The longest part of an answer that a message repeats.
_SHOWN_MAX = 200
_IS_IT_ONE = "is the URL that of a registry with Confluent's API?"
# A registry refuses cycles of references, but an answer may be wrong.
_REFERENCES_MAX = 200
# The registry's error codes for a missing subject, version or schema. Any other 404 comes from a
# server that is not a registry.
_NOT_FOUND = frozenset({40401, 40402, 40403})
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
_HEADERS = {
    "Accept": "application/vnd.schemaregistry.v1+json, application/json",
    "Accept-Encoding": "identity",
}
_FILE = "ottla_schema.proto"

Login = Callable[[requests.PreparedRequest], requests.PreparedRequest]


class _NoAnswer(OttlaError):
    """Raised if an attempt failed and a retry may succeed."""


class NoSuchSchema(Exception):
    """Raised if the registry reports that there is no such schema."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema: its text, its type, and the schemas that it refers to.

    `references` has the texts of these schemas by name, in an order in which each schema comes
    after the schemas that it needs.
    """

    id: int
    kind: str  # One of AVRO, PROTOBUF and JSON.
    text: str
    references: Mapping[str, str] = field(default_factory=dict)


class SchemaRegistry:
    """A client of one registry, at one or several URLs (`http://a:8081,http://b:8081`).

    If the registry does not answer or refuses access, OttlaError is raised, which fails the load,
    because the records are not bad.
    """

    def __init__(
        self,
        urls: str,
        *,
        environment: Mapping[str, str] = os.environ,
        attempts: int = _ATTEMPTS,
        pause: Callable[[float], None] = time.sleep,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._urls = registry_urls(urls)
        self._login = _login(environment)
        self._attempts = attempts
        self._pause = pause
        self._now_s = now_s

    def schema(self, number: int) -> RegisteredSchema:
        """Return the schema with this id. Raises NoSuchSchema or OttlaError."""
        answer = self._get(f"/schemas/ids/{number}")
        text, kind = answer.get("schema"), answer.get("schemaType", "AVRO")
        if not isinstance(text, str) or not isinstance(kind, str):
            raise _wrong(f"the registry's answer for {number} has no schema; {_IS_IT_ONE}")
        found: dict[str, str] = {}
        self._refer(answer, found, set())
        return RegisteredSchema(number, kind, text, found)

    def _refer(
        self, answer: Mapping[str, Any], found: dict[str, str], asked: set[tuple[str, int]]
    ) -> None:
        """Add the schemas that `answer` refers to, each after the schemas that it needs."""
        for name, subject, version in _references(answer):
            if (subject, version) in asked:
                continue
            asked.add((subject, version))
            if len(asked) > _REFERENCES_MAX:
                raise _wrong(
                    f"a schema of the registry refers to more than {_REFERENCES_MAX} others"
                )
            try:
                one = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}")
            except NoSuchSchema:
                raise _wrong(
                    f"the registry has no version {version} of {subject}, to which a schema refers"
                ) from None
            self._refer(one, found, asked)
            found[name] = str(one.get("schema"))

    def _get(self, path: str) -> Mapping[str, Any]:
        """Return the answer. Raises NoSuchSchema, or OttlaError after all attempts have failed."""
        urls = cycle(self._urls)
        tries = retried(self._attempts, _NoAnswer, first_s=0.2, longest_s=5.0, sleep=self._pause)
        for attempt in tries:
            with attempt:
                url = next(urls)
                try:
                    return self._ask(url, path)
                except ValueError as error:
                    why = f"{url}: {error}"
                except (requests.RequestException, HTTPError, OSError) as error:
                    why = f"{url} does not answer: {error}"
                raise _NoAnswer(
                    ErrorCode.COORDINATOR_NOT_AVAILABLE,
                    f"the schema registry can't be asked, tried {self._attempts} times: {why}. "
                    "Nothing was loaded; run it again once the registry answers",
                )
        raise AssertionError("the last attempt returns or raises")

    def _ask(self, url: str, path: str) -> Mapping[str, Any]:
        """Return the JSON object of one answer.

        Raises NoSuchSchema, OttlaError, or another error that may be retried. A redirect is only
        followed to the same host, also from HTTP to HTTPS, because a faulty registry must not make
        a cluster's machines send requests to other servers.
        """
        at, login = url + path, self._login
        for _ in range(_REDIRECTS_MAX):
            with requests.get(
                at,
                headers=_HEADERS,
                auth=login,
                timeout=_TIMEOUT_SECONDS,
                verify=_authorities(),
                allow_redirects=False,
                stream=True,
            ) as answer:
                if answer.is_redirect:
                    at, login = _redirected(url, at, answer), _no_login
                    continue
                if answer.status_code >= 400:
                    raise ValueError(_refused(url, answer))
                content = self._content(answer)
            kind = str(answer.headers.get("Content-Type", "no type"))[:_SHOWN_MAX]
            try:
                found = json.loads(content)
            except (ValueError, RecursionError):
                found = None
            if not isinstance(found, dict):
                raise ValueError(f"its answer ({kind}) is no JSON object; {_IS_IT_ONE}")
            return found
        raise ValueError(f"it redirects more than {_REDIRECTS_MAX} times")

    def _content(self, answer: requests.Response) -> bytes:
        """Return the body of an answer. Raises ValueError if it is too large or takes too long."""
        until_s = self._now_s() + _ANSWER_SECONDS
        content = bytearray()
        while chunk := answer.raw.read1(_CHUNK_BYTES):
            content += chunk
            if len(content) > _ANSWER_BYTES_MAX:
                raise ValueError(f"its answer is larger than {_ANSWER_BYTES_MAX} bytes")
            if self._now_s() > until_s:
                raise ValueError(f"its answer took more than {_ANSWER_SECONDS:.0f} seconds")
        return bytes(content)


def _refused(url: str, answer: requests.Response) -> str:
    """Return the message of an error that may be retried.

    Raises NoSuchSchema, or OttlaError for an error that is not retried.
    """
    code = answer.status_code
    try:
        body = json.loads(answer.raw.read(10_000))
    except (OSError, ValueError, HTTPError):
        body = None
    body = body if isinstance(body, dict) else {}
    reason = str(body.get("message") or answer.reason)
    words = f"answers {code} {reason if len(reason) <= _SHOWN_MAX else f'{reason[:_SHOWN_MAX]}…'}"
    if code == 404 and body.get("error_code") in _NOT_FOUND:
        raise NoSuchSchema(f"{url} {words}")
    if code in {401, 403}:
        raise OttlaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"the schema registry refuses access: {url} {words}. Set OTTLA_REGISTRY_USER and "
            "OTTLA_REGISTRY_PASSWORD, or OTTLA_REGISTRY_TOKEN, where tasks run, too",
        )
    if code not in _RETRIED:
        raise _wrong(f"the schema registry: {url} {words}")
    return words


def _authorities() -> str | bool:
    """Return the path of the certificate authorities that are trusted for a registry.

    It comes from REQUESTS_CA_BUNDLE, from SSL_CERT_FILE or SSL_CERT_DIR, or from the system. If
    there is none, True makes `requests` use its own authorities.
    """
    paths = ssl.get_default_verify_paths()
    return os.environ.get("REQUESTS_CA_BUNDLE") or paths.cafile or paths.capath or True


def _redirected(url: str, asked: str, answer: requests.Response) -> str:
    """Return the target of a redirect. Raises OttlaError if it is on another server."""
    location = urljoin(asked, str(answer.headers["Location"]))
    before, after = urlsplit(asked), urlsplit(location)
    is_same = (before.scheme, before.netloc) == (after.scheme, after.netloc)
    to_https = (before.scheme, after.scheme) == ("http", "https")
    if not is_same and not (to_https and before.hostname == after.hostname):
        # Leave out the path and the query, which may contain secrets.
        raise _wrong(
            f"the schema registry: {url} answers {answer.status_code} with a redirect to "
            f"{after.scheme}://{after.hostname or ''}, which is not followed: name that registry's "
            "own URL if it is meant"
        )
    return location


def _references(answer: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Return name, subject and version of each reference. Raises OttlaError."""
    try:
        return [
            (str(one["name"]), str(one["subject"]), int(one["version"]))
            for one in answer.get("references") or ()
        ]
    except (TypeError, KeyError, ValueError):
        raise _wrong(
            f"a schema of the registry refers to others in a form that is not known; {_IS_IT_ONE}"
        ) from None


def _no_login(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Send no login. Without this function, requests would use the user's .netrc."""
    return request


def _login(environment: Mapping[str, str]) -> Login:
    token = environment.get("OTTLA_REGISTRY_TOKEN")
    user = environment.get("OTTLA_REGISTRY_USER")
    if not token and user:
        password = environment.get("OTTLA_REGISTRY_PASSWORD", "")
        basic: Login = HTTPBasicAuth(user.encode(), password.encode())
        return basic
    if not token:
        return _no_login

    def bearer(request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {token}"
        return request

    return bearer


def _wrong(message: str) -> OttlaError:
    return OttlaError(ErrorCode.UNKNOWN_SERVER_ERROR, message)


class RegisteredSchemas:
    """The readers of a registry's schemas, by schema id. Each reader is made once.

    A schema that is missing or cannot be used makes each record with its id a bad record.
    """

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._schemas: dict[int, RegisteredSchema | None] = {}
        self._readers: dict[tuple[int, tuple[int, ...]], ValueReader | BadValue] = {}
        self._descriptors: dict[int, bytes] = {}

    def reader(self, schema_id: int, indexes: tuple[int, ...]) -> ValueReader:
        """Return the reader of a schema; in Protobuf, of the message at `indexes` in its file.

        Raises BadValue if the schema does not exist or cannot be used. Raises OttlaError if the
        registry does not answer.
        """
        found = self._readers.get((schema_id, indexes))
        if found is None:
            try:
                found = self._made(self._schema(schema_id), indexes)
            except BadValue as error:
                found = error
            self._readers[schema_id, indexes] = found
        if isinstance(found, BadValue):
            raise BadValue(str(found), "schema")
        return found

    def _schema(self, number: int) -> RegisteredSchema:
        if number not in self._schemas:
            try:
                self._schemas[number] = self._registry.schema(number)
            except NoSuchSchema:
                self._schemas[number] = None
        found = self._schemas[number]
        if found is None:
            raise BadValue(f"the registry has no schema {number}")
        return found

    def _made(self, found: RegisteredSchema, indexes: tuple[int, ...]) -> ValueReader:
        if found.kind == "AVRO" and not indexes:
            return AvroReader(found.text, list(found.references.values()))
        if found.kind == "PROTOBUF" and indexes:
            if found.id not in self._descriptors:
                texts = {**found.references, _FILE: found.text}
                self._descriptors[found.id] = compiled_texts(texts, _FILE)
            return ProtobufReader(self._descriptors[found.id], indexes)
        raise SchemaUnusable(f"schema {found.id} of the registry is {found.kind}")


def schemas_of(decode: Decode) -> RegisteredSchemas | None:
    """Return the schemas of the registry that a declaration names; None if it names none."""
    return RegisteredSchemas(SchemaRegistry(decode.registry)) if decode.registry else None
