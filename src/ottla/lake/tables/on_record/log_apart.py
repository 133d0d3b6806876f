"""A log that is read by other processes, since some of its files are damaged."""

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from operator import methodcaller
from typing import Any, NoReturn

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.events.buckets import ONE_BUCKET, Buckets
from ottla.lake.folder.apart import CallFailed, run_apart
from ottla.lake.log.records import NewFiles
from ottla.lake.manifest import Manifest
from ottla.lake.tables.log import LogReading, NamedLoad, TableLog


class LogApart:
    """`log`, for reading: what ends the process that reads it becomes an OttlaError."""

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self.kind = log.kind

    def newest(self) -> NamedLoad:
        found: NamedLoad = self._call(methodcaller("newest"))
        return found

    def live_paths(self) -> Sequence[str]:
        found: Sequence[str] = self._call(methodcaller("live_paths"))
        return found

    def read(self, columns: Any, buckets: Buckets = ONE_BUCKET) -> LogReading:
        found: LogReading = self._call(methodcaller("read", columns, buckets))
        return found

    def needed(self, paths: Sequence[str]) -> Sequence[str]:
        found: Sequence[str] = self._call(methodcaller("needed", paths))
        return found

    def may_write_again(self, path: str, content: bytes, known: Collection[str]) -> bool:
        return self._log.may_write_again(path, content, known)

    def catalog_findings(
        self, known: Mapping[str, Any], through: Mapping[str, Any]
    ) -> tuple[list[str], list[str]]:
        found: tuple[list[str], list[str]]
        found = self._call(methodcaller("catalog_findings", known, through))
        return found

    def forget(self, oldest: int, *, dry_run: bool) -> AbstractSet[str]:
        self._refuse(oldest, dry_run)

    def new_files(self, since: Mapping[str, Any] | None) -> NewFiles:
        self._refuse(since)

    def must_rewrite(self, columns: Any) -> bool:
        self._refuse(columns)

    def commit(self, manifest: Manifest, digest: str) -> bool:
        self._refuse(manifest, digest)

    def _call(self, method: Callable[[TableLog], Any]) -> Any:
        try:
            return run_apart(partial(method, self._log))
        except CallFailed as error:
            raise OttlaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.kind}'s log can't be read: {error}"
            ) from error

    def _refuse(self, *_: object) -> NoReturn:
        raise OttlaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"{self.kind}'s log is damaged: nothing is written to it"
        )
