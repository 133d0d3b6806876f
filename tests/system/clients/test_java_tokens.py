"""kafka-delegation-tokens makes a token, with which Java's clients log in until it ends."""

from pathlib import Path

from rig.broker import ottla
from rig.probe import free_port
from rig.secret_search import register
from rig.tools import DELEGATION_TOKENS, TOPICS, Tools

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PASSWORD = "correct-horse-battery"


def settings(mechanism: str, jaas: str) -> str:
    return (
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas};\n"
    )


def test_kafka_delegation_tokens_makes_describes_renews_and_ends_a_token(
    jvm: Tools, tmp_path: Path
) -> None:
    """The tool prints id and HMAC; a client with them is alice; the broker's log has no HMAC."""
    port, open_port = free_port(), free_port()
    chosen = {
        "listeners": f"PLAINTEXT://127.0.0.1:{open_port},SASL_PLAINTEXT://127.0.0.1:{port}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "sasl.plain.without.tls.enable": "true",
        "sasl.jaas.config": f'{PLAIN} required user_alice="{PASSWORD}" user_bob="{PASSWORD}";',
        "delegation.token.secret.key": "the key of all brokers",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice",
    }
    files = {}
    for user in ("alice", "bob"):
        files[user] = tmp_path / f"{user}.properties"
        files[user].write_text(
            settings("PLAIN", f'{PLAIN} required username="{user}" password="{PASSWORD}"')
        )
    server = ("--bootstrap-server", f"127.0.0.1:{port}", "--command-config")
    with ottla(settings=chosen, port=open_port) as node:

        def tool(user: str, *words: str) -> list[str]:
            return jvm.run(DELEGATION_TOKENS, *server, str(files[user]), *words).lines()

        longest = ("--max-life-time-period", "-1", "--renewer-principal", "User:bob")
        made = tool("alice", "--create", *longest)[-1].split()
        token_id, hmac, owner, requester, renewers = made[:5]
        register(hmac, "the HMAC of a token")
        assert (owner, requester, renewers) == ("User:alice", "User:alice", "[User:bob]")
        job = tmp_path / "job.properties"
        login = f'{SCRAM} required username="{token_id}" password="{hmac}" tokenauth="true"'
        job.write_text(settings("SCRAM-SHA-512", login))
        created = jvm.run(TOPICS, *server, str(job), "--create", "--topic", "flights")
        assert created.exit_code == 0, created
        assert "flights" in jvm.run(TOPICS, *server, str(job), "--list").out
        described = tool("bob", "--describe", "--owner-principal", "User:alice")
        assert described[-1].split()[:2] == [token_id, hmac]
        renewed = tool("bob", "--renew", "--renew-time-period", "-1", "--hmac", hmac)
        assert "Completed renew operation. New expiry date" in renewed[-1]
        ended = tool("bob", "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
        assert "Completed expire operation. New expiry date" in ended[-1]
        assert token_id not in " ".join(tool("alice", "--describe"))
        refused = jvm.run(TOPICS, *server, str(job), "--list")
        assert refused.exit_code == 1
        assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in refused.out + refused.err
        log = node.process.log.read_text()
    assert hmac not in log
    assert PASSWORD not in log
