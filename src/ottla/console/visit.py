"""What a page is given: the visitor's session, the request, and functions to answer it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ottla.base.clock import local_now
from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.client import Admin, Consumer, ConsumerOptions, Producer
from ottla.client.connection.security import ClientConfig
from ottla.console.mask import Masks
from ottla.console.sessions import Sessions, VisitorSession
from ottla.console.templates import rendered

Value = TypeVar("Value")

COOKIE = "ottla_console"
# Forms have a name and a few lines; the largest is a record to produce.
_FORM_BYTES_MAX = 4 << 20
# A request that the page makes by itself, which does not keep a session open.
_BY_ITSELF = "ottla-by-itself"
# How long a broker may take to answer; how long others are asked instead; and how long a section of
# a page may take to be made of such answers.
ANSWER_MS, RETRY_MS = 2_500, 5_000
PART_S = 8.0


class MenuEntry(NamedTuple):
    """A page of the menu; its letter opens it after `g`."""

    title: str
    path: str
    letter: str


# Pages of a topic: title, and the end of the address.
TABS = (
    ("Records", "/records"),
    ("Partitions", ""),
    ("Settings", "/settings"),
    ("Produce", "/produce"),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, for a page or a section of it: HTTP status, title, sentence and remedy."""

    status: int
    title: str
    sentence: str
    remedy: str = ""


_TITLES = {
    ErrorCode.REQUEST_TIMED_OUT: (504, "A broker does not answer"),
    ErrorCode.NETWORK_EXCEPTION: (503, "A broker cannot be reached"),
    ErrorCode.BROKER_NOT_AVAILABLE: (503, "No broker can be reached"),
    ErrorCode.LEADER_NOT_AVAILABLE: (503, "A partition has no leader"),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (404, "There is no such topic or partition"),
    ErrorCode.OFFSET_OUT_OF_RANGE: (404, "There is no such record"),
    ErrorCode.GROUP_ID_NOT_FOUND: (404, "There is no such group"),
    ErrorCode.UNSUPPORTED_VERSION: (501, "These brokers do not know this"),
    ErrorCode.SASL_AUTHENTICATION_FAILED: (401, "The brokers refuse this log-in"),
}
_NO_RIGHT = (403, "You have no right to do this")
_WRONG = (400, "This cannot be done")


def problem_of(error: OttlaError) -> Problem:
    """Describe an error: its message says what happened and, after a semicolon, what helps."""
    code = ErrorCode(error.code)
    default = _NO_RIGHT if code.name.endswith("_AUTHORIZATION_FAILED") else _WRONG
    status, title = _TITLES.get(code, default)
    sentence, _, remedy = error.message.partition("; ")
    return Problem(status, title, sentence, remedy)


@dataclass(frozen=True, slots=True)
class Part(Generic[Value]):
    """A section of a page: a value, or the problem that kept it from being there."""

    value: Value | None
    problem: Problem | None = None


async def part(work: Awaitable[Value], limit_s: float = PART_S) -> Part[Value]:
    """Wait for a section's value, for at most `limit_s`; errors become its problem."""
    try:
        async with asyncio.timeout(limit_s):
            return Part(await work)
    except TimeoutError:
        return Part(None, _too_slow(limit_s))
    except OttlaError as error:
        return Part(None, problem_of(error))


def _too_slow(limit_s: float) -> Problem:
    return Problem(
        HTTPStatus.GATEWAY_TIMEOUT,
        "The brokers do not answer",
        f"there was no complete answer within {limit_s:g} s",
        "the overview says which broker does not answer; then load this page again",
    )


# Pages that read records, and live pages, at the same time: each holds a few fetches in memory.
_READS_MAX, _LIVE_MAX = 8, 32


@dataclass(frozen=True, slots=True)
class Console:
    """What all visits share. `has_login`: the cluster's users log in."""

    bootstrap: str
    sessions: Sessions
    masks: Masks
    menu: tuple[MenuEntry, ...]
    has_login: bool
    reads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_READS_MAX))
    live: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LIVE_MAX))


