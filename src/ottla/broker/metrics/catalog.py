"""Every metric of a broker, and how its value is found in the statuses of the parts.

Each sample is reported by one broker of the cluster only: of a partition by its leader, of a group
by its coordinator, of the cluster by the controller. So sums over all brokers are right. The names
that begin with kafka_ are those that existing dashboards query; their origin is in the titles.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ottla.broker.lags.group_lags import ReaderLag
from ottla.broker.lags.reader_place import ReaderPlace
from ottla.broker.metrics.samples import Metric, SampleKind
from ottla.broker.partitions.replica_status import ReplicaStatus

_C, _G = SampleKind.COUNTER, SampleKind.GAUGE
_S = 1 / 1000


class Of(NamedTuple):
    """A metric and the function that finds its value, in a status, a replica or a reader."""

    metric: Metric
    value: Callable[[Any], float]


class Section(NamedTuple):
    """Metrics of one origin, for the documents."""

    title: str
    metrics: tuple[Metric, ...]


def _of(name: str, kind: SampleKind, text: str, value: Callable[[Any], float], *labels: str) -> Of:
    return Of(Metric(name, kind, text, labels), value)


# A few lines for each metric keep the tables readable.
# fmt: off

# -- the broker: `s` has the statuses of all parts by name

JMX_BROKER: Final = (
    _of("kafka_server_replicamanager_leadercount", _G, "Partitions that this broker leads",
        lambda s: s.replication.leaders),
    _of("kafka_server_replicamanager_partitioncount", _G, "Replicas on this broker",
        lambda s: s.replication.partitions),
    _of("kafka_server_replicamanager_underreplicatedpartitions", _G,
        "Led partitions with replicas that are not in sync",
        lambda s: s.replication.under_replicated),
    _of("kafka_server_replicamanager_underminisrpartitioncount", _G,
        "Led partitions with fewer replicas in sync than min.insync.replicas",
        lambda s: s.replication.under_min_isr),
    _of("kafka_server_replicamanager_offlinereplicacount", _G,
        "Replicas whose log or log directory has failed", lambda s: s.replication.offline),
    _of("kafka_log_logmanager_offlinelogdirectorycount", _G, "Log directories that have failed",
        lambda s: s.storage.directories_failed),
    _of("kafka_controller_kafkacontroller_activecontrollercount", _G,
        "1 on the broker that is the controller, else 0", lambda s: int(s.controller.is_active)),
    _of("kafka_controller_kafkacontroller_offlinepartitionscount", _G,
        "Partitions of the cluster without a leader, on the controller; 0 on other brokers",
        lambda s: s.metadata.without_leader if s.controller.is_active else 0),
    _of("kafka_controller_controllerstats_uncleanleaderelections_total", _C,
        "Elections in this controller's term that may have lost records",
        lambda s: s.controller.unclean_elections),
)
OWN_BROKER: Final = (
    _of("ottla_loop_stalls_total", _C,
        "Times that one piece of work held the event loop for 20 ms or longer",
        lambda s: s.runtime.loop_stalls),
    _of("ottla_loop_longest_stall_seconds", _G, "The longest of these times since the start",
        lambda s: s.runtime.loop_longest_stall_ms * _S),
    _of("ottla_loop_waits_total", _C,
        "Times that the event loop waited for a disk or a processor for 20 ms or longer",
        lambda s: s.runtime.loop_waits),
    _of("ottla_loop_longest_wait_seconds", _G, "The longest of these waits since the start",
        lambda s: s.runtime.loop_longest_wait_ms * _S),
    _of("ottla_request_stalls_total", _C, "Requests that held the event loop for 100 ms or longer",
        lambda s: s.serving.stalls),
    _of("ottla_tasks", _G, "Background tasks of requests", lambda s: s.runtime.tasks),
    _of("ottla_waiting_requests", _G, "Deadlines of requests that wait",
        lambda s: s.runtime.deadlines),
    _of("ottla_fetch_sessions", _G, "Fetch sessions of clients",
        lambda s: s.serving.fetch_sessions),
    _of("ottla_serving", _G, "1 if clients are served", lambda s: int(s.serving.is_serving)),
    _of("ottla_registered", _G, "1 if the broker is registered, and so may lead",
        lambda s: int(s.cluster.is_registered)),
    _of("ottla_flushes_total", _C, "Group commits: flushes for all records that waited",
        lambda s: s.replication.flush_jobs),
    _of("ottla_flush_seconds_total", _C, "Time that these flushes took",
        lambda s: s.replication.flush_ms_total * _S),
    _of("ottla_flush_longest_seconds", _G, "The longest flush since the start",
        lambda s: s.replication.flush_ms_longest * _S),
    _of("ottla_log_bytes", _G, "Bytes of all logs on this broker",
        lambda s: s.replication.log_bytes),
    _of("ottla_uncommitted_offsets", _G, "Offsets above the high watermark, in all logs",
        lambda s: s.replication.uncommitted_total),
    _of("ottla_uncommitted_offsets_max", _G, "The most of them in one log",
        lambda s: s.replication.uncommitted_max),
    _of("ottla_follower_sessions", _G, "Sessions of followers that fetch from this broker",
        lambda s: s.replication.follower_sessions),
    _of("ottla_removals_waiting", _G, "Files of deleted segments that are still to be removed",
        lambda s: s.replication.removals_waiting),
    _of("ottla_scrub_rounds_total", _C, "Completed rounds of the check of all logs on disk",
        lambda s: s.replication.scrub_rounds),
    _of("ottla_scrub_damages_total", _C, "Damaged batches that these checks found",
        lambda s: s.replication.scrub_damages),
    _of("ottla_cleaner_logs", _G, "Compacted logs", lambda s: s.cleaner.logs),
    _of("ottla_cleaner_running", _G, "Logs that are being compacted", lambda s: s.cleaner.running),
    _of("ottla_cleaner_due", _G, "Logs dirty enough to be compacted", lambda s: s.cleaner.due),
    _of("ottla_cleaner_due_bytes", _G, "Dirty bytes of these logs", lambda s: s.cleaner.due_bytes),
    _of("ottla_cleaner_passes_total", _C, "Finished compactions", lambda s: s.cleaner.passes),
    _of("ottla_cleaner_failures_total", _C, "Failed compactions", lambda s: s.cleaner.failures),
    _of("ottla_canary_sent_total", _C,
        "Records that this broker has written to the next one (canary.interval.ms)",
        lambda s: s.canary.sent),
    _of("ottla_canary_failed_total", _C, "Of these, not acknowledged or not readable",
        lambda s: s.canary.failed),
    _of("ottla_canary_lost_total", _C, "Of these, acknowledged and not returned",
        lambda s: s.canary.lost),
    _of("ottla_canary_produced_total", _C, "Of these, acknowledged",
        lambda s: s.canary.produce.count),
    _of("ottla_canary_produce_seconds_total", _C, "Time until these were acknowledged",
        lambda s: s.canary.produce.sum_ms * _S),
    _of("ottla_canary_round_trips_total", _C, "Of these, read back",
        lambda s: s.canary.round_trip.count),
    _of("ottla_canary_round_trip_seconds_total", _C, "Time until these were read back",
        lambda s: s.canary.round_trip.sum_ms * _S),
    _of("ottla_canary_commits_total", _C, "Offsets committed by the canary",
        lambda s: s.canary.commit.count),
    _of("ottla_canary_commit_seconds_total", _C, "Time that these commits took",
        lambda s: s.canary.commit.sum_ms * _S),
    _of("ottla_cleaner_failed_logs", _G, "Logs whose last compaction failed",
        lambda s: len(s.cleaner.failed)),
    _of("ottla_retention_held_partitions", _G, "Partitions in which retention waits for readers",
        lambda s: s.retention.held_partitions),
    _of("ottla_retention_held_bytes", _G, "Bytes that retention keeps for readers",
        lambda s: s.retention.held_bytes),
    _of("ottla_disk_short", _G, "1 if records are refused for want of space, or will soon be",
        lambda s: int(s.storage.is_short_of_space)),
    _of("ottla_dead_letters_total", _C, "Records that share groups wrote to dead-letter topics",
        lambda s: s.share.dead_letters),
    _of("ottla_dead_letters_failed_total", _C, "Records that could not be written there",
        lambda s: s.share.dead_letters_failed),
    _of("ottla_share_partitions", _G, "Open partitions of share groups", lambda s: s.share.served),
    _of("ottla_groups", _G, "Groups that this broker coordinates", lambda s: s.groups.groups),
    _of("ottla_coordinators_loading", _G,
        "Partitions of groups and transactions that are still being loaded",
        lambda s: s.groups.shards.loading + s.transactions.shards.loading),
    _of("ottla_audit_queued", _G, "Audit lines that wait to be written",
        lambda s: 0 if getattr(s, "audit", None) is None else s.audit.queued),
    _of("ottla_audit_lost_total", _C, "Audit lines dropped because too many waited",
        lambda s: 0 if getattr(s, "audit", None) is None else s.audit.lost),
)

IDLE: Final = tuple(
    Metric(name, _G, "Share of the time in which the event loop had no work, from 0 to 1")
    for name in (
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "kafka_network_socketserver_networkprocessoravgidle_percent",
    )
)
CONNECTIONS: Final = Metric("kafka_server_socket_server_metrics_connection_count", _G,
    "Open connections", ("listener",))
DISK_IO: Final = tuple(
    Metric(f"kafka_server_kafkaserver_linux_disk_{what}_bytes", _G, text)
    for what, text in (
        ("read", "Bytes that this process had read from disks"),
        ("write", "Bytes that this process had written to disks"),
    )
)

# -- topics: sums over the partitions that this broker leads or has led

TOPIC: Final = tuple(
    Metric(f"kafka_server_brokertopicmetrics_{name}_total", _C, text, ("topic",))
    for name, text in (
        ("messagesin", "Offsets appended by producers"),
        ("bytesin", "Bytes appended by producers"),
        ("totalproducerequests", "Batches appended by producers"),
        ("failedproducerequests", "Batches of producers that were refused"),
        ("bytesout", "Bytes sent to consumers"),
        ("totalfetchrequests", "Answers to fetches of consumers"),
        ("failedfetchrequests", "Fetches of consumers that were refused"),
    )
)


def topic_counts(r: ReplicaStatus) -> tuple[int, ...]:
    """Return a replica's part of each of `TOPIC`."""
    return (
        r.records_in, r.bytes_in, r.produces, r.produce_failures,
        r.bytes_out, r.fetches, r.fetch_failures,
    )


