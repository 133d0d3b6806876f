"""Programs of Kafka's that are on Maven Central: their jars, and a JVM that runs one to its end."""

import re
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rig import jars
from rig.jars import KAFKA_VERSION, JarSet
from rig.java import java
from rig.process import Process, start

JARS = JarSet(
    name="suites-java",
    override="OTTLA_SUITES_JARS",
    coordinates=(
        f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
        # The smoke test uses a class of the clients' tests.
        f"org.apache.kafka:kafka-clients:{KAFKA_VERSION}",
        f"org.apache.kafka:kafka-clients:{KAFKA_VERSION}:test",
        f"org.apache.kafka:kafka-streams:{KAFKA_VERSION}",
        f"org.apache.kafka:kafka-streams:{KAFKA_VERSION}:test",
        f"org.apache.kafka:connect-file:{KAFKA_VERSION}",
        f"org.apache.kafka:connect-mirror:{KAFKA_VERSION}",
        "org.apache.logging.log4j:log4j-core:2.25.4",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
    ),
    transitive=True,
)
_LOGGING = """
status = error
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c{1})%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""
# Produce errors after which a client tries again, as its producer logs them, and as Streams does.
_RETRIED = re.compile(
    r"\b(NOT_ENOUGH_REPLICAS(?:_AFTER_APPEND)?|NOT_LEADER_OR_FOLLOWER|"
    r"OUT_OF_ORDER_SEQUENCE_NUMBER)\b"
)


def fetch() -> None:
    """Download the jars, with Maven or with Ivy."""
    jars.fetch(JARS)


def command(folder: Path, program: str, *arguments: object, heap: str = "512m") -> list[str | Path]:
    """The command line of a program whose log goes to standard error."""
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING)
    line: list[str | Path] = [java(), f"-Xmx{heap}", "-XX:+UseSerialGC"]
    line += [f"-Dlog4j2.configurationFile={logging}", "-cp", jars.class_path(JARS), program]
    return [*line, *map(str, arguments)]


def begin(folder: Path, name: str, program: str, *arguments: object, heap: str = "512m") -> Process:
    """Start a program; all that it prints goes to a file of that name."""
    return start(command(folder, program, *arguments, heap=heap), folder / f"{name}.log")


def run(
    folder: Path, name: str, program: str, *arguments: object, timeout_s: float = 600.0
) -> tuple[int, str]:
    """Run a program to its end: its exit code, and what it printed to either stream.

    One that has not ended in time is killed, which its exit code says.
    """
    process = begin(folder, name, program, *arguments)
    try:
        process.child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
    return process.child.returncode, process.log.read_text(errors="replace")


def wait_for(process: Process, words: str, timeout_s: float = 180.0) -> None:
    """Wait until a program has printed `words`. Raises TimeoutError with the end of its log."""
    deadline_s = time.perf_counter() + timeout_s
    while words not in process.log.read_text(errors="replace"):
        if time.perf_counter() > deadline_s or not process.alive():
            raise TimeoutError(f"never said {words!r}: {process.log_tail(500)}")
        time.sleep(0.2)


def retried(logs: Sequence[Path]) -> Counter[str]:
    """How often producers met each error of the kind that a healthy cluster does not give."""
    found: Counter[str] = Counter()
    for log in logs:
        found.update(_RETRIED.findall(log.read_text(errors="replace")))
    return found


def last_lines(printed: str, count: int = 3) -> str:
    """The end of what a program printed, in one line."""
    return " / ".join(line for line in printed.splitlines()[-count:] if line.strip())[:300]
