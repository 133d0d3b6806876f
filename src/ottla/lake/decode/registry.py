"""A client of a schema registry with Confluent's API, blocking; schemas are cached by their number.

What it needs to be let in comes from the environment: OTTLA_REGISTRY_USER with
OTTLA_REGISTRY_PASSWORD, or OTTLA_REGISTRY_TOKEN. None of that stands in a manifest or a message.
"""

import base64
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ottla.base.errors import ErrorCode, OttlaError

_TIMEOUT_SECONDS = 10.0
_ATTEMPTS = 5
_FIRST_PAUSE_SECONDS = 0.2
_ANSWER_BYTES_MAX = 64 << 20
# For the whole of an answer, which a server may send byte by byte.
_ANSWER_SECONDS = 60.0
_CHUNK_BYTES = 1 << 20
# What a message repeats of an answer.
_SHOWN_MAX = 200
_IS_IT_ONE = "is the URL that of a registry with Confluent's API?"
# References to references; a registry refuses cycles, but an answer may be anything.
_REFERENCES_MAX = 200
# Subject, version, schema. Any other 404 is of a server that is no registry.
_NOT_FOUND = frozenset({40401, 40402, 40403})
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})


class _SameHost(HTTPRedirectHandler):
    """Follows a server to another path of its own, or to its HTTPS, and to nowhere else.

    A registry that may be wrong must not choose what machines of a cluster ask for.
    """

    def redirect_request(
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        before, after = urlsplit(req.full_url), urlsplit(newurl)
        is_same = (before.scheme, before.netloc) == (after.scheme, after.netloc)
        to_https = (before.scheme, after.scheme) == ("http", "https")
        if not is_same and not (to_https and before.hostname == after.hostname):
            # Without the path and the query, which may hold what is not for others.
            raise HTTPError(
                req.full_url,
                code,
                f"with a redirect to {after.scheme}://{after.hostname or ''}, which is not "
                "followed: name that registry's own URL if it is meant",
                headers,
                fp,
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


# Its redirects apart as `urlopen` is: by the proxies of the environment, too.
_open = build_opener(_SameHost).open


class NoSuchSchema(Exception):
    """The registry says that there is no such schema."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema: its text, its type, and the schemas it refers to, by name, those first."""

    id: int
    kind: str  # AVRO, PROTOBUF or JSON.
    text: str
    references: Mapping[str, str] = field(default_factory=dict)


def registry_urls(urls: str) -> list[str]:
    """The URLs in their order. Raises OttlaError, without a password that one of them has."""
    found = [url.strip().rstrip("/") for url in urls.split(",") if url.strip()]
    if "@" in urls:
        raise _failed(
            ErrorCode.INVALID_REQUEST,
            "a registry's URL holds no password: set OTTLA_REGISTRY_USER and "
            "OTTLA_REGISTRY_PASSWORD, or OTTLA_REGISTRY_TOKEN",
        )
    for url in found or [""]:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise _failed(ErrorCode.INVALID_REQUEST, f"{url!r} is no URL of a registry")
    return found


class SchemaRegistry:
    """Asks one registry, at one or several URLs (`http://a:8081,http://b:8081`).

    Raises OttlaError where it does not answer or refuses access: then no record is to blame.
    """

    def __init__(
        self,
        urls: str,
        *,
        environment: Mapping[str, str] = os.environ,
        timeout_seconds: float = _TIMEOUT_SECONDS,
        attempts: int = _ATTEMPTS,
        pause: Callable[[float], None] = time.sleep,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._urls = registry_urls(urls)
        self._authorization = _authorization(environment)
        self._timeout_seconds = timeout_seconds
        self._attempts = attempts
        self._pause = pause
        self._now_s = now_s
        self._by_id: dict[int, RegisteredSchema | None] = {}

    def schema(self, number: int) -> RegisteredSchema:
        """The schema with this number. Raises NoSuchSchema, OttlaError."""
        if number not in self._by_id:
            try:
                answer = self._get(f"/schemas/ids/{number}")
            except NoSuchSchema:
                self._by_id[number] = None
            else:
                self._by_id[number] = self._registered(number, answer)
        found = self._by_id[number]
        if found is None:
            raise NoSuchSchema(f"the registry has no schema {number}")
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject. Raises NoSuchSchema, OttlaError."""
        answer = self._get(f"/subjects/{quote(subject, safe='')}/versions/latest")
        return self._registered(_number(answer), answer)

    def _registered(self, number: int, answer: Mapping[str, Any]) -> RegisteredSchema:
        text, kind = answer.get("schema"), answer.get("schemaType", "AVRO")
        if not isinstance(text, str) or not isinstance(kind, str):
            raise _failed(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"the registry's answer for {number} has no schema; {_IS_IT_ONE}",
            )
        found: dict[str, str] = {}
        self._refer(answer, found, set())
        return RegisteredSchema(number, kind, text, found)

    def _refer(
        self, answer: Mapping[str, Any], found: dict[str, str], asked: set[tuple[str, int]]
    ) -> None:
        for name, subject, version in _references(answer):
            if (subject, version) in asked:
                continue
            asked.add((subject, version))
            if len(asked) > _REFERENCES_MAX:
                raise _failed(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"a schema of the registry refers to more than {_REFERENCES_MAX} others",
                )
            try:
                one = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}")
            except NoSuchSchema:
                raise _failed(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"the registry has no version {version} of {subject}, to which a schema refers",
                ) from None
            self._refer(one, found, asked)
            found[name] = str(one.get("schema"))

    def _get(self, path: str) -> Mapping[str, Any]:
        """The answer. Raises NoSuchSchema, and OttlaError once all attempts failed."""
        last = ""
        for attempt in range(self._attempts):
            if attempt:
                self._pause(_FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
            url = self._urls[attempt % len(self._urls)]
            try:
                return self._ask(url, path)
            except HTTPError as error:
                last = self._refused(url, error)
            except ValueError as error:
                last = f"{url}: {error}"
            except (URLError, OSError, HTTPException) as error:
                last = f"{url} does not answer: {getattr(error, 'reason', error)}"
        raise _failed(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"the schema registry can't be asked, tried {self._attempts} times: {last}. Nothing "
            "was loaded; run it again once the registry answers",
        )

    def _ask(self, url: str, path: str) -> Mapping[str, Any]:
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        request = Request(url + path, headers=headers)
        if self._authorization:
            # Not for the server that a redirect names.
            request.add_unredirected_header("Authorization", self._authorization)
        with _open(request, timeout=self._timeout_seconds) as answer:
            content = self._content(answer)
            kind = str(answer.headers.get("Content-Type", "no type"))[:_SHOWN_MAX]
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ValueError(f"its answer ({kind}) is no JSON object; {_IS_IT_ONE}")
        return found

    def _content(self, answer: Any) -> bytes:
        """The body of an answer, within its time and size. Raises ValueError."""
        until_s = self._now_s() + _ANSWER_SECONDS
        content = bytearray()
        while chunk := answer.read1(_CHUNK_BYTES):
            content += chunk
            if len(content) > _ANSWER_BYTES_MAX:
                raise ValueError(f"its answer is larger than {_ANSWER_BYTES_MAX} bytes")
            if self._now_s() > until_s:
                raise ValueError(f"its answer took more than {_ANSWER_SECONDS:.0f} seconds")
        return bytes(content)

    def _refused(self, url: str, error: HTTPError) -> str:
        """What an answer with an error says. Raises NoSuchSchema, OttlaError where it is final."""
        with error:
            try:
                said = json.loads(error.read(10_000))
            except (OSError, ValueError, HTTPException):
                said = None
        said = said if isinstance(said, dict) else {}
        words = f"{url} answers {error.code} {_brief(said.get('message') or error.reason)}"
        if error.code == 404 and said.get("error_code") in _NOT_FOUND:
            raise NoSuchSchema(words)
        if error.code in {401, 403}:
            raise _failed(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"the schema registry refuses access: {words}. Set OTTLA_REGISTRY_USER and "
                "OTTLA_REGISTRY_PASSWORD, or OTTLA_REGISTRY_TOKEN, where tasks run, too",
            )
        if error.code not in _RETRIED:
            raise _failed(ErrorCode.UNKNOWN_SERVER_ERROR, f"the schema registry: {words}")
        return words


def _references(answer: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Name, subject and version of each reference. Raises OttlaError."""
    try:
        for one in answer.get("references") or ():
            yield str(one["name"]), str(one["subject"]), int(one["version"])
    except (TypeError, KeyError, ValueError):
        raise _failed(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"a schema of the registry refers to others in a form that is not known; {_IS_IT_ONE}",
        ) from None


def _brief(said: object) -> str:
    text = str(said)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def _number(answer: Mapping[str, Any]) -> int:
    number = answer.get("id")
    if not isinstance(number, int):
        raise _failed(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the registry's answer has no number; {_IS_IT_ONE}"
        )
    return number


def _authorization(environment: Mapping[str, str]) -> str | None:
    token = environment.get("OTTLA_REGISTRY_TOKEN")
    if token:
        return f"Bearer {token}"
    user = environment.get("OTTLA_REGISTRY_USER")
    if user:
        pair = f"{user}:{environment.get('OTTLA_REGISTRY_PASSWORD', '')}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"
    return None


def _failed(code: ErrorCode, message: str) -> OttlaError:
    return OttlaError(code, message)
