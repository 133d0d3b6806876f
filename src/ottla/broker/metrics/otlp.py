"""Sends the samples to an OpenTelemetry collector, by OTLP over HTTP, with the SDK's exporter."""

import logging
import os
from collections.abc import Iterator, Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as OtlpMetric
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from ottla import __version__
from ottla.base.log_lines import Seldom
from ottla.broker.metrics.samples import Family, SampleKind

_log = logging.getLogger(__name__)

_PATH: Final = "/v1/metrics"
_LOG_AGAIN_MS: Final = 600_000


def interval_ms() -> int:
    """Return the pause between exports, by OpenTelemetry's own variable; a minute by default."""
    text = os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", "")
    return int(text) if text.isdecimal() and int(text) else 60_000


class Exporter:
    """Exports to the collector at `endpoint`, which is `http://host:4318` or a whole URL."""

    def __init__(self, endpoint: str, broker_id: int, cluster_id: str, began_ms: int) -> None:
        url = endpoint if endpoint.rstrip("/").endswith(_PATH) else endpoint.rstrip("/") + _PATH
        self._endpoint = url
        self._exporter = OTLPMetricExporter(endpoint=url)
        self._resource = Resource.create(
            {
                "service.name": "ottla",
                "service.version": __version__,
                "service.instance.id": f"{cluster_id}-{broker_id}",
            }
        )
        self._scope = InstrumentationScope("ottla.broker", __version__)
        self._began_ns = began_ms * 1_000_000
        self._seldom = Seldom(_LOG_AGAIN_MS)

    def export(self, families: Sequence[Family], now_ms: int) -> None:
        """Send the samples; blocks, for at most the exporter's timeout. A failure is logged."""
        metrics = [self._metric(family, now_ms * 1_000_000) for family in families]
        scope = ScopeMetrics(self._scope, metrics, "")
        data = MetricsData([ResourceMetrics(self._resource, [scope], "")])
        if self._exporter.export(data) is MetricExportResult.SUCCESS:
            return
        missed = self._seldom.admit("", now_ms)
        if missed is not None:
            _log.warning(
                "the metrics could not be sent to %s (%d times more since the last such line): see"
                " whether the collector runs, and whether metrics.otlp.endpoint is right",
                self._endpoint,
                missed,
            )

    def close(self) -> None:
        """Give up what is being sent."""
        self._exporter.shutdown()

    def _metric(self, family: Family, at_ns: int) -> OtlpMetric:
        points = list(self._points(family, at_ns))
        data: Gauge | Sum = Gauge(points)
        if family.metric.kind is SampleKind.COUNTER:
            data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        return OtlpMetric(family.metric.name, family.metric.help, "", data)

    def _points(self, family: Family, at_ns: int) -> Iterator[NumberDataPoint]:
        for labels, value in zip(family.labels, family.values, strict=True):
            yield NumberDataPoint(labels.pairs, self._began_ns, at_ns, value)