# -- partitions

_TP = ("topic", "partition")
REPLICA: Final = (
    _of("kafka_log_log_size", _G, "Bytes of a replica's log", lambda r: r.size_bytes, *_TP),
    _of("kafka_log_log_numlogsegments", _G, "Segments of a replica's log", lambda r: r.segments,
        *_TP),
)
JMX_PARTITION: Final = (
    _of("kafka_cluster_partition_replicascount", _G, "Replicas", lambda r: r.replicas, *_TP),
    _of("kafka_cluster_partition_underminisr", _G,
        "1 if fewer replicas are in sync than min.insync.replicas",
        lambda r: int(r.is_under_min_in_sync), *_TP),
    _of("kafka_cluster_partition_atminisr", _G,
        "1 if exactly min.insync.replicas replicas are in sync",
        lambda r: int(r.in_sync == r.min_in_sync), *_TP),
)
EXPORTER_PARTITION: Final = (
    _of("kafka_topic_partition_current_offset", _G, "High watermark", lambda r: r.high_watermark,
        *_TP),
    _of("kafka_topic_partition_oldest_offset", _G, "Log start offset", lambda r: r.log_start_offset,
        *_TP),
    _of("kafka_topic_partition_in_sync_replica", _G, "Replicas in sync", lambda r: r.in_sync, *_TP),
    _of("kafka_topic_partition_leader", _G, "Id of the leader", lambda r: r.leader, *_TP),
    _of("kafka_topic_partition_leader_is_preferred", _G, "1 if the first replica leads",
        lambda r: int(r.is_preferred), *_TP),
    _of("kafka_topic_partition_replicas", _G, "Replicas", lambda r: r.replicas, *_TP),
    _of("kafka_topic_partition_under_replicated_partition", _G, "1 if a replica is not in sync",
        lambda r: int(r.in_sync < r.replicas), *_TP),
)
_CTP = ("cluster_name", *_TP)
KLAG_PARTITION: Final = (
    _of("kafka_partition_latest_offset", _G, "High watermark", lambda r: r.high_watermark, *_CTP),
    _of("kafka_partition_earliest_offset", _G, "Log start offset", lambda r: r.log_start_offset,
        *_CTP),
)
LSO_AGE: Final = Metric("ottla_partition_lso_age_seconds", _G,
    "How long open transactions have kept the last stable offset where it is, as this broker "
    "has seen it; no sample if none does", _TP)

