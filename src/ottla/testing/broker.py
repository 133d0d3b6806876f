"""A broker inside the test process, for any Kafka client; it ends with the test.

    with ottla.testing.Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})

It runs in a background thread with its own event loop. It installs no signal handlers, sets no
global loop policy and takes a free port. It starts a child process only to compact a topic that
is stored on a disk.
"""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from ottla.base.clock import SystemClock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.handlers.decisions import described_rebalance
from ottla.broker.process.broker import Broker as BrokerProcess
from ottla.broker.process.stored_security import security_in, stored_security
from ottla.coordination.interface.store import Store
from ottla.coordination.memory.memory import MemoryStore
from ottla.metadata.topic_plan import RequestedTopic
from ottla.operations.secure.login import PROTOCOL, ClientLogin, new_password
from ottla.operations.secure.settings import ADMINISTRATOR, secured
from ottla.security.sasl.scram_keys import ITERATIONS_MIN
from ottla.storage.disk.filesystem import FileSystem, OsFileSystem
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.testing.progress import (
    Check,
    GroupProgress,
    lacks_assignment,
    lacks_consumption,
    lacks_rest,
)
from ottla.testing.tally import Tally
from ottla.wire.messages.decisions import DescribedRebalance

Result = TypeVar("Result")

# Settings for tests: no other member or broker will join, so there is no reason to wait for one.
_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
}
_PATIENCE_S = 30.0


