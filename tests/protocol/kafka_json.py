"""Reads the message definitions that Apache Kafka ships inside its jars."""

import json
import os
import re
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
_COMMENT = re.compile(r"(?m)(^|[\s,])//.*$")


def jar_folder() -> Path:
    """The folder of Kafka's jars; skips the test where there is none."""
    folder = Path(os.environ.get("OTTLA_KAFKA_JARS") or ROOT / ".rig" / "kafka")
    if not list(folder.glob("kafka-clients-*.jar")):
        pytest.skip(f"no kafka-clients jar in {folder}: run `make rig`")
    return folder


@cache
def definitions() -> dict[str, dict[str, Any]]:
    """Every message definition in the jars of clients and coordinators, by name."""
    found: dict[str, dict[str, Any]] = {}
    for pattern in ("clients", "group-coordinator", "transaction-coordinator"):
        for path in jar_folder().glob(f"kafka-{pattern}-[0-9]*.jar"):
            with zipfile.ZipFile(path) as jar:
                for name in jar.namelist():
                    if name.startswith("common/message/") and name.endswith(".json"):
                        text = jar.read(name).decode()
                        definition = json.loads(_COMMENT.sub(r"\1", text))
                        found[definition["name"]] = definition
    return found
