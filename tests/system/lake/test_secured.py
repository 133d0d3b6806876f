"""The lake on a broker with TLS, logins and ACLs; no secret is in what it leaves behind."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from rig.secret_search import SEARCH, register
from rig.secured import Secured, secured

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.client import sync

PASSWORDS = {"alice": "only-alice-knows-this", "bob": "bobs-own-secret-word"}
KEY_PASSWORD = "opens-the-key"
STORAGE_KEY = "the-secret-key-of-a-storage"
for _secret in (*PASSWORDS.values(), KEY_PASSWORD, STORAGE_KEY):
    register(_secret)
PROGRAM = Path(__file__).with_name("secured_program.py")


@pytest.fixture(scope="module")
def broker() -> Iterator[Secured]:
    with secured(PASSWORDS) as running:
        yield running
        log = running.node.process.log.read_text()
    for secret in PASSWORDS.values():
        assert secret not in log


def make_topic(broker: Secured, name: str, records: int) -> str:
    """A topic with so many records, which nobody may read yet."""
    broker.create_topic(name, partitions=2)
    with sync.Producer(broker.node.bootstrap) as producer:
        for number in range(records):
            producer.send(name, b"v%d" % number, b"k%d" % number)
    return name


def allow_loads(broker: Secured, user: str, topic: str) -> None:
    """What a load needs, and nothing else."""
    broker.allow(user, "read", f"topic:{topic}")
    broker.allow(user, "describe-configs", f"topic:{topic}")


def allow_sinks(broker: Secured, user: str, topic: str) -> None:
    """What a sink needs: its mark is an offset of a group, in the same transaction."""
    broker.allow(user, "write", f"topic:{topic}")
    broker.allow(user, "read", f"topic:{topic}")
    broker.allow(user, "write", "transactional-id:ottla-", prefixed=True)
    broker.allow(user, "read", "group:ottla-", prefixed=True)


def encrypted_key(broker: Secured) -> tuple[str, str]:
    """The key of the client's certificate, with a password, and its chain: both as PEM."""
    text = broker.files.client.read_bytes()
    key = load_pem_private_key(text, None)
    encryption = BestAvailableEncryption(KEY_PASSWORD.encode())
    closed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
    return closed, text[text.index(b"-----BEGIN CERTIFICATE") :].decode()


def test_no_secret_is_left_by_loads_streams_and_sinks(
    spark: Any, broker: Secured, tmp_path: Path
) -> None:
    """Neither in event log, plans, pages, tables, checkpoint and processes, nor in any output.

    The driver's file, whose path travels with the tasks; a file that Spark sends; options of a
    DataFrame in Kafka's names, with the key of a certificate.
    """
    del spark  # Only for its JAVA_HOME.
    topic, into = make_topic(broker, "flights", 300), make_topic(broker, "again", 0)
    for user in PASSWORDS:
        allow_loads(broker, user, topic)
    allow_sinks(broker, "bob", into)
    secrets, out = tmp_path / "secrets", tmp_path / "out"
    secrets.mkdir()
    (out / "events").mkdir(parents=True)
    config = broker.write_config(secrets / "client.properties", "alice")
    sent = broker.write_config(secrets / "sent.properties", "alice", "PLAIN")
    closed_key, chain = encrypted_key(broker)
    options = {f"kafka.{name}": value for name, value in broker.settings("bob").items()}
    options |= {
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.key": closed_key,
        "kafka.ssl.keystore.certificate.chain": chain,
        "kafka.ssl.key.password": KEY_PASSWORD,
    }
    said = {
        "folder": str(out),
        "bootstrap": broker.sasl,
        "topic": topic,
        "sink": into,
        "config": str(config),
        "sent": str(sent),
        "options": options,
        # As a storage's keys get to executors.
        "conf": {"spark.executorEnv.AWS_SECRET_ACCESS_KEY": STORAGE_KEY},
    }
    program = subprocess.run(
        [sys.executable, PROGRAM, json.dumps(said)],
        check=False,
        capture_output=True,
        text=True,
        cwd=out,
        env={name: value for name, value in os.environ.items() if name != "OTTLA_CONFIG"},
    )
    (out / "stdout").write_text(program.stdout)
    (out / "stderr").write_text(program.stderr)

    assert program.returncode == 0, program.stderr[-4000:]
    expected = {"counts": [300] * 5, "problems": [], "kept": [True]}
    assert json.loads(program.stdout.splitlines()[-1]) == expected
    assert ottla.lake.topic(into, bootstrap=broker.node.bootstrap).to_arrow().num_rows == 600
    written = {path.name for path in out.rglob("*") if path.is_file()}
    assert {"plans", "pages", "settings", "processes", "progress"} <= written
    assert "spark.eventLog" in (out / "processes").read_text()
    key_lines = [line for line in closed_key.splitlines() if not line.startswith("-----")]
    register(key_lines[2], "a line of the client's key")
    assert SEARCH.found_below(out) == []


def test_two_clusters_with_logins_of_their_own_are_loaded_side_by_side(
    broker: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings are those of a call: no other call of the process sees them."""
    monkeypatch.delenv("OTTLA_CONFIG", raising=False)
    others = {"carol": "carols-password-elsewhere"}
    register(others["carol"])
    with secured(others) as second, ThreadPoolExecutor(2) as pool:
        of_first, of_second = make_topic(broker, "here", 40), make_topic(second, "there", 60)
        allow_loads(broker, "alice", of_first)
        allow_loads(second, "carol", of_second)
        config = str(broker.write_config(tmp_path / "client.properties", "alice"))
        client = second.settings("carol")
        first, other = str(tmp_path / "first"), str(tmp_path / "second")
        load = partial(ottla.lake.load, master="here")
        loads = [
            pool.submit(load, of_first, first, bootstrap=broker.sasl, config=config),
            pool.submit(load, of_second, other, bootstrap=second.sasl, client=client),
        ]
        assert [one.result().rows for one in loads] == [40, 60]
        assert ottla.lake.verify(first, bootstrap=broker.sasl, config=config).compared == 40
        assert ottla.lake.verify(other, bootstrap=second.sasl, client=client).compared == 60
        proof = ottla.lake.certificate(other, bootstrap=second.sasl, client=client)
        assert proof["verdict"]["compared"] == 60
        tried = ottla.lake.try_schema(of_second, bootstrap=second.sasl, client=client, key="bytes")
        assert tried.records == 60
        with pytest.raises(OttlaError):
            load(of_second, other, bootstrap=second.sasl, config=config)
    assert "OTTLA_CONFIG" not in os.environ
    assert SEARCH.found_below(tmp_path / "first") == []
    assert SEARCH.found_below(tmp_path / "second") == []
