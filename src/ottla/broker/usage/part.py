"""The part that keeps the use of topics by clients, in memory and in a file.

The file is written once a minute if something has changed, and when the broker stops. After a crash
the uses of the last minute may be missing; the table then says so (`gap_ms`).
"""

import asyncio
import logging
from dataclasses import dataclass

from ottla.broker.runtime.part import BrokerPart, StopMode
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Chores
from ottla.broker.runtime.view import ClusterView
from ottla.broker.usage.delays import DelayTable, Reason, Wait
from ottla.broker.usage.table import ConnectionUse, UsageTable
from ottla.network.connection import Connection
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.filesystem import write_atomically
from ottla.wire.api import ApiKey

_log = logging.getLogger(__name__)

USAGE_FILE = "client-usage.json"
_SWEEP_MS = 10_000
_WRITE_MS = 60_000
# Entries encoded in one turn of the loop.
_SLICE = 200


@dataclass(frozen=True, slots=True)
class UsageStatus:
    """Counts of remembered uses and clients, and of slow and failed requests since the start."""

    entries: int
    since_ms: int
    slow_requests: int
    failed_requests: int


class UsagePart(BrokerPart):
    """The use of topics by clients on this broker, and the delays of their requests."""

    def __init__(
        self,
        runtime: Runtime,
        view: ClusterView,
        directories: LogDirectories,
        stop_mode: StopMode,
    ) -> None:
        self._runtime = runtime
        self._view = view
        self._directories = directories
        self._stop_mode = stop_mode
        self._chores = Chores()
        self.table = UsageTable(runtime.clock.now_ms())
        self.delays = DelayTable()
        self._written = 0

    async def start(self) -> None:
        """Read the file; a missing or unreadable one means that nothing is known yet."""
        filesystem, path = self._directories.filesystem, self._path()
        if path is None or not filesystem.exists(path):
            return
        try:
            content = filesystem.read_bytes(path).decode()
            self.table.read(content.splitlines(), self._runtime.clock.now_ms())
        except (OSError, ValueError) as error:
            _log.warning(
                "the use of topics by clients before this start is unknown: %s cannot be read: %s",
                path,
                error,
            )
        self._written = self.table.changes

    def begin(self) -> None:
        self._chores.every(_SWEEP_MS, self.sweep)
        self._chores.every(_WRITE_MS, self.write)

    async def stop(self) -> None:
        await self._chores.stop()
        if self._stop_mode.clean:
            await self.write(is_last=True)

    def status(self) -> UsageStatus:
        return UsageStatus(
            entries=len(self.table),
            since_ms=self.table.since_ms,
            slow_requests=self.delays.slow_count,
            failed_requests=self.delays.failure_count,
        )

    def of(self, connection: Connection) -> ConnectionUse:
        """Return what counts the requests of a connection."""
        return ConnectionUse(self.table, self.delays, connection, self._runtime.clock)

    def note_slow(
        self, client_id: str, took_ms: int, wait: Wait, *, api: ApiKey = ApiKey.PRODUCE
    ) -> None:
        """Note a request that took at least SLOW_MS."""
        reason = Reason(api, wait.reason, wait.detail, *wait.partition)
        self.delays.note_slow(client_id, took_ms, self._runtime.clock.now_ms(), reason)

    async def sweep(self) -> None:
        """Note the uses since the last sweep, and the topics that there are now."""
        now_ms = self._runtime.clock.now_ms()
        if topics := self._view.image.topics:
            self.table.watch(topics.keys(), now_ms)
        self.table.sweep(now_ms)

    async def write(self, *, is_last: bool = False) -> None:
        """Write the file if something has changed since."""
        table, path = self.table, self._path()
        await self.sweep()
        if path is None or (table.changes == self._written and not is_last):
            return
        changes = table.changes
        lines: list[str] = []
        for line in table.lines(is_last=is_last):
            lines.append(line)
            if len(lines) % _SLICE == 0 and not is_last:
                await asyncio.sleep(0)
        content = "".join(f"{line}\n" for line in lines).encode()
        filesystem = self._directories.filesystem

        def replace() -> None:
            write_atomically(filesystem, path, content, durable=False)

        try:
            if filesystem.in_memory:
                replace()
            else:
                await self._runtime.in_thread(replace)
        except OSError as error:
            _log.warning(
                "the use of topics by clients cannot be written to %s: %s; it is kept in memory",
                path,
                error,
            )
            return
        self._written = changes

    def _path(self) -> str | None:
        online = self._directories.online
        return f"{online[0].path}/{USAGE_FILE}" if online else None
