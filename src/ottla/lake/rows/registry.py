"""A client of a schema registry with Confluent's API, blocking; schemas are cached by their number.

Credentials come from the environment: OTTLA_REGISTRY_USER with OTTLA_REGISTRY_PASSWORD, or
OTTLA_REGISTRY_TOKEN. They never appear in a manifest or a message.
"""

import json
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import requests
from requests.auth import HTTPBasicAuth
from urllib3.exceptions import HTTPError

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.decode_spec import registry_urls
from ottla.lake.store.retries import retried

_TIMEOUT_SECONDS = 10.0
_ATTEMPTS = 5
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0
_REDIRECTS_MAX = 5
_ANSWER_BYTES_MAX = 64 << 20
# Time limit for a whole answer, which a server may send byte by byte.
_ANSWER_SECONDS = 60.0
_CHUNK_BYTES = 1 << 20
# The longest part of an answer that a message repeats.
_SHOWN_MAX = 200
_IS_IT_ONE = "is the URL that of a registry with Confluent's API?"
# Depth of references. A registry refuses cycles, but an answer may be wrong.
_REFERENCES_MAX = 200
# Error codes for subject, version, schema. Any other 404 is from a server that is no registry.
_NOT_FOUND = frozenset({40401, 40402, 40403})
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})


class _NoAnswer(OttlaError):
    """Raised if one attempt failed and another may succeed."""


class NoSuchSchema(Exception):
    """Raised if the registry reports that there is no such schema."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema: its text, its type, and the schemas it refers to, by name, each before its use."""

    id: int
    kind: str  # One of AVRO, PROTOBUF and JSON.
    text: str
    references: Mapping[str, str] = field(default_factory=dict)


class SchemaRegistry:
    """Asks one registry, at one or several URLs (`http://a:8081,http://b:8081`).

    Raises OttlaError if it does not answer or refuses access, because then no record is to blame.
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
        self._login = _login(environment)
        self._timeout_seconds = timeout_seconds
        self._attempts = attempts
        self._pause = pause
        self._now_s = now_s
        self._by_id: dict[int, RegisteredSchema | None] = {}

    def schema(self, number: int) -> RegisteredSchema:
        """Return the schema with this number. Raises NoSuchSchema, OttlaError."""
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
        """Return the newest schema of a subject. Raises NoSuchSchema, OttlaError."""
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
        """Return the answer. Raises NoSuchSchema, and OttlaError once all attempts failed."""
        urls = cycle(self._urls)
        for attempt in retried(
            self._attempts,
            _NoAnswer,
            first_s=_FIRST_PAUSE_SECONDS,
            longest_s=_LONGEST_PAUSE_SECONDS,
            sleep=self._pause,
        ):
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

        Raises NoSuchSchema, OttlaError, and other errors that may be retried. A redirect is
        followed to another path of the same server or to its HTTPS, and nowhere else: a faulty
        registry must not choose what a cluster's machines request.
        """
        at, login = url + path, self._login
        for _ in range(_REDIRECTS_MAX):
            with requests.get(
                at,
                headers={
                    "Accept": "application/vnd.schemaregistry.v1+json, application/json",
                    "Accept-Encoding": "identity",
                },
                auth=login,
                timeout=self._timeout_seconds,
                verify=_authorities(),
                allow_redirects=False,
                stream=True,
            ) as answer:
                if answer.is_redirect:
                    at, login = _redirected(url, at, answer), _no_login
                    continue
                if answer.status_code >= 400:
                    raise ValueError(self._refused(url, answer))
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
        """Return the body of an answer, within its limits of time and size. Raises ValueError."""
        until_s = self._now_s() + _ANSWER_SECONDS
        content = bytearray()
        while chunk := answer.raw.read1(_CHUNK_BYTES):
            content += chunk
            if len(content) > _ANSWER_BYTES_MAX:
                raise ValueError(f"its answer is larger than {_ANSWER_BYTES_MAX} bytes")
            if self._now_s() > until_s:
                raise ValueError(f"its answer took more than {_ANSWER_SECONDS:.0f} seconds")
        return bytes(content)

    def _refused(self, url: str, answer: requests.Response) -> str:
        """Return the message of an error answer. Raises NoSuchSchema; OttlaError if it is final."""
        code = answer.status_code
        try:
            said = json.loads(answer.raw.read(10_000))
        except (OSError, ValueError, HTTPError):
            said = None
        said = said if isinstance(said, dict) else {}
        words = f"answers {code} {_brief(said.get('message') or answer.reason)}"
        if code == 404 and said.get("error_code") in _NOT_FOUND:
            raise NoSuchSchema(f"{url} {words}")
        if code in {401, 403}:
            raise _failed(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"the schema registry refuses access: {url} {words}. Set OTTLA_REGISTRY_USER and "
                "OTTLA_REGISTRY_PASSWORD, or OTTLA_REGISTRY_TOKEN, where tasks run, too",
            )
        if code not in _RETRIED:
            raise _failed(ErrorCode.UNKNOWN_SERVER_ERROR, f"the schema registry: {url} {words}")
        return words


def _authorities() -> str | bool:
    """Where the authorities are that sign registries' certificates; True: those of `requests`.

    REQUESTS_CA_BUNDLE, else what SSL_CERT_FILE and SSL_CERT_DIR name, else the system's.
    """
    paths = ssl.get_default_verify_paths()
    return os.environ.get("REQUESTS_CA_BUNDLE") or paths.cafile or paths.capath or True


def _redirected(url: str, asked: str, answer: requests.Response) -> str:
    """Return the target of a redirect. Raises OttlaError for another server."""
    location = urljoin(asked, str(answer.headers["Location"]))
    before, after = urlsplit(asked), urlsplit(location)
    is_same = (before.scheme, before.netloc) == (after.scheme, after.netloc)
    to_https = (before.scheme, after.scheme) == ("http", "https")
    if not is_same and not (to_https and before.hostname == after.hostname):
        # Leave out the path and the query, which may contain secrets.
        raise _failed(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"the schema registry: {url} answers {answer.status_code} with a redirect to "
            f"{after.scheme}://{after.hostname or ''}, which is not followed: name that registry's "
            "own URL if it is meant",
        )
    return location


def _references(answer: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Yield name, subject and version of each reference. Raises OttlaError."""
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


Login = Callable[[requests.PreparedRequest], requests.PreparedRequest]


def _no_login(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Send no login: by default requests would use the user's .netrc."""
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


def _failed(code: ErrorCode, message: str) -> OttlaError:
    return OttlaError(code, message)
