"""`ottla lake follow`: what comes into a topic, into a table, in commits of seconds.

    take the table over (writer epoch + 1) → micro-batch → commit as a load does → micro-batch …

Killed at any step it has lost and doubled nothing; started again it goes on at the table's
positions. Of two that follow into one table the one that was started later goes on.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from ottla.base.errors import OttlaError
from ottla.lake.access import BOOTSTRAP, config_of_process
from ottla.lake.cluster import connect
from ottla.lake.decode.dead_letters import send_letters
from ottla.lake.decode.spec import Decode
from ottla.lake.events.times import EventSettings
from ottla.lake.folder.leftovers import Steps
from ottla.lake.folder.storage_errors import as_storage_error
from ottla.lake.job.progress import OnProgress
from ottla.lake.job.task import Runner
from ottla.lake.job.workers import Workers
from ottla.lake.loads.boundaries import require_boundaries
from ottla.lake.loads.committing import LoadSettings
from ottla.lake.loads.file_sizes import FileSizes
from ottla.lake.loads.typing import require_readable
from ottla.lake.manifest import Manifest
from ottla.lake.plan import Boundary, parse_boundary
from ottla.lake.session import SparkSettings
from ottla.lake.stream.follow.batches import run_batches
from ottla.lake.stream.follow.ending import FollowEnd
from ottla.lake.stream.follow.progress import FollowProgress, progress_of
from ottla.lake.stream.follow.tries import Tries
from ottla.lake.stream.follow.writer import FollowingWriter
from ottla.lake.stream.options import parse_options
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import open_table, place_of

MAX_BYTES = 128 << 20
EVERY_MS = 10_000


def follow(
    topic: str,
    target: str,
    *,
    bootstrap: str = "localhost:9092",
    start: str = "last-load",
    end: str | None = None,
    once: bool = False,
    max_bytes: int = MAX_BYTES,
    every_ms: int = EVERY_MS,
    group: str | None = None,
    skip_unreadable: bool = False,
    accept_loss: bool = False,
    on_bad_timestamp: Literal["fail", "null", "dead-letter"] = "fail",
    decode: Decode | None = None,
    dead_letter_topic: str | None = None,
    override: str | None = None,
    events: EventSettings | None = None,
    sizes: FileSizes | None = None,
    format: Format | None = None,  # noqa: A002  # As `load` has it.
    store_options: Mapping[str, str] | None = None,
    spark_session: Any = None,
    spark_settings: SparkSettings | None = None,
    master: str | None = None,
    runner: Runner | None = None,
    stop: threading.Event | None = None,
    on_commit: Callable[[FollowProgress], None] = lambda _progress: None,
    on_trouble: Callable[[OttlaError], None] = lambda _error: None,
    on_recovery: Callable[[float], None] = lambda _seconds: None,
    on_progress: OnProgress | None = None,
    on_step: Callable[[str], None] = lambda _step: None,
) -> None:
    """Load what comes into `topic` into the table in `target` until `stop` is set.

    A commit is made once about `max_bytes` of the log have come, or `every_ms` after the one
    before; none has much more than `max_bytes`. With `once` it ends when all is loaded that was
    there at the start, with `end` when the table is there: that may be an offset that is not there
    yet, or a time to come. Other arguments are those of `load`: tasks run on Spark, unless the
    `master` is `here` or `runner` runs them; micro-batches are planned in this process. `stop` is
    noticed after the commit that runs. `on_trouble` gets failures that are tried again, from the
    table's positions: while brokers or leaders are away as long as it takes (called once, and
    `on_recovery` with the seconds when they are back), others three times in a row. `on_progress`
    is called with the tasks of each commit. Raises OttlaError (FencedWriter, where another one was
    started for this table).
    """
    stop = stop or threading.Event()
    require_readable(decode, format)
    run = Workers(
        spark_settings,
        master=master,
        spark_session=spark_session,
        runner=runner,
        on_progress=on_progress,
        on_step=on_step,
    )
    steps = Steps(on_step)

    place = place_of(target, store_options)
    start_at = parse_boundary(start)
    end_at = _end(end)
    once = once or end_at == Boundary("latest")
    settings = LoadSettings(
        bootstrap,
        skip_unreadable,
        accept_loss,
        on_bad_timestamp == "null",
        decode,
        on_bad_timestamp == "dead-letter",
        events=events or EventSettings(),
        sizes=sizes or FileSizes(),
    )
    ending = FollowEnd(stop, None if once else end_at, topic, bootstrap)
    poll_s = min(1.0, max(0.1, every_ms / 5000))
    with as_storage_error(place):
        _require_topics(bootstrap, topic, dead_letter_topic, start_at)
        table = open_table(target, format, store_options, steps.reached)
        writer = FollowingWriter(table, topic, settings, group, ending, steps, on_step)
        options = _source_options(topic, bootstrap, max_bytes, every_ms)
        parsed = parse_options(options | {"table": place}, start="last-load")
        if not once:
            # Before it takes over: a follow that it takes over from commits meanwhile.
            run.warm_up()
        writer.take_over(start_at, override)
        on_step("following")
        last = Tries(stop, on_trouble, on_recovery)

        def send_dead_letters(manifest: Manifest | None = None) -> None:
            if dead_letter_topic is not None and (manifest is None or manifest.dead_letters):
                send_letters(target, dead_letter_topic, bootstrap, store_options)

        def commit(ends: Mapping[int, int]) -> None:
            began_s = time.monotonic()
            manifest = writer.commit_to(ends, run)
            last.succeeded()
            if manifest is not None:
                on_commit(progress_of(manifest, bootstrap, began_s))
                send_dead_letters(manifest)

        while not stop.is_set():
            try:
                positions = writer.positions()
                last.reached()
                # Those that a follow left behind which was killed, or could not reach the brokers.
                send_dead_letters()
                run_batches(parsed, positions, commit, ending, once=once, poll_s=poll_s)
                return
            except OttlaError as error:
                last.failed(error)


def _end(text: str | None) -> Boundary | None:
    """Where it ends. Raises OttlaError."""
    return None if text is None else parse_boundary(text)


def _require_topics(
    bootstrap: str,
    topic: str,
    dead_letter_topic: str | None,
    start: Boundary,
) -> None:
    """A mistyped topic leaves no empty table behind, nor does a wrong start."""
    cluster = connect(bootstrap)
    try:
        described = cluster.describe(topic)
        require_boundaries(cluster, described, start)
        if dead_letter_topic is not None:
            cluster.topic_id(dead_letter_topic)
    finally:
        cluster.close()


def _source_options(topic: str, bootstrap: str, max_bytes: int, every_ms: int) -> dict[str, str]:
    config = config_of_process()
    return {
        **({"config": config} if config else {}),
        "subscribe": topic,
        BOOTSTRAP: bootstrap,
        "maxBytesPerTrigger": str(max_bytes),
        "minBytesPerTrigger": str(max_bytes),
        "maxTriggerDelay": f"{every_ms}ms",
        # Losses are judged by the table's positions.
        "failOnDataLoss": "false",
    }
