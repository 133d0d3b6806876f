"""Sessions that end while our clients work: none of their calls fails."""

import contextlib
import time
from pathlib import Path

import pytest
from rig.broker import ottla
from rig.probe import free_port

from ottla.client import sync
from ottla.client.ranges import RangeClient

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.plain.without.tls.enable": "true",
    "sasl.jaas.config": f'{PLAIN} user_alice="s3cret";',
    "connections.max.reauth.ms": "1200",
}


def test_producer_consumer_admin_and_loads_go_on_over_many_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions of 1.2 s, work for three: each record arrives once, in order."""
    port, sasl_port = free_port(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} username="alice" password="s3cret";\n'
    )
    monkeypatch.setenv("OTTLA_CONFIG", str(config))
    bootstrap = f"127.0.0.1:{sasl_port}"
    sent: list[bytes] = []
    read: list[bytes | None] = []
    with (
        ottla(settings={**SETTINGS, "listeners": listeners}, port=port),
        sync.Admin(bootstrap) as admin,
        sync.Producer(bootstrap) as producer,
        sync.Consumer(bootstrap, group_id="again") as consumer,
        contextlib.closing(RangeClient(bootstrap)) as ranges,
    ):
        admin.topics.create("again", partitions=1)
        consumer.subscribe("again")
        until_s = time.monotonic() + 3
        while time.monotonic() < until_s or len(read) < len(sent):
            if time.monotonic() < until_s:
                sent.append(b"%d" % len(sent))
                producer.send("again", sent[-1])
                producer.flush()
            read += [each.value for each in consumer.poll()]
            assert "again" in [each.name for each in admin.topics.all()]
            assert ranges.high_watermarks("again") == {0: len(sent)}
    assert read == sent
