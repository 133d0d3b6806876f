"""What a broker answers to requests about users' SCRAM credentials, as lines to be compared."""

from collections.abc import Iterable
from typing import NamedTuple

from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.wire.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from tests.integration.protocol.security.pair import Ports, until


class _Set(NamedTuple):
    name: str
    mechanism: int = 1
    iterations: int = 4096
    salt: bytes = b"salt"
    hashed: bytes | None = None


class _Drop(NamedTuple):
    name: str
    mechanism: int = 1


_Change = _Set | _Drop
_HASH_BYTES = {1: 32, 2: 64}
# Each altered in a request of its own, in this order.
_ALTERED: dict[str, tuple[_Change, ...]] = {
    "nothing": (),
    "one": (_Set("one"),),
    "one again": (_Set("one", iterations=8192),),
    "a first mechanism": (_Set("both"),),
    "a second mechanism": (_Set("both", 2),),
    "several users": (_Set("u1"), _Set("u2", 2), _Set("u3")),
    "iterations, few": (_Set("bad", iterations=4095),),
    "iterations, none": (_Set("bad", iterations=0),),
    "iterations, negative": (_Set("bad", iterations=-1),),
    "iterations, most": (_Set("most", iterations=16_384),),
    "iterations, many": (_Set("bad", iterations=16_385),),
    "salt, one byte": (_Set("salt1", salt=b"s"),),
    "salt, long": (_Set("salt2", salt=bytes(1000)),),
    "mechanism 0": (_Set("bad", 0),),
    "mechanism 3": (_Set("bad", 3),),
    "mechanism -1": (_Set("bad", -1),),
    "no name": (_Set(""),),
    "no name, mechanism 3": (_Set("", 3),),
    "no name, few": (_Set("", iterations=1),),
    "mechanism 3, few": (_Set("bad", 3, 1),),
    "a name with signs": (_Set("a b,c=d/é*%"),),
    "twice": (_Set("dup"), _Set("dup")),
    "twice, others": (_Set("dup"), _Set("dup"), _Set("fine")),
    "twice, mechanism 3": (_Set("dup", 3), _Set("dup", 3)),
    "twice, few": (_Set("dup", iterations=1), _Set("dup")),
    "set and dropped": (_Set("both2"), _Drop("both2")),
    "bad mechanism and good": (_Set("mixed", 3), _Set("mixed")),
    "few and good": (_Set("mixed", 2, 1), _Set("mixed")),
    "drop unknown": (_Drop("none"),),
    "drop unknown mechanism": (_Drop("u1", 2),),
    "drop mechanism 3": (_Drop("u1", 3),),
    "drop mechanism 0": (_Drop("u1", 0),),
    "drop no name": (_Drop(""),),
    "drop no name, mechanism 3": (_Drop("", 3),),
    "drop twice": (_Drop("u1"), _Drop("u1")),
    "drop": (_Drop("u1"),),
    "drop again": (_Drop("u1"),),
    "drop one, keep one": (_Drop("both", 2),),
    "drop unknown and another": (_Drop("u2"), _Drop("u2", 2)),
    "a short hash": (_Set("x-4", hashed=bytes(31)),),
    "a long hash": (_Set("x-4", hashed=bytes(64)),),
}
# What is answered otherwise on purpose, see docs/reference/differences.md: by Ottla, and by Kafka.
DIFFERENT: dict[str, tuple[tuple[_Change, ...], str, str]] = {
    "two mechanisms at once": ((_Set("x-1"), _Set("x-1", 2)), "NONE", "DUPLICATE_RESOURCE"),
    "one set, one dropped": ((_Set("x-1"), _Drop("x-1", 2)), "NONE", "RESOURCE_NOT_FOUND"),
    "a good and a bad one": (
        (_Set("x-2"), _Set("x-2", 3)),
        "UNSUPPORTED_SASL_MECHANISM",
        "DUPLICATE_RESOURCE",
    ),
    "no salt": ((_Set("x-3", salt=b""),), "UNACCEPTABLE_CREDENTIAL", "NONE"),
    "no hash": ((_Set("x-3", hashed=b""),), "UNACCEPTABLE_CREDENTIAL", "UNKNOWN_SERVER_ERROR"),
}
_DESCRIBED: dict[str, list[str] | None] = {
    "null": None,
    "none": [],
    "one": ["both"],
    "two": ["both", "one"],
    "unknown": ["nobody"],
    "twice": ["both", "both"],
    "three times": ["both", "both", "both", "one"],
    "unknown twice": ["nobody", "nobody"],
    "no name": [""],
    "no name twice": ["", ""],
    "mixed": ["both", "nobody", "one", "one"],
}


def transcript(ports: Ports) -> list[str]:
    """Every change and description."""
    client = ports.admin()
    lines = []
    for what, changes in _ALTERED.items():
        lines.append(f"alter {what}: {_altered(client, changes)}")
    # A broker learns the last change a little after the controller.
    last = [UserName(name="u1"), UserName(name="both")]
    asked = DescribeUserScramCredentialsRequest(users=last)
    until(
        lambda: sorted(
            (one.user, len(one.credential_infos)) for one in client.call(asked, 0).results
        ),
        lambda found: found == [("both", 1), ("u1", 0)],
    )
    return [
        *lines,
        *(f"describe {what}: {_described(client, names)}" for what, names in _DESCRIBED.items()),
    ]


def differing(ports: Ports) -> dict[str, str]:
    """The codes of the changes that are answered otherwise on purpose."""
    with ports.admin() as client:
        return {
            what: _altered(client, changes)[0].split()[1]
            for what, (changes, _, _) in DIFFERENT.items()
        }


def _altered(client: WireClient, changes: Iterable[_Change]) -> list[str]:
    request = AlterUserScramCredentialsRequest()
    for one in changes:
        if isinstance(one, _Drop):
            request.deletions.append(
                ScramCredentialDeletion(name=one.name, mechanism=one.mechanism)
            )
            continue
        hashed = bytes(_HASH_BYTES.get(one.mechanism, 32)) if one.hashed is None else one.hashed
        request.upsertions.append(
            ScramCredentialUpsertion(
                name=one.name,
                mechanism=one.mechanism,
                iterations=one.iterations,
                salt=one.salt,
                salted_password=hashed,
            )
        )
    answer = client.call(request, 0)
    return sorted(f"{one.user!r} {ErrorCode(one.error_code).name}" for one in answer.results)


def _described(client: WireClient, names: list[str] | None) -> list[str]:
    users = None if names is None else [UserName(name=name) for name in names]
    answer = client.call(DescribeUserScramCredentialsRequest(users=users), 0)
    found = [
        f"{one.user!r} {ErrorCode(one.error_code).name} "
        + str(sorted((info.mechanism, info.iterations) for info in one.credential_infos))
        for one in answer.results
    ]
    return [ErrorCode(answer.error_code).name, *sorted(found)]
