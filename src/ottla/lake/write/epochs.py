"""The writer epoch of a long-running writer. If two write one table, the older one stops."""

import time
import uuid
from collections.abc import Callable
from contextlib import closing

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.model.manifest import Manifest, next_manifest
from ottla.lake.source.access import Bootstrap
from ottla.lake.source.cluster import Cluster, connect
from ottla.lake.tables.table import FencedWriter, LakeTable, LoadLost
from ottla.lake.write.commit import built_on

# How often a writer tries its first commit while others commit.
_TAKE_OVER_TRIES = 100


class WriterEpoch:
    """The epoch of one writer, which it gets when it takes the table over."""

    def __init__(
        self, table: LakeTable, topic: str, started_by: str, *, is_changelog: bool = False
    ) -> None:
        """Start without an epoch. Errors use `started_by` to name what may run only once."""
        self._table = table
        self._topic = topic
        self._started_by = started_by
        self._is_changelog = is_changelog
        self._number: int | None = None

    @property
    def is_taken(self) -> bool:
        """Return whether this writer has taken the table over."""
        return self._number is not None

    def take_over(self, bootstrap: Bootstrap, prepare: Callable[[Cluster], object]) -> None:
        """Fence writers that started earlier. `prepare` makes any commit that is needed first.

        Raises OttlaError if other writers keep committing.
        """
        for _ in range(_TAKE_OVER_TRIES):
            try:
                with closing(connect(bootstrap)) as cluster:
                    prepare(cluster)
                    self._add(cluster)
                return
            except (LoadLost, FencedWriter):
                continue  # Another writer has committed: try again on top of that commit.
        raise OttlaError(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"other writers commit to {self._table.store.url} all the time: stop them first",
        )

    def require(self, newest: Manifest | None) -> None:
        """Raise FencedWriter if the table's newest manifest has another writer epoch."""
        if self._number is None or newest is None or newest.writer_epoch == self._number:
            return
        raise FencedWriter(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"a writer with epoch {newest.writer_epoch} has taken {self._table.store.url} over "
            f"from this one, which has epoch {self._number} and stops: see that only one "
            f"{self._started_by} is started for a table",
        )

    def _add(self, cluster: Cluster) -> None:
        described, before, digest = built_on(
            self._table, cluster, self._topic, is_changelog=self._is_changelog
        )
        manifest = next_manifest(
            before,
            digest,
            load_id=uuid.uuid4().hex,
            topic=self._topic,
            topic_id=described.topic_id,
            cluster_id=described.cluster_id,
            created_ms=time.time_ns() // 1_000_000,
            files=(),
            ledgers=(),
            kind="epoch",
        )
        self._table.commit(manifest)
        self._number = manifest.writer_epoch
