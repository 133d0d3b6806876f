"""Runs `main.go` against a secured broker: `python -m tests.system.clients.by_hand_franz`."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rig.issuer import Issuer
from rig.secured import BEARER, PLAIN, SCRAM, Secured, secured

HERE = Path(__file__).parent
TOPIC, GROUP = "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"
TRANSACTIONAL_ID = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
CLUSTER = "CLUSTER_AUTHORIZATION_FAILED"


class Franz:
    """A process of the program; each call is one line."""

    def __init__(self, program: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            env={**os.environ, **environment},
        )

    def __call__(self, *words: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(words) + "\n")
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def steps(broker: Secured, user: str, name: str, franz: Franz) -> list[tuple[str, str, str]]:
    """What was tried, what was expected, what came."""
    topic, group, copier = f"topic-{name}", f"group-{name}", f"copier-{name}"
    broker.create_topic(topic)
    done: list[tuple[str, str, str]] = []

    def tried(work: str, expected: str, on: str = topic) -> None:
        done.append((f"{name} {work}", expected, franz(work, on, group, copier)))

    tried("produce", TOPIC)
    broker.allow(user, "write", f"topic:{topic}")
    tried("produce", "OK")
    tried("read", GROUP)
    broker.allow(user, "read", f"group:{group}")
    tried("read", TOPIC)
    broker.allow(user, "read", f"topic:{topic}")
    tried("read", "OK")
    tried("transact", TRANSACTIONAL_ID)
    broker.allow(user, "write", f"transactional-id:{copier}")
    tried("transact", "OK")
    tried("create", TOPIC, f"new-{name}")
    broker.allow(user, "create", "topic:new-", prefixed=True)
    tried("create", "OK", f"new-{name}")
    tried("acls", CLUSTER)
    tried("users", CLUSTER)
    broker.allow(user, "describe", "cluster")
    tried("acls", "OK")
    tried("users", "OK")
    return done


def stay(broker: Secured, name: str, franz: Franz) -> tuple[str, str, str]:
    """Records for eight seconds with tokens of three: the client logs in again in time."""
    assert broker.issuer is not None
    before, broker.issuer.lifetime_s = len(broker.issuer.forms), 3
    came = franz("stay", f"topic-{name}", "-", "-")
    logins = len(broker.issuer.forms) - before
    return f"{name} stay, {logins} tokens", "OK", came if logins > 2 else "too few tokens"


def main() -> int:
    passwords = {name: f"the-secret-of-{name}" for name in ("ann", "ben", "dan")}
    on_kafka, issuer = "--kafka" in sys.argv, Issuer(algorithm="RS256")
    with (
        tempfile.TemporaryDirectory() as folder,
        secured(passwords, on_kafka=on_kafka, issuer=issuer) as broker,
    ):
        program = Path(folder) / "franz"
        subprocess.run(["go", "build", "-mod=mod", "-o", program, "."], cwd=HERE, check=True)
        done: list[tuple[str, str, str]] = []
        for mechanism, name in ((SCRAM, "ann"), (PLAIN, "ben"), (BEARER, "dan"), ("", "CN=carol")):
            environment = {
                "AUTHORITY": str(broker.files.authority),
                "KEY": str(broker.files.client),
                "BOOTSTRAP": broker.sasl if mechanism else broker.mutual,
                "MECHANISM": mechanism,
                "TOKEN_URL": issuer.token_url,
                "LOGIN_USER": name,
                "LOGIN_PASSWORD": passwords.get(name, ""),
            }
            franz = Franz(program, environment)
            done += steps(broker, name, name.removeprefix("CN="), franz)
            if mechanism == BEARER:
                done.append(stay(broker, name, franz))
            franz.close()
    wrong = [one for one in done if one[1] != one[2]]
    for what, expected, came in done:
        sys.stdout.write(f"{'ok ' if came == expected else 'BAD'} {what}: {came}\n")
    sys.stdout.write(f"{len(done) - len(wrong)} of {len(done)} as expected\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
