"""The names that dashboards and alert rules of others query, restated; nothing of theirs is copied.

Left out are the names of the JVM (jvm_*), and of Kubernetes (container_*, kubelet_*).
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# strimzi/strimzi-kafka-operator, grafana-dashboards/strimzi-kafka.json, main of 22 August 2026.
STRIMZI_KAFKA = _names(
    """
    kafka_cluster_partition_atminisr
    kafka_cluster_partition_replicascount
    kafka_cluster_partition_underminisr
    kafka_controller_controllerstats_uncleanleaderelections_total
    kafka_controller_kafkacontroller_activecontrollercount
    kafka_controller_kafkacontroller_offlinepartitionscount
    kafka_log_log_size
    kafka_network_socketserver_networkprocessoravgidle_percent
    kafka_server_brokertopicmetrics_bytesin_total
    kafka_server_brokertopicmetrics_bytesout_total
    kafka_server_brokertopicmetrics_failedfetchrequests_total
    kafka_server_brokertopicmetrics_failedproducerequests_total
    kafka_server_brokertopicmetrics_messagesin_total
    kafka_server_brokertopicmetrics_totalfetchrequests_total
    kafka_server_brokertopicmetrics_totalproducerequests_total
    kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent
    kafka_server_kafkaserver_linux_disk_read_bytes
    kafka_server_kafkaserver_linux_disk_write_bytes
    kafka_server_replicamanager_leadercount
    kafka_server_replicamanager_partitioncount
    kafka_server_replicamanager_underreplicatedpartitions
    kafka_server_socket_server_metrics_connection_count
    process_open_fds
    """
)
# The same, grafana-dashboards/strimzi-kafka-exporter.json and its alert rules.
STRIMZI_EXPORTER = _names(
    """
    kafka_broker_info
    kafka_cluster_partition_atminisr
    kafka_cluster_partition_underminisr
    kafka_consumergroup_current_offset
    kafka_consumergroup_lag
    kafka_log_logmanager_offlinelogdirectorycount
    kafka_server_replicamanager_underminisrpartitioncount
    kafka_topic_partition_current_offset
    kafka_topic_partition_in_sync_replica
    kafka_topic_partition_leader_is_preferred
    kafka_topic_partition_oldest_offset
    kafka_topic_partition_replicas
    kafka_topic_partition_under_replicated_partition
    kafka_topic_partitions
    """
)
# danielqsj/kafka_exporter, kafka_exporter_overview.json (grafana.com 7589) and the table of metrics
# in its README, master of 8 January 2026.
KAFKA_EXPORTER = _names(
    """
    kafka_broker_info
    kafka_brokers
    kafka_consumergroup_current_offset
    kafka_consumergroup_current_offset_sum
    kafka_consumergroup_lag
    kafka_consumergroup_lag_sum
    kafka_consumergroup_members
    kafka_topic_partition_current_offset
    kafka_topic_partition_in_sync_replica
    kafka_topic_partition_leader
    kafka_topic_partition_leader_is_preferred
    kafka_topic_partition_oldest_offset
    kafka_topic_partition_replicas
    kafka_topic_partition_under_replicated_partition
    kafka_topic_partitions
    """
)
# softwaremill/klag-exporter, test-stack/grafana/provisioning/dashboards/kafka-lag.json and the
# metrics of groups in its README.
KLAG_EXPORTER = _names(
    """
    kafka_consumergroup_group_lag
    kafka_consumergroup_group_lag_retention_ratio
    kafka_consumergroup_group_lag_seconds
    kafka_consumergroup_group_max_lag
    kafka_consumergroup_group_max_lag_seconds
    kafka_consumergroup_group_messages_lost
    kafka_consumergroup_group_offset
    kafka_consumergroup_group_retention_margin
    kafka_consumergroup_group_state
    kafka_consumergroup_group_sum_lag
    kafka_consumergroup_group_topic_sum_lag
    kafka_lag_exporter_data_loss_partitions_total
    kafka_lag_exporter_last_update_timestamp_seconds
    kafka_lag_exporter_up
    kafka_partition_earliest_offset
    kafka_partition_latest_offset
    """
)
FOREIGN = {
    "strimzi-kafka": STRIMZI_KAFKA,
    "strimzi-kafka-exporter": STRIMZI_EXPORTER,
    "kafka_exporter": KAFKA_EXPORTER,
    "klag-exporter": KLAG_EXPORTER,
}
