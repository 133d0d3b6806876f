"""The figures of one replica, for metrics and for people."""

from typing import NamedTuple

from ottla.broker.partitions.partition import Partition


class ReplicaStatus(NamedTuple):
    """One replica on this broker.

    It is a tuple because a broker may make thousands of them every few seconds. Sizes are in
    bytes. `leader`, the counts of replicas and `is_preferred` are of the newest
    state that this broker was sent; `leader` is -1 if there is none. Everything from `is_preferred`
    on is 0 or False unless this broker leads.
    """

    topic: str
    partition: int
    is_leader: bool
    is_offline: bool
    leader: int
    leader_epoch: int
    replicas: int
    in_sync: int
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    size_bytes: int
    segments: int
    is_preferred: bool
    # Whether acks=all is refused.
    is_under_min_in_sync: bool
    min_in_sync: int
    # Below it every transaction is decided; readers with read_committed get no further.
    last_stable_offset: int
    records_in: int
    bytes_in: int
    produces: int
    produce_failures: int
    bytes_out: int
    fetches: int
    fetch_failures: int


def replica_status(partition: Partition) -> ReplicaStatus:
    """Return the figures of a replica; reads nothing from disk."""
    log, image, traffic = partition.log, partition.image, partition.traffic
    is_leader = partition.leader is not None
    leader, replicas, in_sync, preferred = -1, 0, 0, False
    if image is not None:
        leader, replicas, in_sync = image.leader, len(image.replicas), len(image.isr)
        preferred = is_leader and image.replicas[0] == leader
    size_bytes = log.size_bytes
    records_in, bytes_in = traffic.appended(log, size_bytes)
    return ReplicaStatus(
        partition.topic_partition.topic,
        partition.topic_partition.partition,
        is_leader,
        partition.failure is not None,
        leader,
        partition.leader_epoch,
        replicas,
        in_sync,
        log.log_start_offset,
        partition.high_watermark,
        log.log_end_offset,
        size_bytes,
        len(log.segments),
        preferred,
        is_leader and partition.under_min_isr,
        log.config.min_insync_replicas if is_leader else 0,
        partition.last_stable_offset if is_leader else 0,
        records_in,
        bytes_in,
        traffic.produces,
        traffic.produce_failures,
        traffic.fetched_bytes,
        traffic.fetches,
        traffic.fetch_failures,
    )