@dataclass(slots=True)
class Visit:
    """One request of a browser, by the user of `session`."""

    console: Console
    session: VisitorSession
    request: Request
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def admin(self) -> Admin:
        """Return the client of this user, whose rights the brokers check."""
        assert self.session.admin is not None
        return self.session.admin

    def consumer(self, **options: Any) -> AbstractAsyncContextManager[Consumer]:
        """Return a new consumer of this user; `options` are those of `Consumer`."""
        given = ConsumerOptions(
            client_id="ottla-console",
            enable_auto_commit=False,
            request_timeout_ms=ANSWER_MS,
            default_api_timeout_ms=RETRY_MS,
            bootstrap_timeout_ms=ANSWER_MS,
            config=self.session.config,
        )
        return Consumer(self.console.bootstrap, **{**given, **options})

    def producer(self) -> AbstractAsyncContextManager[Producer]:
        """Return a new producer of this user, which creates no topics."""
        # Without a producer id, which needs rights of its own, the refusal names the right that is
        # missing. A request may take all the time there is, so no record is sent a second time.
        return Producer(
            self.console.bootstrap,
            client_id="ottla-console",
            enable_idempotence=False,
            allow_auto_create_topics=False,
            request_timeout_ms=RETRY_MS,
            connect_timeout_ms=ANSWER_MS,
            bootstrap_timeout_ms=ANSWER_MS,
            delivery_timeout_ms=RETRY_MS,
            config=self.session.config,
        )

    def query(self, name: str, default: str = "") -> str:
        """Return a value of the address's query, without blanks around it."""
        return self.request.query_params.get(name, default).strip()

    def number(self, name: str, default: int, most: int = 1 << 62) -> int:
        """Return a number of the query, from 0 to `most`. Raises WrongWords."""
        return whole(self.query(name), f"{name} in the address", default, most)

    def name(self, part_of_path: str = "name") -> str:
        """Return a part of the address's path."""
        return str(self.request.path_params[part_of_path])

    def field(self, name: str) -> str:
        """Return a field of the form, without blanks around it; empty if there is none."""
        return self.fields.get(name, "").strip()

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a template. It also gets `visit`, and the notes of the action before it."""
        notes = self.session.take_notes()
        text = rendered(template, visit=self, notes=notes, now=local_now(), tabs=TABS, **values)
        return Response(text, status, media_type="text/html; charset=utf-8")

    def problem(self, problem: Problem) -> Response:
        """Answer with a page that says what is wrong."""
        return self.page("problem.html", status=problem.status, problem=problem)

    def go(self, path: str, *notes: str) -> Response:
        """Send the browser to a page, which shows `notes`."""
        self.session.add_notes(notes)
        return RedirectResponse(path, HTTPStatus.SEE_OTHER)


def client_of(bootstrap: str, config: ClientConfig) -> Admin:
    """Return a client that waits only briefly, so that a broker that stands still is noticed."""
    return Admin(
        bootstrap,
        client_id="ottla-console",
        request_timeout_ms=ANSWER_MS,
        bootstrap_timeout_ms=ANSWER_MS,
        default_api_timeout_ms=RETRY_MS,
        config=config,
    )


def whole(text: str, what: str, default: int, most: int = 1 << 62) -> int:
    """Parse a whole number from 0 to `most`; an empty text is `default`. Raises WrongWords."""
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 19 or int(text) > most:
        raise WrongWords(f"{what} is no whole number from 0 to {most:,}; correct it")
    return int(text)


def address(path: str, /, *names: str, **query: object) -> str:
    """Return an address of the console: `names` replace each `{}` of the path.

    Query values that are None or empty are left out.
    """
    place = path.format(*(quote(name, safe="") for name in names))
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{place}?{urlencode(given)}" if given else place


Handler = Callable[[Visit], Awaitable[Response]]


def get(path: str, handler: Handler, *, is_open: bool = False) -> Route:
    """Return the route of a page; `is_open`: also for visitors who have not logged in."""
    return Route(path, partial(_show, handler, is_open), methods=["GET"])


def post(path: str, handler: Handler, *, is_open: bool = False) -> Route:
    """Return the route of an action; the form's token is checked before it."""
    return Route(path, partial(_act, handler, is_open), methods=["POST"])


async def _show(handler: Handler, is_open: bool, request: Request) -> Response:
    console: Console = request.app.state.console
    session = await _session(console, request)
    visit = Visit(console, session, request)
    if not session.is_ready and not is_open:
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        answer: Response = visit.go(address("/login", next=here if here != "/" else ""))
    else:
        answer = await _answered(handler, visit)
    return _with_cookie(answer, visit)


async def _act(handler: Handler, is_open: bool, request: Request) -> Response:
    console: Console = request.app.state.console
    session = await _session(console, request)
    visit = Visit(console, session, request)
    try:
        visit.fields = await _fields(request)
    except OttlaError as error:
        return visit.problem(problem_of(error))
    if not session.has_token(visit.fields.get("token", "")) or (
        not session.is_ready and not is_open
    ):
        answer = visit.problem(
            Problem(
                HTTPStatus.FORBIDDEN,
                "This form is out of date",
                "nothing was changed: the session has ended, or the form is from another one",
                "go back, load the page again and send the form again",
            )
        )
    else:
        answer = await _answered(handler, visit)
    return _with_cookie(answer, visit)


async def _session(console: Console, request: Request) -> VisitorSession:
    await console.sessions.end_idle()
    found = console.sessions.find(
        request.cookies.get(COOKIE, ""), is_used=_BY_ITSELF not in request.headers
    )
    return found or await console.sessions.new()


async def _answered(handler: Handler, visit: Visit) -> Response:
    try:
        async with asyncio.timeout(2 * PART_S):
            return await handler(visit)
    except TimeoutError:
        return visit.problem(_too_slow(2 * PART_S))
    except OttlaError as error:
        return visit.problem(problem_of(error))


async def _fields(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises OttlaError if it is too large, or is no form."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _FORM_BYTES_MAX:
            raise WrongWords(f"the form is larger than {_FORM_BYTES_MAX >> 20} MiB; send less")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=200)
    except ValueError:
        raise WrongWords("the form cannot be read; load the page again") from None
    return dict(pairs)


def _with_cookie(answer: Response, visit: Visit) -> Response:
    """Give the browser the session's cookie if it has another one or none."""
    key = visit.session.key
    if visit.request.cookies.get(COOKIE) != key:
        secure = visit.request.url.scheme == "https"
        answer.set_cookie(COOKIE, key, httponly=True, samesite="lax", secure=secure)
    return answer
