"""A process that passes records on: `python -m chaos.transactions.copier …`.

SIGTERM ends it after the transaction it is at. It ends by itself, with 1, where it cannot go on:
then another is to take its place.
"""

import faulthandler
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Protocol

from chaos.task import Ending
from chaos.transactions.kafka_python import KafkaPython
from chaos.transactions.librdkafka import Librdkafka
from chaos.transactions.task import CopyTask, parsed_task


class Copier(Protocol):
    """A client library at this work."""

    def step(self) -> None:
        """Pass a batch on, if there is one."""
        ...

    def close(self) -> None:
        """Leave the group."""
        ...


KINDS: Mapping[str, Callable[[CopyTask], Copier]] = {
    "librdkafka": Librdkafka,
    "kafka-python": KafkaPython,
}


def main() -> int:
    """Copy as the command line says."""
    # Where it stands, for who thinks that it is stuck; a JVM does so by itself.
    faulthandler.register(signal.SIGQUIT)
    task, ending = parsed_task(), Ending()
    copier = KINDS[task.kind](task)
    while not ending.asked:
        copier.step()
    copier.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
