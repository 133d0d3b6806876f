"""A client's connections by broker id, and the cluster's metadata, refreshed when stale."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from ottla.base.chance import new_random
from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.common.arguments import name_list
from ottla.client.common.errors import (
    ClientClosed,
    ClientError,
    ConnectionFailed,
    Needs,
    RequestTimedOut,
    UnknownTopic,
    check,
    refused,
    unknown_topic,
)
from ottla.client.connection.attempts import Backoff, FirstContact
from ottla.client.connection.connection import Connection, connect
from ottla.client.connection.security import ClientSecurity, default_security
from ottla.client.connection.view import (
    NO_LEADER,
    Address,
    ClusterView,
    PartitionDescription,
    TopicDescription,
    merged,
    parse_bootstrap,
)
from ottla.wire.api import ApiKey
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from ottla.wire.notation import Message

Response = TypeVar("Response")

# Key types of FindCoordinator.
GROUP = 0
TRANSACTIONAL_ID = 1
BOOTSTRAP_TIMEOUT_MS = 5_000
_KINDS = {GROUP: "group", TRANSACTIONAL_ID: "transactional id"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """How a client reaches its cluster. Times in milliseconds."""

    client_id: str = "ottla"
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    # How long to wait for a first answer of any bootstrap address.
    bootstrap_timeout_ms: int = BOOTSTRAP_TIMEOUT_MS
    metadata_max_age_ms: int = 300_000
    # How long an idempotent call is retried before its last error is raised.
    retry_timeout_ms: int = 60_000
    backoff: Backoff = field(default_factory=Backoff)
    allow_topic_creation: bool = False
    security: ClientSecurity = field(default_factory=default_security)


class Cluster:
    """The connections and metadata of one producer, consumer or administration client.

    Belongs to the event loop that first uses it.
    """

    def __init__(self, bootstrap: str | Iterable[str], options: ClusterOptions) -> None:
        self.bootstrap = parse_bootstrap(bootstrap)
        self.options = options
        self.view = ClusterView()
        self.chance = new_random()
        self._connections: dict[tuple[Address, str], Connection] = {}
        self._connecting: dict[tuple[Address, str], asyncio.Task[Connection]] = {}
        self._wanted: set[str] = set()
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed_at_s = float("-inf")
        self._metadata_source: Address | None = None
        self._first_contact = FirstContact(self.bootstrap, options.bootstrap_timeout_ms)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def check_loop(self) -> None:
        """Raise ClientError unless this is the event loop of the first call.

        Connections, timers and waiters belong to that loop; on another one they would never finish.
        """
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise ClientError(
                ErrorCode.INVALID_REQUEST,
                "this client belongs to another event loop, perhaps of an earlier asyncio.run: make"
                " and close a client within one asyncio.run, or use ottla.client.sync, whose"
                " clients need no loop",
            )

    @property
    def named(self) -> str:
        """Return the bootstrap addresses as text."""
        return ",".join(map(str, self.bootstrap))

    # -- connections

    async def connection(self, broker_id: int, purpose: str = "") -> Connection:
        """Return the connection to a broker, opening it if needed.

        Each purpose has its own connection, so that a long poll delays no other requests.
        """
        broker = self.view.brokers.get(broker_id)
        if broker is None:
            raise ConnectionFailed(
                f"broker {broker_id} is not among the live brokers "
                f"{sorted(self.view.brokers)}; it is down or still starting"
            )
        return await self._connection_to(broker.address, purpose)

    def open_connection(self, broker_id: int, purpose: str = "") -> Connection | None:
        """Return the connection to a broker if it is open now."""
        broker = self.view.brokers.get(broker_id)
        if broker is None:
            return None
        connection = self._connections.get((broker.address, purpose))
        return connection if connection is not None and connection.is_open else None

    async def any_connection(self) -> Connection:
        """Return a connection to any broker: an open one, else any known or bootstrap address.

        Raises ConnectionFailed, RequestTimedOut; BootstrapFailed if no broker has ever answered.
        """
        self.check_loop()
        self._first_contact.begin(self.now_s())
        for connection in self._connections.values():
            if connection.is_open:
                return connection
        known = [broker.address for broker in self.view.brokers.values()]
        self.chance.shuffle(known)
        failure: ClientError | None = None
        for address in dict.fromkeys([*known, *self.bootstrap]):
            try:
                return await self._connection_to(address, "")
            except (ConnectionFailed, RequestTimedOut) as error:
                failure = failure or error
        assert failure is not None
        raise self._first_contact.failed(failure, self.now_s())

    async def _another_connection(self) -> Connection:
        """Connect, if possible, to another broker than the one that sent the last metadata.

        That broker may be cut off from the others, and its metadata out of date.
        """
        source = self._metadata_source
        for connection in self._connections.values():
            if connection.is_open and connection.address != source:
                return connection
        known = [b.address for b in self.view.brokers.values() if b.address != source]
        self.chance.shuffle(known)
        for address in known:
            try:
                return await self._connection_to(address, "")
            except (ConnectionFailed, RequestTimedOut):
                continue
        return await self.any_connection()

    async def _connection_to(self, address: Address, purpose: str) -> Connection:
        if self._closed:
            raise ClientClosed("the client is closed; make a new one")
        self.check_loop()
        key = (address, purpose)
        connection = self._connections.get(key)
        if connection is not None and connection.is_open:
            return connection
        task = self._connecting.get(key)
        if task is None:
            task = asyncio.ensure_future(self._open(address))
            self._connecting[key] = task
            task.add_done_callback(lambda done: self._on_opened(key, done))
        return await asyncio.shield(task)

    async def _open(self, address: Address) -> Connection:
        source = self._metadata_source
        advertised_by = None if address in self.bootstrap or source is None else str(source)
        timeout_s = self._first_contact.limit_s(self.options.connect_timeout_ms / 1000)
        return await connect(
            address,
            self.options.client_id,
            timeout_s,
            advertised_by=advertised_by,
            security=self.options.security,
        )

    def _on_opened(self, key: tuple[Address, str], task: "asyncio.Task[Connection]") -> None:
        del self._connecting[key]
        if task.cancelled() or task.exception() is not None:
            return
        if self._closed:
            task.result().close()
        else:
            self._connections[key] = task.result()

    # -- metadata

    async def topic(self, name: str) -> TopicDescription:
        """Return a topic's partitions; request its metadata if it is unknown.

        Raises UnknownTopic, which names similar topics.
        """
        view = self.view.topics.get(name)
        if view is not None:
            return view
        name_list([name])  # An invalid name would make every later request fail.
        self._wanted.add(name)
        deadline_s = self.deadline_s()
        attempt = 0
        while True:
            try:
                await self.refresh()
            except (ConnectionFailed, RequestTimedOut):
                if self.now_s() >= deadline_s:
                    raise
            view = self.view.topics.get(name)
            if view is not None:
                return view
            code = self.view.errors.get(name, ErrorCode.LEADER_NOT_AVAILABLE)
            if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                # This request may have created the topic, which then appears within moments.
                patience = 5 if self.options.allow_topic_creation else 2
                if attempt >= patience:
                    self._wanted.discard(name)
                    raise unknown_topic(name, await self.topic_names())
            elif not code.retriable or self.now_s() >= deadline_s:
                self._wanted.discard(name)
                raise refused(
                    code, f"describe the topic {name!r}", None, [Needs("describe", "topic", name)]
                )
            await self.pause(attempt)
            attempt += 1

    async def partition(self, name: TopicPartition) -> PartitionDescription:
        """Return a partition of a topic, looked up as by `topic`. Raises UnknownTopic."""
        partitions = (await self.topic(name.topic)).partitions
        if not 0 <= name.partition < len(partitions):
            raise UnknownTopic(
                f"topic {name.topic!r} has partitions 0 to {len(partitions) - 1}, "
                f"not {name.partition}"
            )
        return partitions[name.partition]

    async def topic_names(self) -> list[str]:
        """Return the names of all topics that this client may see, in order."""
        answer = await self.ask_any(MetadataRequest(topics=None), MetadataResponse)
        return sorted(topic.name for topic in answer.topics if topic.name is not None)

    def want(self, topics: Iterable[str]) -> None:
        """Include these topics in every refresh from now on."""
        self._wanted.update(name_list(topics))

    @property
    def is_stale(self) -> bool:
        """Whether the metadata is older than metadata_max_age_ms."""
        age_s = self.now_s() - self._refreshed_at_s
        return age_s * 1000 > self.options.metadata_max_age_ms

    async def refresh(self) -> None:
        """Request metadata of the wanted topics once; concurrent callers share the request."""
        self.check_loop()
        if self._refreshing is None:
            self._refreshing = asyncio.ensure_future(self._refresh())
            self._refreshing.add_done_callback(self._on_refreshed)
        await asyncio.shield(self._refreshing)

    def _on_refreshed(self, task: "asyncio.Task[None]") -> None:
        self._refreshing = None
        if not task.cancelled():
            task.exception()

    async def _refresh(self) -> None:
        asked = sorted(self._wanted)
        # An early refresh means that the last metadata was wrong, so ask another broker.
        if self.is_stale:
            connection = await self.any_connection()
        else:
            connection = await self._another_connection()
        answer = await self._answer_of(connection, self._metadata_request(asked), MetadataResponse)
        check(answer.error_code, "send its metadata")
        self._metadata_source = connection.address
        self.view = merged(self.view, answer, asked)
        self._refreshed_at_s = self.now_s()

    def _metadata_request(self, asked: Iterable[str]) -> MetadataRequest:
        return MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in asked],
            allow_auto_topic_creation=self.options.allow_topic_creation,
        )

    # -- asking

    async def ask(
        self, broker_id: int, message: Message, response_type: type[Response], *, purpose: str = ""
    ) -> Response:
        """Ask one broker once."""
        connection = await self.connection(broker_id, purpose)
        return await connection.request(
            message, response_type, self.options.request_timeout_ms / 1000
        )

    async def ask_any(self, message: Message, response_type: type[Response]) -> Response:
        """Ask any broker, retrying while none can be reached."""
        attempt = 0
        deadline_s = self.deadline_s()
        while True:
            try:
                connection = await self.any_connection()
                return await self._answer_of(connection, message, response_type)
            except (ConnectionFailed, RequestTimedOut):
                if self.now_s() >= deadline_s:
                    raise
            await self.pause(attempt)
            attempt += 1

    async def _answer_of(
        self, connection: Connection, message: Message, response_type: type[Response]
    ) -> Response:
        """Ask the broker of `connection`, which may be the first one to answer this client."""
        try:
            answer = await connection.request(
                message, response_type, self.options.request_timeout_ms / 1000
            )
        except (ConnectionFailed, RequestTimedOut) as error:
            raise self._first_contact.failed(error, self.now_s()) from None
        self._first_contact.made()
        return answer

    async def controller(self) -> int:
        """Return the id of the controller (or of any broker if the cluster names none)."""
        if self.view.controller_id not in self.view.brokers:
            await self.refresh()
        if self.view.controller_id in self.view.brokers:
            return self.view.controller_id
        return next(iter(self.view.brokers), NO_LEADER)

    async def coordinator(self, name: str, kind: int = GROUP) -> int:
        """Return the coordinator's id for a group or transactional id; wait if there is none."""
        attempt = 0
        deadline_s = self.deadline_s()
        while True:
            request = FindCoordinatorRequest(key=name, key_type=kind, coordinator_keys=[name])
            connection = await self.any_connection()
            if connection.version(ApiKey.FIND_COORDINATOR) >= 4:
                request.key = ""
            else:
                request.coordinator_keys = []
            answer = await self._answer_of(connection, request, FindCoordinatorResponse)
            found = answer.coordinators[0] if answer.coordinators else answer
            if not found.error_code:
                if found.node_id not in self.view.brokers:
                    await self.refresh()
                return found.node_id
            code = ErrorCode(found.error_code)
            if not code.retriable or self.now_s() >= deadline_s:
                needed = [
                    Needs("describe", "group", name),
                    Needs("write", "transactional-id", name),
                ]
                raise refused(
                    code, f"name the coordinator of {_KINDS[kind]} {name!r}", None, needed
                )
            await self.pause(attempt)
            attempt += 1

    async def pause(self, attempt: int) -> None:
        """Wait before the next attempt."""
        self._first_contact.about_to_retry()
        await asyncio.sleep(self.options.backoff.delay_s(attempt, self.chance))

    def now_s(self) -> float:
        """Return the loop's time."""
        return asyncio.get_running_loop().time()

    def deadline_s(self) -> float:
        """Return when an idempotent call that begins now is not retried any more."""
        return self.now_s() + self.options.retry_timeout_ms / 1000

    async def close(self) -> None:
        """Close every connection, for good."""
        self.check_loop()
        self._closed = True
        for task in list(self._connecting.values()):
            task.cancel()
        if self._refreshing is not None:
            self._refreshing.cancel()
        for connection in self._connections.values():
            connection.close(ClientClosed("the client was closed"))
        self._connections.clear()
        await asyncio.sleep(0)


class ConnectedClient(Protocol):
    """A producer, a consumer or an administration."""

    _connections: Cluster


def connections_of(client: ConnectedClient) -> Cluster:
    """Return a client's connections, for requests without a method of their own."""
    return client._connections
