"""Requests with many elements: decoded, served and answered in slices, with others in between.

The connection holds such a request, and serves nothing else, until its answer is there; then it
offers the request again, and gets the answer. Few are in work at a time, and users take turns:
the rest wait as bytes, which their connections hold in any case. After each slice the loop serves
other connections for as long as the slice took.
"""

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeVar

from ottla.base.errors import OttlaError
from ottla.broker.requests.request import PortionContext, RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.turns import FairTurns
from ottla.broker.serving.portions import (
    Divided,
    Edges,
    answer_once,
    division,
    edges,
    elements_max,
    join,
    portions,
)
from ottla.broker.serving.stalls import Stalls
from ottla.broker.serving.table import Served
from ottla.network.connection import Connection
from ottla.network.service import CloseConnection, Serve
from ottla.wire.api import ApiKey
from ottla.wire.codec import decode_in_steps
from ottla.wire.errors import TooManyElements, VersionError, WireError
from ottla.wire.frames import encode_response_in_steps
from ottla.wire.parts import Part

T = TypeVar("T")

# In work at a time: each has objects in memory for as many elements as a request may have.
_PLACES = 4
_PLACES_OF_USER = 2
# How long one is worked on before others are served.
_SLICE_MS = 5
_PAUSE_MS_MAX = 50

# The response where nothing of a request is allowed.
Admit = Callable[[Served, RequestContext, Any], Any]
# Serves a decoded request in one go.
ServeWhole = Callable[[RequestContext, Any, memoryview], "list[Part] | None"]


def malformed(error: Exception) -> CloseConnection:
    """What ends the connection of bytes that are no request."""
    why = f"it sent bytes that are no valid request: {error}"
    return CloseConnection(why, "request: malformed")


def too_large(connection: Connection, api_key: int) -> CloseConnection:
    """What ends the connection of a request with more elements than its API allows."""
    api = ApiKey(api_key).name
    why = (
        f"its {api} of {connection.principal} has more than {elements_max(api_key):,} elements in"
        " its lists; have the client send several requests"
    )
    return CloseConnection(why, f"request: elements of {api}")


class LargeRequests:
    """Those of one broker that are in work, or wait for it."""

    def __init__(self, runtime: Runtime, stalls: Stalls) -> None:
        self.runtime = runtime
        self.stalls = stalls
        self.turns = FairTurns(_PLACES, _PLACES_OF_USER)
        self._watched: set[Connection] = set()
        # Slices of several requests do not follow each other without a pause.
        self._pausing = asyncio.Lock()

    def take(self, connection: Connection, serve: Serve) -> bool:
        """Take a place. False: the request is held, and `serve` gets it when it has one."""
        if self.turns.take(connection.owner, connection, connection.release):
            return True
        if connection not in self._watched:
            self._watched.add(connection)
            connection.on_lost.append(lambda: self._forget(connection))
        connection.hold(serve)
        return False

    def begin(
        self,
        served: Served,
        request: RequestContext,
        frame: memoryview,
        position: int,
        admit: Admit,
        serve_whole: ServeWhole,
    ) -> Serve:
        """Work on a request that has a place. Returns what is to serve it when it is offered again.

        `frame` is this work's for good, and has the body at `position`.
        """
        work = _Work(self, served, request, admit, serve_whole)
        self.runtime.spawn(work.run(frame, position))
        return work.finish

    async def pause(self, worked_ms: int) -> None:
        """Let the loop serve others for as long as a slice took."""
        async with self._pausing:
            await asyncio.sleep(worked_ms / 1000)

    def _forget(self, connection: Connection) -> None:
        self._watched.discard(connection)
        self.turns.leave(connection)


