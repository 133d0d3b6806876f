"""A broker on one port that comes back with its files, however often it is killed."""

from contextlib import AbstractContextManager
from pathlib import Path

from rig.broker import ottla
from rig.kafka import kafka
from rig.nodes import Node
from rig.probe import free_port

_SETTINGS = {"log.cleaner.backoff.ms": "200", "log.cleaner.min.cleanable.ratio": "0.01"}


class MortalBroker:
    """Ottla, or Apache Kafka, as a process."""

    def __init__(self, folder: Path, *, is_kafka: bool = False) -> None:
        self._folder = folder
        self._port = free_port()
        self._is_kafka = is_kafka
        # They stand until all is over: what ends one of them would end its successor.
        self._runs: list[AbstractContextManager[Node]] = []
        self.node = self.start()

    def start(self) -> Node:
        """Bring it up."""
        common = {"folder": self._folder, "port": self._port, "settings": _SETTINGS}
        run = kafka(quick=True, **common) if self._is_kafka else ottla(**common)  # type: ignore[arg-type]
        self._runs.append(run)
        self.node = run.__enter__()
        return self.node

    @property
    def pid(self) -> int:
        """The process to kill."""
        return self.node.process.pid

    def revive(self) -> None:
        """Bring it up again where it is dead."""
        if not self.node.process.alive():
            self.start()

    def end(self) -> None:
        """For good."""
        self.node.process.kill()