# -- the cluster, from the controller

EXPORTER_BROKERS: Final = Metric("kafka_brokers", _G, "Registered brokers")
EXPORTER_BROKER: Final = Metric("kafka_broker_info", _G, "1 for each registered broker",
    ("id", "address"))
EXPORTER_TOPIC: Final = Metric("kafka_topic_partitions", _G, "Partitions of a topic", ("topic",))

# -- groups, from their coordinators

_EGTP, _EGT = ("consumergroup", *_TP), ("consumergroup", "topic")


def _lag(one: ReaderLag, place: ReaderPlace) -> int:
    return max(0, place.high_watermark - max(one.committed, place.log_start_offset))


def _ratio(one: ReaderLag, place: ReaderPlace) -> float:
    held = place.high_watermark - place.log_start_offset
    return 100 * max(0, place.high_watermark - one.committed) / held if held else 0.0


class Reads(NamedTuple):
    """A reader whose place is known, with what several metrics need."""

    one: ReaderLag
    place: ReaderPlace
    lag: int
    lag_seconds: float


def reads_of(one: ReaderLag, place: ReaderPlace, now_ms: int) -> Reads:
    """Return what metrics need of a reader."""
    since_ms = place.since_ms
    lag_s = max(0, now_ms - since_ms) * _S if since_ms >= 0 else 0.0
    return Reads(one, place, _lag(one, place), lag_s)


