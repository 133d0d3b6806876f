"""Logs visitors in with their names and passwords of the cluster."""

import math
from collections.abc import Callable, Mapping

from starlette.responses import Response

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.quantities import counted
from ottla.client import Admin
from ottla.client.connection.security import read_config
from ottla.console.sessions import Attempts
from ottla.console.visit import Problem, Visit, client_of, get, post, problem_of
from ottla.security.sasl.bearer import MECHANISM as BEARER

DEFAULT_MECHANISM = "SCRAM-SHA-512"
# Each visitor gives these, so those of the file are left out.
_OF_A_USER = ("sasl.jaas.config", "sasl.username", "sasl.password")
_FIELD_MAX = 1_000


class Door:
    """Lets users in whom the brokers know. `settings` lack only name and password."""

    def __init__(
        self, bootstrap: str, settings: Mapping[str, str], now_s: Callable[[], float]
    ) -> None:
        self._bootstrap = bootstrap
        self._settings = settings
        self.attempts = Attempts(now_s)

    async def admin(self, user: str, password: str) -> tuple[Admin, Mapping[str, str]]:
        """Return a client that has logged in, and its settings. Raises OttlaError."""
        config = {**self._settings, "sasl.username": user, "sasl.password": password}
        admin = client_of(self._bootstrap, config)
        try:
            await admin.cluster.describe()
        except BaseException:
            await admin.close()
            raise
        return admin, config


def login_settings(path: str | None) -> Mapping[str, str] | None:
    """Return the settings of a client's file with which users log in; None without a log-in.

    Raises ClientError for a file that clients refuse, and OttlaError(INVALID_CONFIG) if its log-in
    needs more than a name and a password.
    """
    config = read_config(path) if path else {}
    if not config.get("security.protocol", "").upper().startswith("SASL"):
        return None
    mechanism = config.pop("sasl.mechanisms", None) or config.get("sasl.mechanism")
    if mechanism == BEARER:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"the console cannot log users in by {BEARER}, which needs more than a name and a "
            f"password; give a file with sasl.mechanism={DEFAULT_MECHANISM} or PLAIN",
        )
    kept = {name: value for name, value in config.items() if name not in _OF_A_USER}
    return {**kept, "sasl.mechanism": mechanism or DEFAULT_MECHANISM}


async def show_login(visit: Visit) -> Response:
    """Show the form, unless the visitor is logged in."""
    if visit.session.is_ready:
        return visit.go("/")
    return _form(visit, "", None)


async def log_in(visit: Visit) -> Response:
    """Try the name and password of the form with the brokers."""
    if not visit.console.has_login:
        return visit.go("/")
    door: Door = visit.request.app.state.door
    user, password = visit.field("user")[:_FIELD_MAX], visit.fields.get("password", "")
    client = visit.request.client
    address = client.host if client is not None else ""
    wait_s = door.attempts.wait_s(address, user)
    if wait_s:
        wait = counted(math.ceil(wait_s / 60), "minute")
        problem = Problem(429, "Too many attempts failed", f"wait {wait} before the next one")
        return _form(visit, user, problem)
    if not user or not password:
        return _form(visit, user, Problem(400, "Give a name and a password", ""))
    # Counted before the brokers answer, so that attempts at the same time count, too.
    door.attempts.failed(address, user)
    try:
        admin, config = await door.admin(user, password[:_FIELD_MAX])
    except OttlaError as error:
        return _form(visit, user, _refusal(error))
    door.attempts.succeeded(address, user)
    sessions = visit.console.sessions
    visit.session = await sessions.log_in(visit.session, user, admin, config)
    return visit.go(_inside(visit.field("next")))


async def log_out(visit: Visit) -> Response:
    """End the session."""
    await visit.console.sessions.end(visit.session)
    visit.session = await visit.console.sessions.new()
    return visit.go("/")


def _form(visit: Visit, user: str, problem: Problem | None) -> Response:
    target = visit.fields.get("next") or visit.query("next")
    status = problem.status if problem else 200
    return visit.page("login.html", status=status, user=user, problem=problem, next=target)


def _refusal(error: OttlaError) -> Problem:
    if error.code is ErrorCode.SASL_AUTHENTICATION_FAILED:
        return Problem(401, "The brokers refuse this name and password", "check both")
    return problem_of(error)


def _inside(path: str) -> str:
    """Return a path of this console; no other place, whatever an address asks for."""
    is_inside = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if is_inside and path.isprintable() else "/"


ROUTES = (
    get("/login", show_login, is_open=True),
    post("/login", log_in, is_open=True),
    post("/logout", log_out, is_open=True),
)
