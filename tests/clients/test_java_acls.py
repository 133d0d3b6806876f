"""kafka-acls adds, lists and removes ACLs, and a Java client meets what they deny."""

from rig import tools as t
from rig.broker import ottla
from rig.tools import Tools

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def test_kafka_acls_manages_the_rules_that_the_tools_then_meet(jvm: Tools) -> None:
    """Added, described, enforced, removed."""
    with ottla(settings=SETTINGS) as node:

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
