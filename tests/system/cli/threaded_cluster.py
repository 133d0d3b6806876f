"""Three brokers in a thread of their own, for commands that run as processes beside them."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from ottla.metadata.image import PartitionImage
from ottla.testing.cluster import Cluster

Result = TypeVar("Result")

_PATIENCE_S = 200


class ThreadedCluster:
    """`ottla.testing.cluster.Cluster` for whoever has no event loop."""

    def __init__(self, settings: Mapping[str, str], racks: Mapping[int, str] | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._cluster = Cluster(3, settings, racks=racks)

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._cluster.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._call(self._cluster.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE_S)
        self._loop.close()

    @property
    def bootstrap(self) -> str:
        """All that run."""
        return ",".join(f"127.0.0.1:{b.port}" for b in self._cluster.brokers.values())

    def create_topic(
        self, name: str, *replicas: list[int], settings: Mapping[str, str] | None = None
    ) -> None:
        """A topic with these replicas, partition by partition."""
        assignments = dict(enumerate(replicas))
        self._call(self._cluster.create_topic(name, settings=settings, assignments=assignments))

    def kill(self, broker_id: int) -> None:
        """End a broker as kill -9 does, and wait until the others know."""
        self._call(self._cluster.kill(broker_id))
        self.until(
            lambda cluster: all(broker_id not in b.image.brokers for b in cluster.brokers.values())
        )

    def restart(self, broker_id: int) -> None:
        """Start it again, and wait until all know each other."""
        self._call(self._cluster.restart(broker_id))
        self.until(
            lambda cluster: all(
                len(b.image.brokers) == len(cluster.brokers) for b in cluster.brokers.values()
            )
        )

    def until(self, condition: Callable[[Cluster], bool]) -> None:
        """Return when `condition` holds, as seen from the brokers' own loop."""
        self._call(self._cluster.until(lambda: condition(self._cluster)))

    def until_state(
        self, condition: Callable[[PartitionImage], bool], topic: str, index: int = 0
    ) -> None:
        """Return when all brokers see the same of a partition, and `condition` holds of that."""

        def holds(cluster: Cluster) -> bool:
            state = cluster.state(topic, index)
            return state is not None and condition(state)

        self.until(holds)

    @property
    def controller_id(self) -> int:
        """Who is in office."""
        self.until(lambda cluster: cluster.controller is not None)
        assert self._cluster.controller is not None
        return int(self._cluster.controller.broker_id)

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE_S)
