"""Writes ottla.json, the Grafana dashboard: `python docs/dashboards/dashboard.py`."""

import json
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("ottla.json")
_I = 'instance=~"$instance"'
_T = 'topic=~"$topic"'
_G = 'group=~"$group"'

# Rows of panels: title, unit, kind, and (expression, legend) of each series.
Panel = tuple[str, str, str, list[tuple[str, str]]]
ROWS: list[tuple[str, list[Panel]]] = [
    ("What is wrong", [
        ("Brokers", "short", "stat", [("count(ottla_broker_info)", "")]),
        ("Offline partitions", "short", "stat",
         [("sum(kafka_controller_kafkacontroller_offlinepartitionscount)", "")]),
        ("Partitions below min.insync.replicas", "short", "stat",
         [("sum(kafka_server_replicamanager_underminisrpartitioncount)", "")]),
        ("Under-replicated partitions", "short", "stat",
         [("sum(kafka_server_replicamanager_underreplicatedpartitions)", "")]),
        ("Failed log directories", "short", "stat",
         [("sum(kafka_log_logmanager_offlinelogdirectorycount)", "")]),
        ("First disk is full in", "s", "stat", [("min(ottla_disk_full_seconds)", "")]),
        ("First group loses records in", "s", "stat",
         [("min(ottla_group_seconds_until_loss)", "")]),
        ("Records lost by groups", "short", "stat",
         [("sum(kafka_consumergroup_group_messages_lost)", "")]),
    ]),
    ("Traffic", [
        ("Records in", "cps", "timeseries",
         [(f"sum by (topic) (rate(kafka_server_brokertopicmetrics_messagesin_total{{{_I},{_T}}}"
           "[$__rate_interval]))", "{{topic}}")]),
        ("Bytes in", "Bps", "timeseries",
         [(f"sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesin_total{{{_I},{_T}}}"
           "[$__rate_interval]))", "{{topic}}")]),
        ("Bytes out", "Bps", "timeseries",
         [(f"sum by (topic) (rate(kafka_server_brokertopicmetrics_bytesout_total{{{_I},{_T}}}"
           "[$__rate_interval]))", "{{topic}}")]),
        ("Refused requests", "reqps", "timeseries",
         [(f"sum by (topic) (rate(kafka_server_brokertopicmetrics_{what}requests_total{{{_I},{_T}}}"
           "[$__rate_interval]))", f"{what} {{{{topic}}}}")
          for what in ("failedproduce", "failedfetch")]),
        ("Connections", "short", "timeseries",
         [(f"sum by (instance) (kafka_server_socket_server_metrics_connection_count{{{_I}}})",
           "{{instance}}")]),
        ("Largest logs", "bytes", "timeseries",
         [(f"topk(10, sum by (topic) (kafka_log_log_size{{{_I},{_T}}}))", "{{topic}}")]),
    ]),
    ("Groups and pipelines", [
        ("Lag", "short", "timeseries",
         [(f"sum by (group) (kafka_consumergroup_group_lag{{{_G}}})", "{{group}}")]),
        ("Lag in time", "s", "timeseries",
         [(f"max by (group) (kafka_consumergroup_group_lag_seconds{{{_G}}})", "{{group}}")]),
        ("Time until records are lost", "s", "timeseries",
         [(f"min by (group) (ottla_group_seconds_until_loss{{{_G}}})", "{{group}}")]),
        ("Time since the last commit", "s", "timeseries",
         [(f"time() - ottla_group_last_commit_timestamp_seconds{{{_G}}}", "{{group}}")]),
        ("Open transactions block readers for", "s", "timeseries",
         [(f"max by (topic, partition) (ottla_partition_lso_age_seconds{{{_T}}})",
           "{{topic}}-{{partition}}")]),
        ("Dead letters", "cps", "timeseries",
         [("sum(rate(ottla_dead_letters_total[$__rate_interval]))", "written"),
          ("sum(rate(ottla_dead_letters_failed_total[$__rate_interval]))", "failed")]),
    ]),
    ("Brokers", [
        ("Busy", "percentunit", "timeseries",
         [(f"rate(ottla_loop_busy_seconds_total{{{_I}}}[$__rate_interval])", "{{instance}}")]),
        ("Stalls and waits of the event loop", "ops", "timeseries",
         [(f"rate(ottla_loop_{what}_total{{{_I}}}[$__rate_interval])", f"{what} {{{{instance}}}}")
          for what in ("stalls", "waits")]),
        ("Time of a flush", "s", "timeseries",
         [(f"rate(ottla_flush_seconds_total{{{_I}}}[$__rate_interval])"
           f" / rate(ottla_flushes_total{{{_I}}}[$__rate_interval])", "{{instance}}")]),
        ("Free disk", "bytes", "timeseries",
         [(f"ottla_disk_free_bytes{{{_I}}}", "{{instance}} {{path}}")]),
        ("Compaction: dirty bytes that are due", "bytes", "timeseries",
         [(f"ottla_cleaner_due_bytes{{{_I}}}", "{{instance}}")]),
        ("Bytes kept for slow readers", "bytes", "timeseries",
         [(f"ottla_retention_held_bytes{{{_I}}}", "{{instance}}")]),
        ("Memory", "bytes", "timeseries",
         [(f"process_resident_memory_bytes{{{_I}}}", "{{instance}}")]),
        ("Cost of these metrics", "percentunit", "timeseries",
         [(f"rate(ottla_metrics_collection_seconds_total{{{_I}}}[$__rate_interval])",
           "{{instance}}")]),
    ]),
]  # fmt: skip
VARIABLES = (
    ("instance", "label_values(ottla_broker_info, instance)"),
    ("topic", "label_values(kafka_topic_partitions, topic)"),
    ("group", "label_values(kafka_consumergroup_group_state, group)"),
)
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH = 24


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana reads it."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        panels.append(_placed({"type": "row", "title": title}, len(panels), 0, y, _WIDTH, 1))
        y += 1
        width, height = (3, 4) if row[0][2] == "stat" else (8, 8)
        x = 0
        for panel in row:
            if x + width > _WIDTH:
                x, y = 0, y + height
            panels.append(_placed(_panel(*panel), len(panels), x, y, width, height))
            x += width
        y += height
    return {
        "title": "Ottla",
        "uid": "ottla",
        "tags": ["ottla", "kafka"],
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": list(_variables())},
        "panels": panels,
    }


def _placed(
    panel: dict[str, Any], number: int, x: int, y: int, width: int, height: int
) -> dict[str, Any]:
    return {**panel, "id": number + 1, "gridPos": {"x": x, "y": y, "w": width, "h": height}}


def _panel(title: str, unit: str, kind: str, series: list[tuple[str, str]]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + number), "expr": expression, "legendFormat": legend or "__auto"}
        for number, (expression, legend) in enumerate(series)
    ]
    field = {"defaults": {"unit": unit, "min": 0}, "overrides": []}
    return {
        "type": kind, "title": title, "datasource": _SOURCE, "fieldConfig": field,
        "targets": targets,
    }  # fmt: skip


def _variables() -> Any:
    yield {"name": "datasource", "type": "datasource", "query": "prometheus"}
    for name, query in VARIABLES:
        yield {
            "name": name,
            "type": "query",
            "datasource": _SOURCE,
            "query": query,
            "refresh": 2,
            "includeAll": True,
            "multi": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }


def main() -> int:
    """Write the file; with --check return 1 if it is out of date."""
    text = json.dumps(dashboard(), indent=1) + "\n"
    if "--check" in sys.argv:
        return int(FILE.read_text(encoding="utf-8") != text)
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
