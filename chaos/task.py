"""What a client process is told on its command line, and how it hears that it is to end."""

import argparse
import os
import signal
from dataclasses import dataclass, fields
from pathlib import Path

from ottla.base.secret_options import CONFIG_VARIABLE
from ottla.client.connection.security import read_config

# The writer that goes by the library's own limits, so that much may stay unanswered for long.
PATIENT = "patient"
# The writer that gives records up before a leader is found anew, and so often begins an epoch.
HASTY = "hasty"
# The writer whose threads are interrupted at a bad moment; it waits for brokers that stand still
# and hears meanwhile of new leaders.
INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Task:
    """Who the client is, whom it talks to, and where it writes down what it saw."""

    name: str
    bootstrap: str
    topic: str
    partitions: int
    # Where its histories come.
    folder: Path
    # Records a second, of those who write.
    rate: int = 0
    # 1 where each record is a batch by itself: librdkafka has up to five records of a partition on
    # the way, so several batches only where they are small.
    alone: int = 0

    def words(self) -> list[str]:
        """The command line that `parsed_task` understands."""
        words = []
        for field in fields(self):
            words += [f"--{field.name}", str(getattr(self, field.name))]
        return words

    @property
    def every_partition(self) -> list[str]:
        return [f"{self.topic}-{number}" for number in range(self.partitions)]


def parsed_task() -> Task:
    """The task on this process's command line."""
    parser = argparse.ArgumentParser()
    for field in fields(Task):
        parser.add_argument(f"--{field.name}", required=True)
    words = vars(parser.parse_args())
    numbers = {name: int(words.pop(name)) for name in ("partitions", "rate", "alone")}
    return Task(**{**words, **numbers, "folder": Path(words["folder"])})


def librdkafka_security() -> dict[str, str | int | bool]:
    """A login in the words of librdkafka, by the file that OTTLA_CONFIG names; else nothing."""
    path = os.environ.get(CONFIG_VARIABLE)
    if not path:
        return {}
    found = read_config(path)
    return {
        "security.protocol": found["security.protocol"],
        "sasl.mechanisms": found["sasl.mechanism"],
        "sasl.username": found["sasl.username"],
        "sasl.password": found["sasl.password"],
        "ssl.ca.location": found["ssl.truststore.location"],
    }


class Ending:
    """Says whether SIGTERM has asked this process to end."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True