class Broker:
    """A broker in a background thread. Use it as a context manager, or call `start()` and `stop()`.

    `storage` is `"memory"`, `"temporary"` (files in a folder that is removed at the end), or a
    folder of yours, in which a later broker finds the data again. `settings` are Kafka's broker
    settings by name. `port` 0 takes a free port. With `secure`, clients log in over TLS by
    SCRAM, and brokers check ACLs; `login` has the settings of the administrator, `admin`, for each
    client library.
    """

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        storage: Literal["memory", "temporary"] | Path = "memory",
        host: str = "127.0.0.1",
        port: int = 0,
        secure: bool = False,
    ) -> None:
        self._given = dict(settings or {})
        self._storage = storage
        self._host = host
        self._asked_port = port
        self._login: ClientLogin | None = None
        self._is_secure = secure
        self._thread: threading.Thread | None = None
        self._folder: Path | None = None

    @property
    def bootstrap(self) -> str:
        """Return `host:port`, for the clients' setting `bootstrap.servers`."""
        return f"{self._host}:{self.port}"

    @property
    def port(self) -> int:
        """Return the port to which clients connect."""
        return self._require_running().port

    @property
    def login(self) -> ClientLogin:
        """Return the administrator's login of a secure broker: see `login.for_librdkafka()` etc."""
        if self._login is None:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                "only a secure broker that runs has logins: `with ottla.testing.Broker(secure=True)"
                " as broker:`",
            )
        return self._login

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the broker; return once clients can connect. Raises OttlaError on a failure."""
        assert self._thread is None, "already started"
        self._broker = self._make()
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ottla", daemon=True)
        self._thread.start()
        try:
            if self._login is not None:
                self._on_loop(self._add_administrator(self._login))
            self._on_loop(self._broker.start())
            self._progress = GroupProgress(self._broker.parts)
            Tally(self._broker.parts)
        except BaseException:
            self._end_thread()
            raise

    def stop(self) -> None:
        """Stop the broker and close all connections. The data stays only in a folder of yours."""
        if self._thread is None:
            return
        try:
            self._on_loop(self._broker.stop())
        finally:
            self._end_thread()

    def create_topic(
        self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic without a client. Raises OttlaError with the code a client would get."""
        new = RequestedTopic(name, partitions=partitions, configs=dict(settings or {}))
        (outcome,) = self._on_loop(self._require_running().parts.metadata.topics.create([new]))
        if outcome.error is not None:
            raise outcome.error

    def apply_retention(self) -> None:
        """Apply retention now, without waiting for its next check."""
        self._on_loop(self._require_running().parts.retention.apply_retention())

    def until_assigned(
        self,
        group: str,
        partitions: int,
        *,
        members: int | None = None,
        timeout: float = _PATIENCE_S,
    ) -> None:
        """Wait until a group has settled and `partitions` are assigned, with so many `members`.

        Settled means that every member has got its assignment from the coordinator. A member of a
        classic group or of kafka-python joins only while its program polls it. `timeout` is in
        seconds. Raises TimeoutError, whose text has the story of the group: its members, who is
        late, the causes of its rebalances, committed and end offsets.
        """
        parts = self._require_running().parts
        check = partial(lacks_assignment, parts, group, partitions, members)
        self._wait(check, [group], timeout)

    def until_consumed(self, group: str, topic: str, *, timeout: float = _PATIENCE_S) -> None:
        """Wait until a group has consumed every record of a topic, and that is on disk.

        Consumer groups consume a record by committing an offset above it, share groups by
        acknowledging it. Control records and aborted records need not be consumed; records of an
        open transaction must be. Raises TimeoutError as `until_assigned` does.
        """
        parts = self._require_running().parts
        self._wait(partial(lacks_consumption, parts, group, topic), [group], timeout)

    def until_idle(self, *, timeout: float = _PATIENCE_S) -> None:
        """Wait until the broker and the groups with members have nothing left to do.

        That is: every record is committed and on disk, no transaction is open, no group
        rebalances, and each group with members has consumed (as in `until_consumed`) the
        partitions assigned to it. Groups without members do not count, so first wait until your
        members have joined. Raises TimeoutError with the story of all groups.
        """
        parts = self._require_running().parts
        self._wait(partial(lacks_rest, parts), [], timeout)

    def rebalances(self, group: str) -> list[DescribedRebalance]:
        """Return the latest rebalances of a group: causes, durations, who had no partitions."""

        async def describe() -> list[DescribedRebalance]:
            flights = self._broker.parts.groups.flights.of(group)
            return [described_rebalance(flight) for flight in flights]

        self._require_running()
        return self._on_loop(describe())

    def _wait(self, check: Check, groups: Sequence[str], timeout_s: float) -> None:
        waiting = self._progress.until(check, groups, timeout_s)
        future = asyncio.run_coroutine_threadsafe(waiting, self._loop)
        try:
            future.result()
        finally:
            future.cancel()

    def _make(self) -> BrokerProcess:
        filesystem: FileSystem = OsFileSystem()
        self._store: Store | None = None
        if self._storage == "memory":
            # The folder exists only in this filesystem.
            folder, self._store = Path("/ottla"), MemoryStore()
            filesystem = MemoryFileSystem(now_ms=SystemClock().now_ms)
        elif self._storage == "temporary":
            folder = self._folder = Path(tempfile.mkdtemp(prefix="ottla-"))
        else:
            folder = self._storage
        protocol = PROTOCOL if self._is_secure else "PLAINTEXT"
        chosen = {
            **_SETTINGS,
            "listeners": f"{protocol}://{self._host}:{self._asked_port}",
            "log.dirs": str(folder),
            **self._given,
        }
        if self._is_secure:
            chosen |= self._secured(chosen)
        return BrokerProcess(BrokerSettings(chosen), filesystem=filesystem, store=self._store)

    def _secured(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the settings that secure a broker; keys and passwords are new for this start."""
        try:
            from ottla.operations.secure.setup import (  # noqa: PLC0415  # An extra.
                stores_in_memory,
            )
        except ImportError:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                "secure=True makes certificates, for which a library is missing: pip install"
                " 'ottla[security]'",
            ) from None
        stores = stores_in_memory([self._host], datetime.now(UTC))
        added = secured(given, stores)
        authority = stores["ssl.truststore.certificates"]
        self._login = ClientLogin(ADMINISTRATOR, new_password(), authority)
        return added

    async def _add_administrator(self, login: ClientLogin) -> None:
        """Store the administrator before the broker starts, so that clients can log in at once."""
        if self._store is not None:
            stored = await security_in(self._store)
            await stored.set_password(login.user, login.password, ITERATIONS_MIN)
            return
        async with stored_security(self._broker.settings) as stored:
            await stored.set_password(login.user, login.password, ITERATIONS_MIN)

    def _require_running(self) -> BrokerProcess:
        if self._thread is None:
            raise OttlaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                "this broker does not run: use it as `with ottla.testing.Broker() as broker:`",
            )
        return self._broker

    def _on_loop(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_S)

    def _end_thread(self) -> None:
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE_S)
        self._loop.close()
        self._thread = None
        self._login = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop, of uvloop if it is installed; the loop policy is not changed."""
    try:
        import uvloop  # noqa: PLC0415  # Optional: the import shows whether it is installed.
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
