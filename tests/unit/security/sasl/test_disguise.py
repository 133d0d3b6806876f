"""What unknown users are shown cannot be told from what known ones have, by counting."""

import random
from collections import Counter

from ottla.security.sasl.disguise import Disguise, SaltKind, kind_of
from ottla.security.sasl.scram_keys import ScramCredential, ScramMechanism
from ottla.security.sasl.scram_server import ScramServer

SHA_256 = ScramMechanism.SCRAM_SHA_256
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
NAMES = [f"user {number}" for number in range(4000)]
# The 0.999 quantile of chi-squared is below this for up to 63 degrees of freedom.
UNLIKELY = 104


def javas(chance: random.Random) -> bytes:
    """As Java's ScramFormatter makes them: a number of 130 bits in base 36."""
    number, text = chance.getrandbits(130), ""
    while number:
        number, digit = divmod(number, 36)
        text = LETTERS[digit] + text
    return text.encode()


def credentials(chance: random.Random, count: int) -> list[ScramCredential]:
    """Users of several programs: a third of them Java's, a few with more iterations."""
    found = []
    for _ in range(count):
        if chance.random() < 0.3:
            salt, iterations = javas(chance), chance.choice([4096, 8192])
        else:
            salt, iterations = chance.randbytes(16), 8192
        found.append(ScramCredential(salt, iterations, b"", b""))
    return found


def shown(disguise: Disguise) -> list[ScramCredential]:
    return [disguise.credential(SHA_256, name) for name in NAMES]


def differ(some: list[object], others: list[object]) -> float:
    """Chi-squared of two samples of the same kind of thing; rare things are put together."""
    counts = Counter(some) + Counter(others)
    common = {thing for thing, count in counts.items() if count >= 20}
    one = Counter(thing if thing in common else "rare" for thing in some)
    two = Counter(thing if thing in common else "rare" for thing in others)
    share = len(others) / len(some)
    return sum(
        (two[thing] - one[thing] * share) ** 2 / ((one[thing] + two[thing]) * share)
        for thing in one | two
    )


def test_sizes_and_iterations_are_as_frequent_as_among_users() -> None:
    """A name with a rare kind of salt is no more likely to be a user's than any other."""
    known = credentials(random.Random(1), len(NAMES))
    unknown = shown(Disguise.like(b"secret", known))
    assert (
        differ(
            [(len(each.salt), each.iterations) for each in known],
            [(len(each.salt), each.iterations) for each in unknown],
        )
        < UNLIKELY
    )


def test_bytes_of_salts_are_as_frequent_as_among_users() -> None:
    """At each place: a number in base 36 does not begin with any digit alike."""
    known = credentials(random.Random(2), len(NAMES))
    unknown = shown(Disguise.like(b"secret", known))
    for size in (16, 25, 26):
        mine = [each.salt for each in known if len(each.salt) == size]
        made = [each.salt for each in unknown if len(each.salt) == size]
        for place in range(size):
            # Of random bytes their upper halves, of letters all.
            shift = 4 if size == 16 else 0
            assert (
                differ([each[place] >> shift for each in mine], [e[place] >> shift for e in made])
                < UNLIKELY
            )


def test_a_name_is_shown_the_same_each_time() -> None:
    """And another name something else; another secret shows other things."""
    first = shown(Disguise(b"secret"))
    assert first == shown(Disguise(b"secret"))
    assert len({each.salt for each in first}) == len(NAMES)
    assert not {each.salt for each in first} & {each.salt for each in shown(Disguise(b"other"))}


def test_new_users_hardly_change_what_unknown_ones_are_shown() -> None:
    """One user more of a hundred: less than a twentieth of the names."""
    known = credentials(random.Random(3), 100)
    before = shown(Disguise.like(b"secret", known))
    more = ScramCredential(bytes(16), 8192, b"", b"")
    after = shown(Disguise.like(b"secret", [*known, more]))
    changed = sum(one != other for one, other in zip(before, after, strict=True))
    assert changed < len(NAMES) / 20


def test_a_name_that_was_shown_a_salt_keeps_it_when_users_are_added() -> None:
    """The first user of all, one of another kind, and a thousand."""
    disguise = Disguise(b"secret")
    before = shown(disguise)
    chance = random.Random(5)
    for count in (1, 2, 1000):
        disguise = disguise.now_like(credentials(chance, count))
        assert shown(disguise) == before


def test_answers_to_known_and_unknown_users_are_alike() -> None:
    """Fields, nonces and their sizes; salts stay, nonces change."""
    chance = random.Random(4)
    known = dict(zip(NAMES, credentials(chance, 500), strict=False))
    disguise = Disguise.like(b"secret", known.values())
    answers: dict[bool, list[object]] = {True: [], False: []}
    for name in NAMES[:1000]:
        salts = set()
        for _ in range(2):
            nonce = chance.randbytes(24)
            server = ScramServer(SHA_256, lambda user, _: known.get(user), nonce, disguise)
            first = server.step(b"n,,n=" + name.encode() + b",r=mine").decode()
            nonce_field, salt_field, iterations = first.split(",")
            salts.add(salt_field)
            answers[name in known].append((len(nonce_field), len(salt_field), iterations))
        assert len(salts) == 1
    assert differ(answers[True], answers[False]) < UNLIKELY


def test_kinds_are_those_of_salts() -> None:
    """A salt of letters that is no number of Java's is one of bytes."""
    assert kind_of(b"0" * 25, 4096) == SaltKind(0, 4096)
    assert kind_of(b"0" * 16, 4096) == SaltKind(16, 4096)
    assert kind_of(bytes(25), 4096) == SaltKind(25, 4096)
    assert kind_of(b"", 1) == SaltKind(0, 1)
    assert "secret" not in repr(Disguise(b"secret"))
