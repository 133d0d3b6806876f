"""kafka-acls adds, lists and removes ACLs, and a Java client meets what they deny."""

import json
from pathlib import Path
from typing import Any

from rig import tools as t
from rig.broker import ottla
from rig.secret_search import register
from rig.tools import Tools

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
PASSWORD = "a password for the tools"
register(PASSWORD)


def test_kafka_acls_manages_the_rules_that_the_tools_then_meet(jvm: Tools, tmp_path: Path) -> None:
    """Added, described, enforced, removed; each change and each denial is in the audit log."""
    with ottla(settings=SETTINGS, folder=tmp_path) as node:

        def run(name: str, *words: str) -> t.Ran:
            return jvm.run(name, "--bootstrap-server", node.bootstrap, *words)

        run(t.TOPICS, "--create", "--topic", "flights")
        rule = ("--allow-principal", "User:alice", "--operation", "Write")
        prefixed = ("--topic", "fl", "--resource-pattern-type", "prefixed")
        added = run(t.ACLS, "--add", *rule, *prefixed)
        assert "principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW" in added.out
        listed = run(t.ACLS, "--list", "--topic", "flights", "--resource-pattern-type", "match")
        assert "resourceType=TOPIC, name=fl, patternType=PREFIXED" in listed.out
        assert "flights" not in run(t.TOPICS, "--list").out
        denied = run(t.TOPICS, "--describe", "--topic", "flights")
        assert "does not exist" in denied.out + denied.err or denied.exit_code != 0
        run(t.ACLS, "--remove", "--force", *rule, *prefixed)
        assert "flights" in run(t.TOPICS, "--list").out
        scram = f"SCRAM-SHA-256=[iterations=4096,password={PASSWORD}]"
        alice = ("--entity-type", "users", "--entity-name", "alice")
        run(t.CONFIGS, "--alter", *alice, "--add-config", scram)
        flights = ("--entity-type", "topics", "--entity-name", "flights")
        run(t.CONFIGS, "--alter", *flights, "--add-config", "retention.ms=86400000")
    acl = "ALLOW User:alice from * WRITE on Topic:PREFIXED:fl"
    everyone = "allow.everyone.if.no.acl.found"
    changed, denied = _audited(tmp_path)
    assert changed == [
        ("CREATE_TOPICS", "Topic:flights", _CREATED, everyone),
        ("CREATE_ACLS", "Cluster:kafka-cluster", {"added": acl}, everyone),
        ("DELETE_ACLS", "Cluster:kafka-cluster", {"removed": acl}, everyone),
        ("ALTER_USER_SCRAM_CREDENTIALS", "Cluster:kafka-cluster", _CREDENTIAL, everyone),
        ("INCREMENTAL_ALTER_CONFIGS", "Topic:flights", _ALTERED, everyone),
    ]
    assert {each[1:] for each in denied} <= {("DESCRIBE", "Topic:flights", "no rule")}


_CREATED = {"partition_count": 1, "replication_factor": 1, "settings": {}}
_CREDENTIAL = {
    "user": "alice",
    "mechanism": "SCRAM-SHA-256",
    "credential": "set",
    "iterations": 4096,
}
_ALTERED = {
    "of": "topic:flights",
    "settings": [{"name": "retention.ms", "operation": "set", "value": "86400000"}],
}


def _audited(home: Path) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """What differs between changes, and between denials."""
    (file,) = (home / "logs").glob("ottla-audit-1-*.log")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    changed = [
        (line["api"], line["resource"], line["detail"], line["rule"])
        for line in lines
        if line["event"] == "changed"
    ]
    denied = [
        (line["api"], line["operation"], line["resource"], line["rule"])
        for line in lines
        if line["event"] == "denied" and "rule" in line
    ]
    return changed, denied
