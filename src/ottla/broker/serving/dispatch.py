"""Decodes requests, calls the handlers of their APIs, and encodes the answers.

Errors become answers only here. If a handler raises OttlaError, its `on_error` creates the answer.
Bytes that are not a valid request close the connection, as in Kafka.
"""

import contextlib
import logging
from collections.abc import Coroutine, Iterable
from functools import partial
from struct import Struct
from struct import error as StructError  # noqa: N812  # It is an exception class.
from types import CoroutineType
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.access.part import Gate
from ottla.broker.cluster.admission import proven_broker, refuse_client
from ottla.broker.fetch.parts import FetchParts
from ottla.broker.fetch.shortcut import FetchShortcut
from ottla.broker.login.login import Login
from ottla.broker.login.logins import Logins
from ottla.broker.produce.parts import ProduceParts
from ottla.broker.produce.shortcut import ProduceShortcuts
from ottla.broker.quotas.quotas import Quotas
from ottla.broker.requests.auditing import Auditing, Need
from ottla.broker.requests.handler import NO_ANSWER, Api, Handler
from ottla.broker.requests.portions import answer_once, division
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.serving.large import LargeRequests, malformed, too_large
from ottla.broker.serving.listeners import Readiness
from ottla.broker.serving.stalls import STALL_MS, Stalls
from ottla.broker.serving.table import Served, api_ranges, table_of
from ottla.broker.usage.delays import LOOP_WAIT
from ottla.broker.usage.part import UsagePart
from ottla.network.connection import Connection
from ottla.network.service import CloseConnection, Serve, ServeRun
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource
from ottla.wire.api import FIRST_PRIVATE_KEY, ApiKey, key_name
from ottla.wire.codec import decode, decode_in_steps
from ottla.wire.errors import TooManyElements, VersionError, WireError
from ottla.wire.frames import Part, RequestHeader, decode_request_header, encode_response
from ottla.wire.messages.api_versions import ApiVersionsResponse
from ottla.wire.messages.between_brokers import BrokerHandshakeRequest
from ottla.wire.notation import REQUESTS, has_field

_log = logging.getLogger(__name__)

_PREFIX = Struct(">hhi")
# A request of at most this size can have only few elements in its lists.
_SHORT_BYTES = 4096

# The API by which a connection proves that it comes from a broker of the cluster.
_HANDSHAKE = BrokerHandshakeRequest.__api_key__
# The permission that Kafka requires for APIs between brokers.
_CLUSTER_ACTION = Need(AclOperation.CLUSTER_ACTION, AclResource.CLUSTER, CLUSTER_NAME)


class Dispatcher:
    """Serves the connections of all listeners."""

    def __init__(
        self,
        handlers: Iterable[Handler],
        runtime: Runtime,
        readiness: Readiness,
        quotas: Quotas,
        produce: ProduceParts,
        fetch: FetchParts,
        gate: Gate | None,
        logins: Logins,
        audit: Auditing | None,
        usage: UsagePart,
    ) -> None:
        """Create the dispatcher. `gate` checks clients' requests if there is an authorizer."""
        handlers = list(handlers)
        self.table = table_of(handlers)
        self.client_ranges = [
            each for each in api_ranges(handlers) if each.api_key < FIRST_PRIVATE_KEY
        ]
        self.runtime = runtime
        self.readiness = readiness
        self.quotas = quotas
        self.produce = produce
        self.fetch = fetch
        self.gate = gate
        self.logins = logins
        self.audit = audit
        self.usage = usage
        self.stalls = Stalls(runtime.clock.monotonic_ms)
        self.large = LargeRequests(runtime, self.stalls)

    def service(self, listener: str) -> "ListenerService":
        """Return the service for the connections of a listener."""
        return ListenerService(self, listener)