EXPORTER_READER: Final = (
    _of("kafka_consumergroup_current_offset", _G, "Committed offset", lambda r: r.one.committed,
        *_EGTP),
    _of("kafka_consumergroup_lag", _G,
        "Offsets from the committed one to the high watermark that are still there",
        lambda r: r.lag, *_EGTP),
)
EXPORTER_GROUP_TOPIC: Final = (
    Metric("kafka_consumergroup_current_offset_sum", _G, "Sum of the committed offsets", _EGT),
    Metric("kafka_consumergroup_lag_sum", _G, "Sum of the lag in a topic", _EGT),
)
EXPORTER_MEMBERS: Final = Metric("kafka_consumergroup_members", _G, "Members of a group",
    ("consumergroup",))
_CG = ("cluster_name", "group")
_CGTP = (*_CG, *_TP)
KLAG_READER: Final = (
    _of("kafka_consumergroup_group_offset", _G, "Committed offset", lambda r: r.one.committed,
        *_CGTP),
    _of("kafka_consumergroup_group_lag", _G, "Offsets that are unread and still there",
        lambda r: r.lag, *_CGTP),
    _of("kafka_consumergroup_group_lag_seconds", _G, "Age of the first unread record",
        lambda r: r.lag_seconds, *_CGTP),
    _of("kafka_consumergroup_group_messages_lost", _G, "Offsets deleted before the group read them",
        lambda r: max(0, r.place.log_start_offset - r.one.committed), *_CGTP),
    _of("kafka_consumergroup_group_retention_margin", _G,
        "Offsets from the log's start to the committed one; negative if records were lost",
        lambda r: r.one.committed - r.place.log_start_offset, *_CGTP),
    _of("kafka_consumergroup_group_lag_retention_ratio", _G,
        "Unread offsets as a percentage of those in the log; over 100 if records were lost",
        lambda r: _ratio(r.one, r.place), *_CGTP),
)
KLAG_GROUP: Final = (
    Metric("kafka_consumergroup_group_max_lag", _G, "The largest lag in a partition", _CG),
    Metric("kafka_consumergroup_group_max_lag_seconds", _G, "The largest lag in seconds", _CG),
    Metric("kafka_consumergroup_group_sum_lag", _G, "Sum of the lag", _CG),
)
KLAG_GROUP_TOPIC: Final = Metric("kafka_consumergroup_group_topic_sum_lag", _G,
    "Sum of the lag in a topic", (*_CG, "topic"))
