"""Puts the console's pages together: routes, the headers of all answers, and sessions."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ottla.base.clock import current_clock
from ottla.console import login, overview, produce, records, settings, topics
from ottla.console.mask import Masks
from ottla.console.sessions import Sessions
from ottla.console.visit import Console, Problem, Visit, client_of, get

MODULES = (overview, topics, settings, records, produce, login)
MENU = (overview.MENU, topics.MENU)
_STATIC = Path(__file__).parent / "static"
# Browsers run and apply only what is in `static/`, send forms only to the console, and show it in
# no frame of another page.
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """How the console runs.

    `login` are the settings with which users log in, without name and password; None if the
    cluster has no log-in. `hosts`: the names by which browsers may call the console; empty for any.
    """

    bootstrap: str
    login: Mapping[str, str] | None = None
    masks: Masks = field(default_factory=Masks)
    hosts: tuple[str, ...] = ()


def make_app(options: ConsoleOptions, now_s: Callable[[], float] | None = None) -> Starlette:
    """Return the console as an ASGI application. `now_s` replaces the clock of sessions."""
    now = now_s or (lambda: current_clock().monotonic_ms() / 1000)
    has_login = options.login is not None
    sessions = Sessions(None if has_login else lambda: client_of(options.bootstrap, None), now)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await sessions.close()

    middleware = [Middleware(_Headers)]
    if options.hosts:
        middleware.append(Middleware(TrustedHostMiddleware, allowed_hosts=list(options.hosts)))
    app = Starlette(
        routes=[
            Mount("/static", StaticFiles(directory=_STATIC)),
            *(route for module in MODULES for route in module.ROUTES),
            get("/{path:path}", _not_found),
        ],
        middleware=middleware,
        lifespan=lifespan,
        exception_handlers={Exception: _failed},
    )
    app.state.console = Console(options.bootstrap, sessions, options.masks, MENU, has_login)
    app.state.door = login.Door(options.bootstrap, options.login or {}, now)
    return app


async def _not_found(visit: Visit) -> Response:
    return visit.problem(
        Problem(404, "There is no such page", "the address is wrong", "use the menu")
    )


async def _failed(_request: Request, _error: Exception) -> Response:
    # The server logs the error.
    return Response(
        "Ottla's console has a fault on this page; its log has the details. Other pages work.",
        500,
        media_type="text/plain",
    )


class _Headers:
    """Adds the headers that every answer has."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                is_static = scope["path"].startswith("/static/")
                headers["cache-control"] = "max-age=3600" if is_static else "no-store"
            await send(message)

        await self._app(scope, receive, with_headers)
