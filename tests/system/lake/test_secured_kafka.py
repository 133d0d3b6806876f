"""The lake on an Apache Kafka with TLS, logins and ACLs."""

from pathlib import Path
from typing import Any

import pytest
from rig.kafka import available
from rig.secured import secured

import ottla.lake
from tests.system.lake.test_secured import PASSWORDS, allow_loads, allow_sinks, make_topic


def test_a_kafka_with_tls_logins_and_acls_is_loaded_and_written(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks of a session that was there before read the file that the driver has now."""
    if reason := available():
        pytest.skip(reason)
    with secured({"ann": PASSWORDS["alice"]}, on_kafka=True) as kafka:
        topic, into = make_topic(kafka, "flights", 100), make_topic(kafka, "again", 0)
        allow_loads(kafka, "ann", topic)
        allow_sinks(kafka, "ann", into)
        config = kafka.write_config(tmp_path / "client.properties", "ann")
        monkeypatch.setenv("OTTLA_CONFIG", str(config))
        target = str(tmp_path / "table")
        loaded = ottla.lake.load(topic, target, bootstrap=kafka.sasl, spark_session=spark)
        assert (loaded.rows, loaded.files) == (100, 2)
        assert ottla.lake.verify(target, bootstrap=kafka.sasl).problems == []
        frame = ottla.lake.table(target).to_spark(spark).select("key", "value")
        options = {"topic": into, "kafka.bootstrap.servers": kafka.sasl, "config": str(config)}
        ottla.lake.register(spark)
        frame.write.format("ottla").options(**options).mode("append").save()
        kafka.allow("ann", "read", f"topic:{into}")
        kafka.allow("ann", "describe-configs", f"topic:{into}")
        assert ottla.lake.topic(into, bootstrap=kafka.sasl).to_arrow().num_rows == 100