# The numbers of klag-exporter.
GROUP_STATES: Final = {
    "PreparingRebalance": 1, "CompletingRebalance": 2, "Stable": 3, "Dead": 4, "Empty": 5,
    "Assigning": 6, "Reconciling": 7,
}
KLAG_STATE: Final = Metric("kafka_consumergroup_group_state", _G,
    "State of a group: 0 unknown, 1 PreparingRebalance, 2 CompletingRebalance, 3 Stable, 4 "
    "Dead, 5 Empty, 6 Assigning, 7 Reconciling", _CG)
KLAG_UP: Final = Metric("kafka_lag_exporter_up", _G, "1 if the lags were looked up")
KLAG_AT: Final = Metric("kafka_lag_exporter_last_update_timestamp_seconds", _G,
    "When the lags were looked up", ("cluster_name",))
KLAG_LOSSES: Final = Metric("kafka_lag_exporter_data_loss_partitions_total", _G,
    "Partitions in which a group has lost records", ("cluster_name",))
LOSS: Final = Metric("ottla_group_seconds_until_loss", _G,
    "How long until retention may delete the first unread record; no sample if nothing is "
    "unread or no setting deletes it", ("group", *_TP))
LAST_COMMIT: Final = Metric("ottla_group_last_commit_timestamp_seconds", _G,
    "When a group last committed an offset. For a pipeline that follows a topic with a group, "
    "that is its last load with a proof", ("group",))

# -- disks, and the metrics themselves

DISK: Final = (
    _of("ottla_disk_bytes", _G, "Size of the disk of a log directory", lambda d: d.total_bytes,
        "path"),
    _of("ottla_disk_free_bytes", _G, "Free bytes of that disk", lambda d: d.free_bytes, "path"),
    _of("ottla_disk_reserve_bytes", _G, "Free bytes below which records are refused",
        lambda d: d.reserve_bytes, "path"),
)
DISK_FULL: Final = Metric("ottla_disk_full_seconds", _G,
    "How long until records are refused, if the disk goes on to fill as in the last hour; no "
    "sample if it does not fill", ("path",))
INFO: Final = Metric("ottla_broker_info", _G, "1, with what this broker is",
    ("broker_id", "cluster_id", "version"))
BUSY: Final = Metric("ottla_loop_busy_seconds_total", _C,
    "Processor time of the thread that serves requests")
COLLECTION: Final = Metric("ottla_metrics_collection_seconds_total", _C,
    "Processor time of the event loop for these metrics")


def _metrics(entries: Sequence[Of]) -> tuple[Metric, ...]:
    return tuple(entry.metric for entry in entries)


SECTIONS: Final = (
    Section(
        "Names of Kafka's JMX exporter",
        (
            *_metrics(JMX_BROKER), *IDLE, CONNECTIONS, *DISK_IO, *TOPIC,
            *_metrics(REPLICA), *_metrics(JMX_PARTITION),
        ),
    ),
    Section(
        "Names of kafka_exporter",
        (
            EXPORTER_BROKERS, EXPORTER_BROKER, EXPORTER_TOPIC, *_metrics(EXPORTER_PARTITION),
            *_metrics(EXPORTER_READER), *EXPORTER_GROUP_TOPIC, EXPORTER_MEMBERS,
        ),
    ),
    Section(
        "Names of klag-exporter",
        (
            *_metrics(KLAG_PARTITION), *_metrics(KLAG_READER), *KLAG_GROUP, KLAG_GROUP_TOPIC,
            KLAG_STATE, KLAG_UP, KLAG_AT, KLAG_LOSSES,
        ),
    ),
    Section(
        "Ottla's own",
        (
            INFO, BUSY, *_metrics(OWN_BROKER), *_metrics(DISK), DISK_FULL, LSO_AGE, LOSS,
            LAST_COMMIT, COLLECTION,
        ),
    ),
)
