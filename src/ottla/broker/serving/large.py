"""Serves requests with many elements in slices, and other requests between the slices.

The connection holds such a request, and serves no other one, until the answer is ready. Then it
offers the request again and gets the answer. Only a few large requests are processed at a time, and
users take turns. The waiting requests are not decoded, and stay in buffers that their connections
have anyway. After each slice the loop serves other connections for as long as the slice took.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.requests.handler import NO_ANSWER, Api
from ottla.broker.requests.portions import (
    Edges,
    Portions,
    answer_once,
    division,
    edges,
    join,
    portions,
    take_repeated,
)
from ottla.broker.requests.request import PortionContext, RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.turns import FairTurns
from ottla.broker.serving.stalls import Stalls
from ottla.broker.serving.table import Served
from ottla.broker.usage.delays import SIZE_WAIT
from ottla.network.connection import Connection
from ottla.network.service import CloseConnection, Serve
from ottla.wire.api import ApiKey, key_name
from ottla.wire.codec import decode_in_steps
from ottla.wire.errors import TooManyBytes, TooManyElements, VersionError, WireError
from ottla.wire.frames import encode_response_in_steps
from ottla.wire.parts import Part
from ottla.wire.source import STEP

T = TypeVar("T")

_log = logging.getLogger(__name__)

# How many requests are processed at a time; each has objects in memory for all its elements.
_PLACES = 4
_PLACES_OF_USER = 2
# The same limit, but including requests that wait for a quota or for other work without a place.
_BEGUN_MAX = 12
# How long one request is processed before other requests are served.
_SLICE_MS = 5
_PAUSE_MS_MAX = 50
# The most bytes of an answer: the default of socket.request.max.bytes, the limit for requests.
_ANSWER_BYTES_MAX = 100 << 20
# How often a waiting request checks whether its client is still connected.
_LOOK_S = 1.0

# The error message for a repeated element, in APIs that compare elements with each other.
_REPEATED = "The request names it more than once."

# Checks permissions; returns the response if no part of the request is allowed.
Admit = Callable[[Served, RequestContext, Any], Any]
# Serves a decoded request that is not divided.
ServeWhole = Callable[[RequestContext, Any, memoryview], "list[Part] | None"]


def malformed(error: Exception) -> CloseConnection:
    """Return the error that closes a connection whose bytes are not a valid request."""
    why = f"it sent bytes that are no valid request: {error}"
    return CloseConnection(why, "request: malformed")


def too_large(connection: Connection, api: Api[Any, Any]) -> CloseConnection:
    """Return the error that closes a connection whose request has too many elements."""
    name, most = key_name(api.key), api.elements_max
    why = (
        f"its {name} of {connection.principal} has more than {most:,} elements in its lists; have"
        " the client send several requests"
    )
    return CloseConnection(why, f"request: elements of {name}")


class LargeRequests:
    """The large requests of one broker, both in progress and waiting."""

    def __init__(self, runtime: Runtime, stalls: Stalls) -> None:
        self.runtime = runtime
        self.stalls = stalls
        self.turns = FairTurns(_PLACES, _PLACES_OF_USER, _BEGUN_MAX)
        # The connections whose end is observed, each with the work for its request.
        self._watched: dict[Connection, _Work | None] = {}
        # Lets one request pause at a time, so that other connections are served after each slice.
        self._pausing = asyncio.Lock()

    def take(self, connection: Connection, serve: Serve) -> bool:
        """Take a place among the large requests.

        If it returns False, the connection holds the request; `serve` serves it when a place is
        free.
        """
        if connection not in self._watched:
            self._watched[connection] = None
            connection.on_lost.append(lambda: self._on_lost(connection))
        if self.turns.take(connection.owner, connection, connection.release):
            return True
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
        """Start processing a request that has a place.

        Return the function that serves the request when it is offered again. The caller must not
        use `frame` any more; the body starts at `position` in it.
        """
        work = _Work(self, served, request, admit, serve_whole)
        self._watched[request.connection] = work
        self.runtime.spawn(work.run(frame, position))
        return work.finish

    async def pause(self, worked_ms: int) -> None:
        """Let the loop serve other connections for as long as the slice took."""
        async with self._pausing:
            await asyncio.sleep(worked_ms / 1000)

    def end(self, connection: Connection) -> None:
        """Free the place of a connection whose work has ended."""
        if connection in self._watched:
            self._watched[connection] = None
        self.turns.leave(connection)

    def step_aside(self, connection: Connection) -> None:
        """Free the place until the work continues, beginning with the next turn of the loop."""
        self.runtime.loop.call_soon(self.turns.step_aside, connection)

    def _on_lost(self, connection: Connection) -> None:
        work = self._watched.pop(connection, None)
        if work is None:
            self.turns.leave(connection)
        else:
            work.on_lost()


class _Work:
    """Processes one request, from its bytes to its answer."""

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
        # As in Kafka, records are appended even if the producer disconnects: with acks=0 it may not
        # wait for an answer.
        self._ends_with_client = request.header.api_key != ApiKey.PRODUCE
        self._lost: asyncio.Future[None] = large.runtime.loop.create_future()

    def on_lost(self) -> None:
        """Stop waiting, because the connection has ended."""
        if self._ends_with_client and not self._lost.done():
            self._lost.set_result(None)

    def finish(self, frame: memoryview) -> list[Part] | None:
        """Return the answer to the request that is offered again, or raise the error found."""
        # Drop the reference to the result: in a reference cycle it would live until garbage
        # collection, with the whole answer.
        request = self._request
        if request.use is not None:
            took_ms = request.use.took_ms(request.received_ms)
            use, api_key = request.use, request.header.api_key
            use.note_slow(request.client_id, api_key, took_ms, request.waited_for or SIZE_WAIT)
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
        """Process the request, then make the connection offer it again."""
        request = self._request
        api = request.header.api_key
        try:
            self._outcome = await self._large.stalls.watched(
                self._work(frame, position), request.connection, api, request.size
            )
        except TooManyBytes:
            why = (
                f"the answer to its {key_name(api)} has more than {_ANSWER_BYTES_MAX:,} bytes; have"
                " the client ask for less in one request"
            )
            self._error = CloseConnection(why, f"answer: bytes of {key_name(api)}")
        except TooManyElements:
            self._error = too_large(request.connection, self._served.api)
        except (WireError, VersionError) as error:
            self._error = malformed(error)
        except Exception as error:  # noqa: BLE001  # The connection's supervisor gets it.
            if not request.connection.closed:
                self._error = error
            elif not isinstance(error, CloseConnection):
                _log.exception("a long request failed after its client left: %s", request.header)
        finally:
            self._large.end(request.connection)
            request.connection.release()

    async def _work(self, frame: memoryview, position: int) -> Serve:
        header, declared = self._request.header, self._served.api
        key, version = header.api_key, header.api_version
        self._slice_began_ms = self._monotonic_ms()
        self._check_client()
        body = await self._in_slices(
            decode_in_steps(declared.request, version, frame, position, declared.elements_max)
        )
        await self._in_slices(answer_once(declared.once, body))
        divided = division(declared.portions, body)
        if divided is None:
            return partial(self._serve_whole, self._request, body)
        response = await self._in_portions(body, divided)
        await self._free(divided.items.asked(body))
        if response is None:
            return lambda _frame: None
        self._request.complete(response)
        parts = await self._in_slices(
            encode_response_in_steps(
                response, key, version, header.correlation_id, _ANSWER_BYTES_MAX
            )
        )
        await self._free(divided.items.answers(response))
        return lambda _frame: parts

    async def _free(self, elements: list[Any] | None) -> None:
        """Drop elements in slices; freeing 250,000 at once would hold the loop for 50 ms."""
        while elements:
            del elements[-STEP:]
            await self._pace()

    async def _in_portions(self, body: Any, divided: Portions[Any, Any]) -> Any:
        """Serve a request in portions; return the joined response."""
        repeated = await self._in_slices(take_repeated(body, divided))
        answers = await self._answers(body, divided)
        if repeated is not None:
            answers += await self._answers(repeated, divided, is_repeated=True)
        joined: Any = None
        before: Edges | None = None
        for after, answer in answers:
            if not answer.done():
                if not self._ends_with_client:
                    # All records are appended; waiting for the acknowledgements needs no place.
                    self._large.turns.leave(self._request.connection)
                await self._aside_until(answer)
            response = answer.result()
            if response is None:
                # A Produce request with acks=0 has no response.
                continue
            # The error code of the whole request, if the API has one.
            error = response.error_code if "error_code" in type(response).__slots__ else 0
            if error and not divided.items.answers(response):
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

    async def _answers(
        self, body: Any, divided: Portions[Any, Any], *, is_repeated: bool = False
    ) -> list[tuple[Edges, "asyncio.Future[Any]"]]:
        """Serve the portions of a body; return their answers, which may come later."""
        answers = []
        for portion in portions(body, divided):
            found = edges(portion, divided)
            answer = await self._portion(portion, is_repeated=is_repeated)
            answers.append((found, answer))
            if not answer.done():
                # The loop may be needed to complete this portion; without a pause, unfinished
                # portions would accumulate.
                await asyncio.sleep(0)
            await self._pace()
        return answers

    async def _portion(self, body: Any, *, is_repeated: bool) -> "asyncio.Future[Any]":
        """Serve a portion of the request; return its response, which may come later."""
        served, request = self._served, PortionContext(self._request, self._large.runtime.loop)
        response = self._admit(served, request, body)
        if response is None and is_repeated:
            code = ErrorCode.INVALID_REQUEST
            response = served.on_error(body, code, _REPEATED, request.version)
        if response is None:
            try:
                response = served.handle(request, body)
                if response.__class__ is CoroutineType:
                    response = await self._awaited(response)
            except OttlaError as error:
                response = served.on_error(body, error.code, error.message, request.version)
        if response is NO_ANSWER:
            request.drop()
        elif response is not None:
            request.reply(response)
        return request.answer

    async def _awaited(self, response: Coroutine[Any, Any, Any]) -> Any:
        """Await a handler. While it waits, the request has no place, and no time is counted."""
        task = self._large.runtime.loop.create_task(response)
        # Nothing else reads the error if the client has disconnected.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.sleep(0)
        if not task.done():
            await self._aside_until(task)
        return task.result()

    async def _in_slices(self, steps: Generator[None, None, T]) -> T:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            await self._pace()

    async def _pace(self) -> None:
        """Pause after a full slice. Raises CloseConnection if the client has disconnected."""
        worked_ms = self._monotonic_ms() - self._slice_began_ms
        if worked_ms < _SLICE_MS:
            return
        throttle = self._request.throttle
        if throttle is not None and (delay_ms := throttle.count_time()):
            await self._aside_until(self._large.runtime.loop.create_future(), delay_ms)
        # The time may include waiting, so the pause is limited.
        await self._large.pause(min(worked_ms, _PAUSE_MS_MAX))
        self._check_client()
        self._slice_began_ms = self._monotonic_ms()
        if throttle is not None:
            throttle.resume()

    async def _aside_until(self, event: "asyncio.Future[Any]", most_ms: int | None = None) -> None:
        """Free the place until the event, or for `most_ms`. Raises as `_check_client` does."""
        connection, throttle = self._request.connection, self._request.throttle
        if throttle is not None:
            throttle.count_time()
        self._large.step_aside(connection)
        await self._until(event, most_ms)
        place: asyncio.Future[None] = self._large.runtime.loop.create_future()
        self._large.turns.come_back(connection, partial(_give, place))
        await self._until(place)
        self._slice_began_ms = self._monotonic_ms()
        if throttle is not None:
            throttle.resume()

    async def _until(self, event: "asyncio.Future[Any]", most_ms: int | None = None) -> None:
        loop = self._large.runtime.loop
        ends_s = None if most_ms is None else loop.time() + most_ms / 1000
        while not event.done():
            self._check_client()
            left_s = _LOOK_S if ends_s is None else min(_LOOK_S, ends_s - loop.time())
            if left_s <= 0:
                return
            await asyncio.wait(
                (event, self._lost), timeout=left_s, return_when=asyncio.FIRST_COMPLETED
            )
        self._check_client()

    def _check_client(self) -> None:
        """Raise CloseConnection if the client has disconnected."""
        if self._ends_with_client and self._request.connection.has_left():
            raise CloseConnection("the client left", "left")


def _give(place: "asyncio.Future[None]") -> None:
    if not place.done():
        place.set_result(None)
