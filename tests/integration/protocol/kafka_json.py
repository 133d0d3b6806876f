"""Reads the message definitions that Apache Kafka ships inside its jars."""

import json
import os
import re
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
_COMMENT = re.compile(r"(?m)(^|[\s,])//.*$")


# Kafka 4.0 removed these; they are read from the newest jar that has them.
REMOVED_IN_4 = ("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown")


def jar_folder() -> Path:
    """The folder of Kafka's jars; skips the test where there is none."""
    return _folder("OTTLA_KAFKA_JARS", "kafka", "kafka-clients-4*.jar")


def former_jar_folder() -> Path:
    """The folder with the client of Kafka 3.9, which Spark's connector uses; skips likewise."""
    return _folder("OTTLA_SPARK_JARS", "spark", "kafka-clients-3.9*.jar")


def _folder(override: str, name: str, wanted: str) -> Path:
    folder = Path(os.environ.get(override) or ROOT / ".rig" / name)
    if not list(folder.glob(wanted)):
        pytest.skip(f"no {wanted} in {folder}: run `make rig`")
    return folder


@cache
def definitions() -> dict[str, dict[str, Any]]:
    """Every message definition in the jars of clients and coordinators, by name."""
    found: dict[str, dict[str, Any]] = {}
    for pattern in ("clients", "group-coordinator", "transaction-coordinator", "share-coordinator"):
        for path in jar_folder().glob(f"kafka-{pattern}-[0-9]*.jar"):
            found |= _definitions_in(path)
    for path in former_jar_folder().glob("kafka-clients-3.9*.jar"):
        former = _definitions_in(path)
        for name in REMOVED_IN_4:
            for kind in ("Request", "Response"):
                found[name + kind] = former[name + kind]
    return found


def _definitions_in(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    with zipfile.ZipFile(path) as jar:
        for name in jar.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                definition = json.loads(_COMMENT.sub(r"\1", jar.read(name).decode()))
                found[definition["name"]] = definition
    return found
