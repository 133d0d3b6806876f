"""A broker runs on while its package is installed anew: it has imported all that it needs."""

import re
import shutil
from pathlib import Path

from rig.broker import ottla
from rig.paths import ROOT

from ottla.client import ConfigResourceType, TopicPartition, sync


def replace(package: Path) -> None:
    """As pip does, by files of another version; here by some that nothing can import."""
    shutil.rmtree(package)
    for module in (ROOT / "src" / "ottla").rglob("*.py"):
        new = package / module.relative_to(ROOT / "src" / "ottla")
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_text("raise ImportError('this is another version')\n")


def test_a_broker_serves_and_stops_while_its_package_is_replaced(tmp_path: Path) -> None:
    """Topics, records, groups, patterns, transactions, settings, quotas; then SIGTERM."""
    source = tmp_path / "src"
    shutil.copytree(ROOT / "src" / "ottla", source / "ottla")
    with ottla(source=source, folder=tmp_path / "broker") as node:
        replace(source / "ottla")
        with sync.Admin(node.bootstrap) as admin:
            admin.topics.create("t", 2)
            admin.configs.alter(ConfigResourceType.TOPIC, "t", {"retention.ms": "3600000"})
            with sync.Producer(node.bootstrap, transactional_id="copier") as producer:
                producer.init_transactions()
                with producer.transaction():
                    producer.send("t", b"value", b"key", partition=0)
            with sync.Consumer(node.bootstrap, group_id="g") as consumer:
                consumer.subscribe(re.compile("t"))
                while not (found := consumer.poll()):
                    pass
                assert [record.value for record in found] == [b"value"]
            assert [one.group_id for one in admin.groups.all()] == ["g"]
            assert admin.groups.describe("g").group_id == "g"
            assert [one.transactional_id for one in admin.transactions.all()] == ["copier"]
            assert admin.logs.delete_records({TopicPartition("t", 0): 1})
            assert admin.logs.directories()
            assert admin.quotas.all() == {}
            admin.topics.delete("t")
        log = (tmp_path / "broker" / "ottla.log").read_text()
        assert "Traceback" not in log
        assert "another version" not in log
        assert node.process.terminate(200) == 0