class _Work:
    """One request, from its bytes to its answer."""

    def __init__(
        self,
        large: LargeRequests,
        served: Served,
        request: RequestContext,
        admit: Admit,
        serve_whole: ServeWhole,
    ) -> None:
        self._large = large
        self._served = served
        self._request = request
        self._admit = admit
        self._serve_whole = serve_whole
        self._monotonic_ms = large.runtime.clock.monotonic_ms
        self._slice_began_ms = 0
        self._outcome: Serve | None = None
        self._error: Exception | None = None

    def finish(self, frame: memoryview) -> list[Part] | None:
        """Serve the request that is offered again, with what was found out."""
        # Nothing refers to what was found out any longer: in a cycle it would live until a rare
        # collection, with all that was answered.
        error, self._error = self._error, None
        outcome, self._outcome = self._outcome, None
        try:
            if error is not None:
                raise error
            if outcome is None:
                raise CloseConnection("the broker stops", "stops")
            return outcome(frame)
        finally:
            del error

    async def run(self, frame: memoryview, position: int) -> None:
        """Find the outcome, and have the connection offer the request again."""
        request = self._request
        api = ApiKey(request.header.api_key)
        try:
            self._outcome = await self._large.stalls.watched(
                self._work(frame, position), request.connection, api, request.size
            )
        except TooManyElements:
            self._error = too_large(request.connection, api)
        except (WireError, VersionError) as error:
            self._error = malformed(error)
        except Exception as error:  # noqa: BLE001  # The connection's supervisor gets it.
            self._error = error
        finally:
            self._large.turns.leave(request.connection)
            request.connection.release()

    async def _work(self, frame: memoryview, position: int) -> Serve:
        header, kind = self._request.header, self._served.request_type
        key, version = header.api_key, header.api_version
        self._slice_began_ms = self._monotonic_ms()
        body = await self._in_slices(
            decode_in_steps(kind, version, frame, position, elements_max(key))
        )
        await self._in_slices(answer_once(key, body))
        divided = division(key, body)
        if divided is None:
            return partial(self._serve_whole, self._request, body)
        response = await self._in_portions(body, divided)
        self._request.complete(response)
        parts = await self._in_slices(
            encode_response_in_steps(response, key, version, header.correlation_id)
        )
        return lambda _frame: parts

    async def _in_portions(self, body: Any, divided: Divided) -> Any:
        """The response to a request that is served as several."""
        answers = []
        for portion in portions(body, divided):
            answers.append((edges(portion, divided), await self._portion(portion)))
            await self._pace()
        joined: Any = None
        before: Edges | None = None
        for after, answer in answers:
            response = await answer
            # That of the request as a whole.
            error = getattr(response, "error_code", 0)
            if error and not getattr(response, divided.answers[0]):
                return response
            if before is None:
                joined = response
            else:
                join(joined, response, divided, before, after)
                if error:
                    joined.error_code = error
            before = after
            await self._pace()
        return joined

    async def _portion(self, body: Any) -> "asyncio.Future[Any]":
        """Serve a part of the request; its response may come later."""
        served, request = self._served, PortionContext(self._request, self._large.runtime.loop)
        response = self._admit(served, request, body)
        if response is None:
            try:
                response = served.handle(request, body)
                if served.is_coroutine:
                    response = await response
            except OttlaError as error:
                response = served.on_error(body, error.code, error.message, request.version)
        if response is not None:
            request.reply(response)
        return request.answer

    async def _in_slices(self, steps: Generator[None, None, T]) -> T:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            await self._pace()

    async def _pace(self) -> None:
        """Pause where a slice is over. Raises CloseConnection where the client has left."""
        worked_ms = self._monotonic_ms() - self._slice_began_ms
        if worked_ms < _SLICE_MS:
            return
        throttle = self._request.throttle
        if throttle is not None and (delay_ms := throttle.count_time()):
            await asyncio.sleep(delay_ms / 1000)
        # What was waited for is counted with it.
        await self._large.pause(min(worked_ms, _PAUSE_MS_MAX))
        if self._request.connection.closed:
            raise CloseConnection("the client left", "left")
        self._slice_began_ms = self._monotonic_ms()
        if throttle is not None:
            throttle.resume()
