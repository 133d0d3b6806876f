"""Kafka Streams' own smoke test: every operator over 20 keys, results checked record by record.

Two instances process while the driver produces for a minute and a half; then it compares all
topics with what they must hold, and with exactly once looks for transactions left open.
"""

from functools import partial

from rig.jars import KAFKA_VERSION
from suites import java, topics
from suites.result import Outcome, Result
from suites.suite import Side, Suite, timed

_PROGRAM = "org.apache.kafka.streams.tests.StreamsSmokeTest"
# The topics that the test expects to find.
_TOPICS = (
    *("data", "echo", "max", "min", "min-suppressed", "min-raw", "dif", "sum", "sws-raw"),
    *("sws-suppressed", "cnt", "avg", "tagg"),
)
_INSTANCES = 2
_PATIENCE_S = 900.0


def _smoke(guarantee: str, side: Side) -> list[Result]:
    folder, bootstrap = side.folder, side.bootstrap
    topics.create(bootstrap, *_TOPICS, partitions=5)
    file = folder / "streams.properties"
    common = f"bootstrap.servers={bootstrap}\nprocessing.guarantee={guarantee}\n"
    common += "replication.factor=3\nnum.standby.replicas=1\n"
    file.write_text(common)
    instances = []
    for number in range(_INSTANCES):
        own = folder / f"instance-{number}.properties"
        own.write_text(f"{common}state.dir={folder / f'state-{number}'}\n")
        instances.append(
            java.begin(folder, f"instance-{number}", _PROGRAM, own, "process", heap="768m")
        )
    verdict: list[Result] = []

    def verified() -> str | None:
        code, printed = java.run(folder, "driver", _PROGRAM, file, "run", timeout_s=_PATIENCE_S)
        return None if code == 0 else f"exit {code}: {java.last_lines(printed)}"

    try:
        for process in instances:
            java.wait_for(process, "State transition from REBALANCING to RUNNING")
        verdict.append(timed("every result is right", verified))
    finally:
        ended = [process.terminate() for process in instances]
    logs = [process.log for process in instances] + [folder / "driver.log"]
    verdict.append(_closed(ended, [log.read_text(errors="replace") for log in logs]))
    retried = java.retried(logs)
    description = ", ".join(f"{count} × {name}" for name, count in sorted(retried.items()))
    outcome = Outcome.FAIL if retried else Outcome.PASS
    verdict.append(Result("no produce error is retried", outcome, reason=description))
    return verdict


def _closed(ended: list[int], printed: list[str]) -> Result:
    """Whether all instances went through in order: no thread died, each closed when asked."""
    died = sum("SMOKE-TEST-CLIENT-EXCEPTION" in text for text in printed)
    closed = sum("SMOKE-TEST-CLIENT-CLOSED" in text for text in printed)
    good = died == 0 and closed == _INSTANCES
    reason = "" if good else f"{died} exceptions, {closed} closed, exit codes {ended}"
    outcome = Outcome.PASS if good else Outcome.FAIL
    return Result("the instances close in order", outcome, reason=reason)


def _suite(name: str, guarantee: str) -> Suite:
    return Suite(
        name=name,
        title=f"Kafka Streams: smoke test, {guarantee}",
        source=f"Maven: org.apache.kafka:kafka-streams:{KAFKA_VERSION}, classifier test",
        needs=("java",),
        fetch=java.fetch,
        run=partial(_smoke, guarantee),
    )


# A cluster for each, since both use the same topics.
SUITES = (_suite("streams", "at_least_once"), _suite("streams-eos", "exactly_once_v2"))
