"""`ottla lake follow`: what comes into a topic, into a table, in commits of seconds.

    take the table over (writer epoch + 1) → micro-batch → commit as a load does → micro-batch …

Killed at any step it has lost and doubled nothing; started again it goes on at the table's
positions. Of two that follow into one table the one that was started later goes on.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.errors import ConnectionFailed, RequestTimedOut
from ottla.lake import spark
from ottla.lake.cluster import connect
from ottla.lake.events.times import EventSettings
from ottla.lake.folder.leftovers import Steps
from ottla.lake.folder.storage_errors import as_storage_error
from ottla.lake.loads.committing import LoadSettings, Runner
from ottla.lake.loads.file_sizes import FileSizes
from ottla.lake.plan import parse_boundary
from ottla.lake.session import SparkSettings, session
from ottla.lake.stream.follow.batches import MicroBatches, PlainBatches
from ottla.lake.stream.follow.progress import FollowProgress, progress_of
from ottla.lake.stream.follow.writer import FollowingWriter
from ottla.lake.stream.options import parse_options
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import open_table, place_of
from ottla.lake.tables.table import FencedWriter, LoadLost

MAX_BYTES = 128 << 20
EVERY_MS = 10_000
# Waiting or another try mends none of these.
_FINAL = frozenset(
    {
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
# How often in a row any other failure is tried again; connections as long as it takes.
_TRIES = 3
_WAIT_MAX_S = 30.0


def follow(
    topic: str,
    target: str,
    *,
    bootstrap: str = "localhost:9092",
    start: str = "last-load",
    once: bool = False,
    max_bytes: int = MAX_BYTES,
    every_ms: int = EVERY_MS,
    group: str | None = None,
    skip_unreadable: bool = False,
    accept_loss: bool = False,
    on_bad_timestamp: Literal["fail", "null"] = "fail",
    log_dirs: Sequence[str] = (),
    events: EventSettings | None = None,
    sizes: FileSizes | None = None,
    format: Format | None = None,  # noqa: A002  # As `load` has it.
    store_options: Mapping[str, str] | None = None,
    spark_session: Any = None,
    spark_settings: SparkSettings | None = None,
    runner: Runner | None = None,
    stop: threading.Event | None = None,
    on_commit: Callable[[FollowProgress], None] = lambda _progress: None,
    on_trouble: Callable[[OttlaError], None] = lambda _error: None,
    on_step: Callable[[str], None] = lambda _step: None,
) -> None:
    """Load what comes into `topic` into the table in `target` until `stop` is set.

    A commit is made once about `max_bytes` of the log have come, or `every_ms` after the one
    before; none has much more than `max_bytes`. With `once` it ends when all is loaded that was
    there at the start. Other arguments are those of `load`. Micro-batches and tasks run on Spark,
    unless `runner` runs the tasks: then all of it runs in this process. `stop` is noticed after
    the commit that runs. `on_trouble` is called with failures that are tried again, from the
    table's positions: of connections as long as it takes, others three times in a row.
    Raises OttlaError (FencedWriter, where another one was started for this table).
    """
    stop = stop or threading.Event()
    steps = Steps()

    def on_each_step(step: str) -> None:
        steps.done.add(step)
        on_step(step)

    place = place_of(target, store_options)
    start_at = parse_boundary(start)
    settings = LoadSettings(
        bootstrap,
        skip_unreadable,
        accept_loss,
        on_bad_timestamp == "null",
        tuple(log_dirs),
        events=events or EventSettings(),
        sizes=sizes or FileSizes(),
    )
    poll_s = min(1.0, max(0.1, every_ms / 5000))
    with as_storage_error(place):
        _require_topic(bootstrap, topic)
        table = open_table(target, format, store_options, on_each_step)
        writer = FollowingWriter(table, topic, settings, group, steps, on_step)
        options = _source_options(topic, bootstrap, max_bytes, every_ms)
        parsed = parse_options(options | {"start": "last-load", "table": place})
        batches: MicroBatches = PlainBatches(parsed, once=once, poll_s=poll_s)
        if runner is not None:
            start_runner: Callable[[], Runner] = lambda: runner  # noqa: E731
        else:
            started = spark_session or session(spark_settings)
            batches = _on_spark(started, options, once, poll_s) or batches
            start_runner = lambda: partial(spark.run_tasks, started)  # noqa: E731
        writer.take_over(start_at)
        on_step("following")
        last = Tries(stop, on_trouble)

        def commit(ends: Mapping[int, int]) -> None:
            began_s = time.monotonic()
            manifest = writer.commit_to(ends, start_runner)
            last.succeeded()
            if manifest is not None:
                on_commit(progress_of(manifest, bootstrap, began_s))

        while not stop.is_set():
            try:
                batches.run(writer.positions(), commit, stop)
                return
            except OttlaError as error:
                last.failed(error)


class Tries:
    """Which failures are tried again, and when."""

    def __init__(self, stop: threading.Event, on_trouble: Callable[[OttlaError], None]) -> None:
        self._stop = stop
        self._on_trouble = on_trouble
        self._count = 0

    def succeeded(self) -> None:
        """A commit was made."""
        self._count = 0

    def failed(self, error: OttlaError) -> None:
        """Wait before the next try. Raises `error` where there is none."""
        if isinstance(error, LoadLost):
            return  # Another load has committed; the table says how far.
        if isinstance(error, FencedWriter) or error.code in _FINAL:
            raise error
        self._count += 1
        if self._count > _TRIES and not isinstance(error, ConnectionFailed | RequestTimedOut):
            raise error
        self._on_trouble(error)
        self._stop.wait(min(_WAIT_MAX_S, 2.0 ** (self._count - 1)))


def _require_topic(bootstrap: str, topic: str) -> None:
    """A mistyped topic leaves no empty table behind."""
    cluster = connect(bootstrap)
    try:
        cluster.describe(topic)
    finally:
        cluster.close()


def _source_options(topic: str, bootstrap: str, max_bytes: int, every_ms: int) -> dict[str, str]:
    return {
        "topic": topic,
        "bootstrap": bootstrap,
        "maxBytesPerTrigger": str(max_bytes),
        "minBytesPerTrigger": str(max_bytes),
        "maxTriggerDelay": f"{every_ms}ms",
        # Losses are judged by the table's positions.
        "failOnDataLoss": "false",
    }


def _on_spark(
    started: Any, options: Mapping[str, str], once: bool, poll_s: float
) -> MicroBatches | None:
    """Micro-batches of Structured Streaming, where that serves.

    With Spark Connect it would commit in the server's process, and before Spark 4.2 it has no
    limits: there the ends are found in this process, and only tasks run on Spark.
    """
    from ottla.lake.datasource import SPARK_VERSION  # noqa: PLC0415  # Spark.
    from ottla.lake.stream.follow.spark_batches import SparkBatches  # noqa: PLC0415  # Spark.

    if SPARK_VERSION < (4, 2) or type(started).__module__.startswith("pyspark.sql.connect"):
        return None
    return SparkBatches(started, options, once=once, poll_s=poll_s)
