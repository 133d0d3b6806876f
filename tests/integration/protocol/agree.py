"""Has Kafka's Java code read and rewrite our messages; writes the digests of what it agrees with.

    OTTLA_KAFKA_JARS=folder python -m tests.integration.protocol.agree

Needs a JDK (a bare runtime cannot compile `Echo.java`). To be run after a declaration changed.
"""

import subprocess
import sys
from pathlib import Path

from ottla.wire.notation import Message
from tests.integration.protocol.kafka_json import REMOVED_IN_4, former_jar_folder, jar_folder
from tests.unit.wire.corpus import DIGESTS, digest, encoded, kafka_classes

_PACKAGES = {
    "OffsetCommitValue": "coordinator.group.generated",
    "GroupMetadataValue": "coordinator.group.generated",
    "TransactionLogKey": "coordinator.transaction.generated",
    "TransactionLogValue": "coordinator.transaction.generated",
}
# In Kafka's code the version of these keys is their record type; the bytes are those of version 0.
_KEYS = {
    "OffsetCommitKey": "coordinator.group.generated",
    "GroupMetadataKey": "coordinator.group.generated",
}


def _line(cls: type[Message], version: int, message: bytes) -> str:
    name = cls.__name__
    package = _KEYS.get(name) or _PACKAGES.get(name, "common.message")
    suffix = "Data" if cls.__api_key__ >= 0 else ""
    number = 0 if name in _KEYS else version
    return f"org.apache.kafka.{package}.{name}{suffix} {number} {message.hex()}\n"


def main() -> int:
    """Compare all, then write the digests; exit code 1 where anything differs."""
    former = [cls for cls in kafka_classes() if cls.__name__.startswith(REMOVED_IN_4)]
    present = [cls for cls in kafka_classes() if cls not in former]
    differing = _differing(present, jar_folder()) + _differing(former, former_jar_folder())
    sys.stdout.writelines(sorted(differing))
    if not differing:
        DIGESTS.write_text("".join(f"{cls.__name__} {digest(cls)}\n" for cls in kafka_classes()))
        sys.stdout.write("all messages agreed\n")
    return int(bool(differing))


def _differing(classes: list[type[Message]], folder: Path) -> list[str]:
    """What the code in the jars of `folder` reads or writes otherwise, one line for each."""
    sent = [(cls, version, data) for cls in classes for version, data in encoded(cls)]
    answered = subprocess.run(
        ["java", "-cp", f"{folder}/*", str(Path(__file__).with_name("Echo.java"))],
        input="".join(_line(*each) for each in sent),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [
        f"{cls.__name__} version {version}: {data.hex()} became {answer}\n"
        for (cls, version, data), answer in zip(sent, answered, strict=True)
        if data.hex() != answer
    ]


if __name__ == "__main__":
    sys.exit(main())
