"""What bench and tests need to know of a broker that runs, whichever it is."""

from dataclasses import dataclass
from pathlib import Path

from rig.process import Process


@dataclass(slots=True)
class Node:
    """A serving broker: Apache Kafka or Ottla."""

    name: str
    process: Process
    port: int
    folder: Path
    ready_s: float

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"


def properties(settings: dict[str, str]) -> str:
    """The text of a `server.properties`."""
    return "".join(f"{name}={value}\n" for name, value in settings.items())