class ListenerService:
    """Implements `network.service.Service` for one listener."""

    def __init__(self, dispatcher: Dispatcher, listener: str) -> None:
        self._dispatcher = dispatcher
        self._listener = listener
        self._logins = dispatcher.logins.of_listener(listener)

    def attach(self, connection: Connection) -> Serve:
        """See `network.service.Service`."""
        if self._logins is not None:
            return Login(self._logins, connection, self._converse).serve
        serve, connection.serve_run = self._converse(connection)
        return serve

    def _converse(self, connection: Connection) -> tuple[Serve, ServeRun]:
        conversation = Conversation(self._dispatcher, self._listener, connection)
        return conversation.serve, conversation.serve_run


class Conversation:
    """Serves the requests of one connection: decodes, calls the handler, encodes."""

    def __init__(self, dispatcher: Dispatcher, listener: str, connection: Connection) -> None:
        self._table = dispatcher.table
        self._client_ranges = dispatcher.client_ranges
        self._readiness = dispatcher.readiness
        self._quotas = dispatcher.quotas
        self._spawn = dispatcher.runtime.spawn
        self._listener = listener
        self._connection = connection
        self._monotonic_ms = dispatcher.runtime.clock.monotonic_ms
        self._stalls = dispatcher.stalls
        self._large = dispatcher.large
        # Whether the request that is offered next has already waited: for its quota (at most one
        # window), or for a place among the large requests.
        self._has_waited = False
        self._gate = dispatcher.gate
        self._audit = dispatcher.audit
        self._access = None if self._gate is None else self._gate.access(connection)
        self._use = dispatcher.usage.of(connection)
        self._produce_parts, self._fetch_parts = dispatcher.produce, dispatcher.fetch
        self._learn_anew()

    def _learn_anew(self) -> None:
        """Forget the learned shortcuts, because the ACLs have changed since."""
        self._produces = ProduceShortcuts(
            self._produce_parts, self._connection, self._listener, self._use
        )
        self._fetches = FetchShortcut(
            self._fetch_parts,
            self._connection,
            self._listener,
            self._use,
            self._access,
            self._audit,
        )
        if self._access is not None:
            self._access.seen = self._access.authorizer.version

    # Hot: once per receive that contains several requests.
    def serve_run(self, received: memoryview, count_max: int) -> tuple[int, list[Part]] | None:
        """See `network.connection.ServeRun`."""
        if self._quotas.throttling is not None:
            return None
        access = self._access
        if access is not None and access.seen != access.authorizer.version:
            self._learn_anew()
        return self._produces.serve_run(received, count_max)

    # Hot: once per request.
    def serve(self, frame: memoryview) -> list[Part] | None:
        """See `network.connection.Serve`."""
        throttling = self._quotas.throttling
        access = self._access
        if access is not None and access.seen != access.authorizer.version:
            self._learn_anew()
        if throttling is None:
            parts = self._produces.serve(frame)
            if parts is None:
                parts = self._fetches.serve(frame)
            if parts is not None:
                return parts
        return self._watched(self._serve, frame)

    def _watched(self, serve: Serve, frame: memoryview) -> list[Part] | None:
        began_ms = self._monotonic_ms()
        try:
            return serve(frame)
        finally:
            held_ms = self._monotonic_ms() - began_ms
            if held_ms >= STALL_MS:
                self._note_stall(held_ms, frame)

    def _note_stall(self, held_ms: int, frame: memoryview) -> None:
        with contextlib.suppress(StructError, WireError):
            api = _PREFIX.unpack_from(frame)[0]
            self._stalls.note(held_ms, self._connection, api, len(frame))
            header, _ = decode_request_header(frame)
            self._use.note_slow(header.client_id, api, held_ms, LOOP_WAIT)

    def _serve(self, frame: memoryview) -> list[Part] | None:
        try:
            api_key, version, correlation_id = _PREFIX.unpack_from(frame)
            if not self._readiness.is_serving and self._must_wait(api_key):
                return None
            served = self._table.get(api_key)
            if (
                served is not None
                and served.brokers_only
                and proven_broker(self._connection) is None
            ):
                return self._refuse_client(served, frame)
            if served is None or not served.min_version <= version <= served.max_version:
                return self._refuse(api_key, version, correlation_id)
            if self._audit is not None and self._must_wait_for_audit(self._audit, served.api):
                return None
            header, position = decode_request_header(frame)
            is_client = proven_broker(self._connection) is None
            if is_client and self._must_wait_for_quota(header):
                return None
            body = self._decoded(served, header, frame, position, is_client=is_client)
        except TooManyElements as error:
            assert served is not None, "its body was decoded"
            raise too_large(self._connection, served.api) from error
        except (WireError, VersionError, StructError) as error:
            raise malformed(error) from error
        if body is None:
            self._begin_large(served, header, frame, position)
            return None
        request = self._context(header, len(frame), is_client=is_client)
        return self._handle_in_time(served, request, body, frame)

    def _context(self, header: RequestHeader, size: int, *, is_client: bool) -> RequestContext:
        request = RequestContext(
            header, self._connection, self._listener, self._monotonic_ms(), size
        )
        request.audit = self._audit
        if is_client:
            request.use = self._use
        throttling = self._quotas.throttling
        if is_client and throttling is not None:
            request.throttle = throttling.begin(
                self._connection, header.api_key, header.client_id or "", size
            )
        return request

    def _decoded(
        self,
        served: Served,
        header: RequestHeader,
        frame: memoryview,
        position: int,
        *,
        is_client: bool,
    ) -> Any:
        """Decode the body.

        Return None if it has so many elements that it must be served in slices.
        """
        api, version = served.api, header.api_version
        kind = api.request
        if not is_client:
            return decode(kind, version, frame, position)
        if len(frame) <= _SHORT_BYTES:
            body = decode(kind, version, frame, position)
        else:
            decoding = decode_in_steps(kind, version, frame, position, api.elements_max)
            try:
                next(decoding)
            except StopIteration as end:
                body = end.value
            else:
                return None
        if api.once:
            for _ in answer_once(api.once, body):
                pass
        if api.portions and division(api.portions, body) is not None:
            return None
        return body

    def _begin_large(
        self, served: Served, header: RequestHeader, frame: memoryview, position: int
    ) -> None:
        """Hold the request; it is served when it gets a place among the large requests."""
        if not self._large.take(self._connection, partial(self._watched, self._serve)):
            # A request that has a place must not occupy it while waiting for its quota.
            self._has_waited = True
            return
        request = self._context(header, len(frame), is_client=True)
        finish = self._large.begin(
            served,
            request,
            # A copy, because batches are modified in place.
            memoryview(bytearray(frame)),
            position,
            self._admit,
            partial(self._handle_in_time, served),
        )
        self._connection.hold(partial(self._watched, finish))

    def _handle_in_time(
        self, served: Served, request: RequestContext, body: Any, frame: memoryview
    ) -> list[Part] | None:
        parts = self._handle(served, request, body, frame)
        if request.throttle is not None:
            request.throttle.count_time()
        return parts

    def _handle(
        self, served: Served, request: RequestContext, body: Any, frame: memoryview
    ) -> list[Part] | None:
        version = request.version
        denied = self._admit(served, request, body)
        if denied is not None:
            return request.encode(denied)
        try:
            response = served.handle(request, body)
        except OttlaError as error:
            response = served.on_error(body, error.code, error.message, version)
        if response.__class__ is CoroutineType:
            request.settle()
            self._spawn(self._run(served, request, body, response))
            return None
        if request.amend is not None:
            # Later requests may take the shortcut only if the whole request was allowed.
            pass
        elif request.header.api_key == ApiKey.PRODUCE:
            self._produces.learn(frame, version, body, request.client_id)
        elif request.header.api_key == ApiKey.FETCH:
            self._fetches.learn(frame, version, body, request.client_id)
        if response is None:
            return request.settle()
        if response is NO_ANSWER:
            return None
        return request.encode(response)

    def _admit(self, served: Served, request: RequestContext, body: Any) -> Any:
        """Check permissions; return the response if no part of the request is allowed."""
        if self._gate is not None and self._access is not None:
            try:
                denied = self._gate.admit(
                    self._access, request, body, served.api.needs, served.on_error
                )
            except OttlaError as error:
                return served.on_error(body, error.code, error.message, request.version)
            if denied is not None:
                return denied.response
        api = served.api
        if self._audit is not None and api.changes is not None:
            self._audit.watch(request, partial(api.changes, body), often=api.changes_often)
        return None

    async def _run(
        self,
        served: Served,
        request: RequestContext,
        body: Any,
        handling: Coroutine[Any, Any, Any],
    ) -> None:
        try:
            api = request.header.api_key
            response = await self._stalls.watched(handling, self._connection, api, request.size)
        except OttlaError as error:
            response = served.on_error(body, error.code, error.message, request.version)
        except Exception:  # noqa: BLE001  # The client gets an answer in any case.
            _log.exception("a request failed unexpectedly: %s", request.header)
            message = "the broker failed to serve the request; its log says more"
            response = served.on_error(
                body, ErrorCode.UNKNOWN_SERVER_ERROR, message, request.version
            )
        try:
            request.reply(response)
        except Exception:  # noqa: BLE001  # Otherwise the client would wait for ever.
            _log.exception("an answer cannot be sent: %s", request.header)
            self._connection.close("the answer to its request does not fit the version asked for")

    def _must_wait(self, api_key: int) -> bool:
        """Hold the request if this broker does not know yet which partitions it hosts."""
        if api_key == _HANDSHAKE or proven_broker(self._connection) is not None:
            return False
        self._connection.hold()
        self._readiness.when_serving(self._connection.release)
        return True

    def _must_wait_for_quota(self, header: RequestHeader) -> bool:
        """Hold the request if the client has used up its quota; return whether it was held.

        The quota is for all connections of a user together. As in Kafka, a request waits only once,
        and for one window at most.
        """
        throttling = self._quotas.throttling
        if throttling is None or self._has_waited:
            self._has_waited = False
            return False
        wait_ms = throttling.wait_ms(self._connection, header.client_id or "")
        if wait_ms:
            self._has_waited = True
            self._connection.hold(partial(self._watched, self._serve))
            throttling.call_later(wait_ms, self._connection.release)
        return wait_ms > 0

    def _must_wait_for_audit(self, audit: Auditing, api: Api[Any, Any]) -> bool:
        """Return whether the request must wait, because its client fills the audit log too fast."""
        return api.changes is not None and not api.changes_often and audit.holds(self._connection)

    def _refuse_client(self, served: Served, frame: memoryview) -> list[Part]:
        """Refuse a client's request of a broker-only API without decoding it.

        Nearly all answers have the error code in the same place. Raises VersionError if the API
        does not have this version.
        """
        header, _ = decode_request_header(frame)
        request = RequestContext(
            header, self._connection, self._listener, self._monotonic_ms(), len(frame)
        )
        if self._audit is not None:
            self._audit.denied(request, _CLUSTER_ACTION, "only for brokers")
        response = served.api.response
        error = refuse_client(request, served.api.name)
        if not has_field(response, "error_code", header.api_version):
            # The answers of this API have an error code only for each partition.
            raise CloseConnection(error.message, "request: brokers only")
        return request.encode(response(error_code=error.code))

    def _refuse(self, api_key: int, version: int, correlation_id: int) -> list[Part]:
        """Answer an unsupported version of ApiVersions as Kafka does; otherwise close."""
        if api_key == ApiKey.API_VERSIONS:
            response = ApiVersionsResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                api_keys=self._client_ranges,
            )
            return encode_response(response, api_key, 0, correlation_id)
        if api_key not in REQUESTS:
            why = f"it called API {api_key}, which is unknown here"
            raise CloseConnection(why, "request: unknown API")
        name = key_name(api_key)
        why = f"it called {name} in version {version}, which is not served here"
        raise CloseConnection(why, f"request: version of {name}")
