"""The part of a broker that hands out its metrics."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.metrics.collection import Collection
from ottla.broker.metrics.endpoint import MetricsEndpoint
from ottla.broker.metrics.samples import exposition
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Chores

LISTEN = "metrics.listen"
OTLP = "metrics.otlp.endpoint"


@dataclass(frozen=True, slots=True)
class MetricsStatus:
    """The port of the endpoint, 0 without one; how often samples were collected, and its cost."""

    port: int
    collections: int
    worked_s: float


class MetricsPart(BrokerPart):
    """Serves the metrics for Prometheus, sends them by OTLP, or both, as the settings say.

    It reads the statuses of `parts`, and nothing else; `refresh` is called before. Without its
    settings nothing is imported, started or computed.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        cluster_id: str,
        parts: Callable[[], Mapping[str, BrokerPart]],
        refresh: Callable[[], Awaitable[None]],
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._cluster_id = cluster_id
        self._collection = Collection(
            settings.broker_id, parts, refresh, runtime.clock, runtime.watch.worked_s
        )
        self._endpoint: MetricsEndpoint | None = None
        # The exporter of OTLP; its module is imported only if it is used.
        self._exporter: Any = None
        self._chores = Chores()
        # Returns the figures of the process in Prometheus' text format.
        self._process: Callable[[], bytes] = bytes

    async def start(self) -> None:
        """Listen, and begin to export. Raises OttlaError with cause and remedy."""
        address, collector = self._settings.text(LISTEN), self._settings.text(OTLP)
        if address:
            self._process = _process_figures()
            host, _, port = address.rpartition(":")
            self._endpoint = MetricsEndpoint(host.strip("[]"), int(port), self._text)
            await self._endpoint.start()
        if collector:
            try:
                from ottla.broker.metrics import otlp  # noqa: PLC0415  # Its libraries are an extra.
            except ModuleNotFoundError as error:
                raise _missing(error, OTLP, "otel") from None
            now_ms = self._runtime.clock.now_ms()
            broker_id = self._settings.broker_id
            self._exporter = otlp.Exporter(collector, broker_id, self._cluster_id, now_ms)
            self._chores.every(otlp.interval_ms(), self._export)

    async def stop(self) -> None:
        await self._chores.stop()
        if self._endpoint is not None:
            await self._endpoint.stop()
        if self._exporter is not None:
            self._exporter.close()

    def status(self) -> MetricsStatus:
        return MetricsStatus(
            0 if self._endpoint is None else self._endpoint.port,
            self._collection.collections,
            self._collection.worked_total_s,
        )

    async def _text(self) -> AsyncIterator[bytes]:
        for piece in exposition(await self._collection.collect()):
            yield piece
        yield self._process()

    async def _export(self) -> None:
        families, now_ms = await self._collection.collect(), self._runtime.clock.now_ms()
        await self._runtime.in_thread(lambda: self._exporter.export(families, now_ms))


def _process_figures() -> Callable[[], bytes]:
    """Return a function for the figures of the process, in Prometheus' text format."""
    try:
        import prometheus_client as library  # noqa: PLC0415  # An extra.
    except ModuleNotFoundError as error:
        raise _missing(error, LISTEN, "metrics") from None
    registry = library.CollectorRegistry()
    for collector in (
        library.ProcessCollector,
        library.PlatformCollector,
        library.GCCollector,
    ):
        collector(registry=registry)
    return lambda: library.generate_latest(registry)


def _missing(error: ModuleNotFoundError, setting: str, extra: str) -> Exception:
    """Return the error for a library that is not installed; `error` itself for one of ours."""
    if error.name is None or error.name.startswith("ottla."):
        return error
    return OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"{setting} needs a library that is not installed: pip install 'ottla[{extra}]'",
    )
