"""The metrics of a real broker: their names, their values, and who may ask for them."""

import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from prometheus_client.parser import text_string_to_metric_families
from rig import promtool
from rig.paths import ROOT
from rig.probe import free_port

from ottla.base.errors import OttlaError
from ottla.broker.metrics.catalog import SECTIONS
from ottla.client import sync
from ottla.testing import Broker
from tests.integration.broker.foreign_dashboards import FOREIGN

DASHBOARDS = ROOT / "docs" / "dashboards"
GROUP = 'rea"ders\n'
# A sample only while a disk fills up; `test_metric_collection.py` fills one.
CONDITIONAL = {"ottla_disk_full_seconds"}
_NAME = re.compile(r"\b(?:kafka|ottla|process|python)_[a-z0-9_]+\b")


class Scraped:
    """A broker and what its endpoint answers."""

    def __init__(self, broker: Broker, port: int) -> None:
        self.broker = broker
        self.port = port
        self.text = ""
        self.values: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}

    def scrape(self) -> None:
        """Ask, and read the answer with Prometheus' own library."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            self.text = answer.read().decode()
        self.values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(self.text)
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float | None:
        """The sample with these labels, among others."""
        found = [
            value
            for (each, at), value in self.values.items()
            if each == name and labels.items() <= dict(at).items()
        ]
        assert len(found) <= 1, (name, labels)
        return found[0] if found else None

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.values}


@pytest.fixture(scope="module")
def scraped() -> Iterator[Scraped]:
    """Ten records of which a group has read four, and a transaction that stays open."""
    port = free_port()
    settings = {"metrics.listen": f"127.0.0.1:{port}", "log.retention.ms": "3600000"}
    with Broker(storage="temporary", settings=settings) as broker:
        client = {"bootstrap.servers": broker.bootstrap}
        producer = Producer(client)
        for _ in range(10):
            producer.produce("orders", b"x" * 100, partition=0, timestamp=int(time.time() * 1000))
            producer.flush()
        consumer = Consumer(
            {**client, "group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": 0}
        )
        consumer.subscribe(["orders"])
        message = None
        while message is None:
            message = consumer.poll(1.0)
        assert message.error() is None
        consumer.commit(offsets=[TopicPartition("orders", 0, 4)], asynchronous=False)
        open_one = Producer({**client, "transactional.id": "open"})
        open_one.init_transactions()
        open_one.begin_transaction()
        open_one.produce("orders", b"undecided", partition=0)
        open_one.flush()
        found = Scraped(broker, port)
        found.scrape()
        yield found
        consumer.close()


@pytest.mark.parametrize("dashboard", FOREIGN)
def test_each_name_that_a_foreign_dashboard_queries_has_a_sample(
    scraped: Scraped, dashboard: str
) -> None:
    assert FOREIGN[dashboard] - scraped.names == set()


def queried(text: str) -> set[str]:
    """The names of metrics in expressions."""
    return set(_NAME.findall(re.sub(r"ottla-|\bottla_cluster\b", "", text)))


def test_each_name_that_our_dashboard_and_rules_query_has_a_sample(scraped: Scraped) -> None:
    board = json.loads((DASHBOARDS / "ottla.json").read_text())
    expressions = [
        target["expr"] for panel in board["panels"] for target in panel.get("targets", ())
    ]
    expressions += [each.get("query", "") for each in board["templating"]["list"]]
    rules = (DASHBOARDS / "ottla-alerts.yml").read_text()
    expressions += re.findall(r"expr: (.*)", rules)
    names = queried(" ".join(map(str, expressions)))
    assert len(names) > 30
    assert names - scraped.names - CONDITIONAL == set()


def test_the_dashboard_is_what_its_script_writes() -> None:
    check = [sys.executable, str(DASHBOARDS / "dashboard.py"), "--check"]
    assert subprocess.run(check, check=False).returncode == 0


def test_the_catalog_is_what_is_served(scraped: Scraped) -> None:
    """So the documents, which are made from the catalog, name neither too much nor too little."""
    listed = {metric.name for section in SECTIONS for metric in section.metrics}
    assert listed - scraped.names == CONDITIONAL
    ours = {name for name in scraped.names if name.startswith(("kafka_", "ottla_"))}
    assert ours == listed - CONDITIONAL


def test_the_values_are_those_of_what_happened(scraped: Scraped) -> None:
    orders = {"topic": "orders", "partition": "0"}
    value = scraped.value
    assert value("kafka_topic_partition_current_offset", **orders) == 11
    assert value("kafka_topic_partition_oldest_offset", **orders) == 0
    assert value("kafka_server_brokertopicmetrics_messagesin_total", topic="orders") == 11
    assert value("kafka_server_brokertopicmetrics_totalproducerequests_total", topic="orders") == 11
    assert (
        value("kafka_server_brokertopicmetrics_totalfetchrequests_total", topic="orders") or 0
    ) > 0
    size = value("kafka_log_log_size", **orders)
    assert value("kafka_server_brokertopicmetrics_bytesin_total", topic="orders") == size
    assert (value("kafka_server_brokertopicmetrics_bytesout_total", topic="orders") or 0) >= 1_000
    assert value("kafka_consumergroup_lag", consumergroup=GROUP, **orders) == 7
    assert value("kafka_consumergroup_members", consumergroup=GROUP) == 1
    assert value("kafka_consumergroup_group_state", group=GROUP) == 3
    assert value("kafka_consumergroup_group_retention_margin", group=GROUP, **orders) == 4
    assert value("kafka_consumergroup_group_messages_lost", group=GROUP, **orders) == 0
    late_s = value("kafka_consumergroup_group_lag_seconds", group=GROUP, **orders)
    left_s = value("ottla_group_seconds_until_loss", group=GROUP, **orders)
    assert late_s is not None
    assert late_s > 0
    assert left_s is not None
    assert 0 < left_s <= 3600
    assert value("ottla_partition_lso_age_seconds", **orders) is not None
    assert value("kafka_brokers") == value("ottla_registered") == 1


def test_a_refused_batch_is_counted(scraped: Scraped) -> None:
    """On the usual path and on the fast one: it is too large for its topic."""
    with sync.Producer(scraped.broker.bootstrap, max_request_size=5_000_000) as producer:
        sent = producer.send("orders", b"x" * 2_000_000)
        with pytest.raises(OttlaError, match="MESSAGE_TOO_LARGE"):
            sent.result()
    name = "kafka_server_brokertopicmetrics_failedproducerequests_total"
    while not scraped.value(name, topic="orders"):
        scraped.scrape()  # Samples are as old as a second.
    assert scraped.value(name, topic="orders") == 1


@pytest.mark.timeout(1_800)
@pytest.mark.skipif(promtool.why_unavailable() is not None, reason=promtool.why_unavailable() or "")
def test_promtool_reads_the_metrics_and_the_rules(scraped: Scraped) -> None:
    """It finds no fault with our own names; some that others chose break its rules of style."""
    tool = promtool.promtool()
    rules = subprocess.run(
        [tool, "check", "rules", DASHBOARDS / "ottla-alerts.yml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert rules.returncode == 0, rules.stdout + rules.stderr
    checked = subprocess.run(
        [tool, "check", "metrics"], input=scraped.text, capture_output=True, text=True, check=False
    )
    complaints = checked.stderr.splitlines()
    assert checked.returncode in (0, 3), complaints
    assert [line for line in complaints if not line.startswith(("kafka_", "python_"))] == []


def raw(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(request)
        answer = b""
        while piece := client.recv(65_536):
            answer += piece
        return answer


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET / HTTP/1.1", b"404"),
        (b"POST /metrics HTTP/1.1", b"405"),
        (b"nonsense", b"405"),
        (b"GET /metrics?x=1 HTTP/1.0", b"200"),
        (b"\xff\xfe \xff HTTP/1.1", b"405"),
    ],
)
def test_other_requests_get_a_short_answer(
    scraped: Scraped, request_line: bytes, status: bytes
) -> None:
    assert raw(scraped.port, request_line + b"\r\n\r\n").split()[1] == status


def test_a_head_that_does_not_end_closes_the_connection(scraped: Scraped) -> None:
    # An error is the same, noticed while sending.
    with contextlib.suppress(ConnectionError):
        assert raw(scraped.port, b"GET /metrics HTTP/1.1\r\n" + b"a" * 100_000) == b""


def test_idle_clients_do_not_keep_others_out_of_the_broker(scraped: Scraped) -> None:
    """Sixteen at a time; further ones are closed at once, and the broker serves."""
    idle = [socket.create_connection(("127.0.0.1", scraped.port)) for _ in range(16)]
    try:
        refused = socket.create_connection(("127.0.0.1", scraped.port))
        with refused, contextlib.suppress(ConnectionResetError):
            assert refused.recv(1) == b""
        producer = Producer({"bootstrap.servers": scraped.broker.bootstrap})
        producer.produce("orders", b"x")
        assert producer.flush(60) == 0
    finally:
        for client in idle:
            client.close()


def test_a_taken_address_stops_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OttlaError, match=r"choose another address in metrics\.listen"):
            Broker(settings={"metrics.listen": address}).start()


def test_without_the_setting_nothing_of_it_is_imported() -> None:
    """A broker has no endpoint and pays for none."""
    program = (
        "import sys\n"
        "from ottla.testing import Broker\n"
        "with Broker() as broker: pass\n"
        "names = [n for n in sys.modules if n.startswith(('prometheus_client', 'opentelemetry'))]\n"
        "assert names == [], names\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


class Collector(BaseHTTPRequestHandler):
    """An OpenTelemetry collector that keeps what it is sent."""

    received: list[ExportMetricsServiceRequest]
    arrived: threading.Event

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/metrics":
            self.received.append(ExportMetricsServiceRequest.FromString(body))
            self.arrived.set()
        answer = ExportMetricsServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


def test_a_collector_of_opentelemetry_gets_the_same_samples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1000")
    Collector.received, Collector.arrived = [], threading.Event()
    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        with Broker(settings={"metrics.otlp.endpoint": endpoint}) as broker:
            producer = Producer({"bootstrap.servers": broker.bootstrap})
            producer.produce("orders", b"x")
            producer.flush()
            for _ in range(120):
                assert Collector.arrived.wait(120)
                Collector.arrived.clear()
                found = sent(Collector.received[-1])
                if "kafka_topic_partition_current_offset" in found:
                    break
    finally:
        server.shutdown()
    (resource,) = Collector.received[-1].resource_metrics
    attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert attributes["service.name"] == "ottla"
    offset = found["kafka_topic_partition_current_offset"].gauge.data_points[0]
    assert {each.key: each.value.string_value for each in offset.attributes} == {
        "topic": "orders",
        "partition": "0",
    }
    assert offset.as_int == 1
    records = found["kafka_server_brokertopicmetrics_messagesin_total"].sum
    assert records.is_monotonic
    assert records.data_points[0].as_int == 1


def sent(request: ExportMetricsServiceRequest) -> dict[str, Any]:
    return {
        metric.name: metric
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.gauge.data_points or metric.sum.data_points
    }
