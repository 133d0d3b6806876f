"""A string or one partition where several are expected: taken, or refused with what to write."""

import builtins
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator

import pytest

import ottla.client
from ottla.client import (
    Admin,
    AdminOptions,
    ClientError,
    Consumer,
    ConsumerOptions,
    Producer,
    ProducerOptions,
    TopicPartition,
    sync,
)
from ottla.client.common.arguments import checked_options, name_list, partition_list
from ottla.client.common.other_names import _ADMIN, _CONSUMER, _PRODUCER


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("flights", ["flights"]), (["a", "b"], ["a", "b"]), ((), []), ({"a": 1}, ["a"])],
)
def test_a_string_is_one_name(given: str, wanted: list[str]) -> None:
    """And anything else that is iterable is several."""
    assert name_list(given) == wanted


def test_a_partition_is_one_partition() -> None:
    """Although it is a tuple; pairs will do."""
    one = TopicPartition("t", 0)
    assert partition_list(one) == [one]
    assert partition_list([one, ("t", 1)]) == [one, TopicPartition("t", 1)]
    assert partition_list([]) == []


@pytest.mark.parametrize("given", ["flights", ["flights"], ["ab", "cd"]])
def test_topics_are_no_partitions(given: str) -> None:
    """The error says what to write, and how whole topics are read."""
    with pytest.raises(ClientError, match=r"TopicPartition\(topic, number\).*subscribe"):
        partition_list(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (Producer, {"lingerms": 5}, r"Producer\(\) takes no 'lingerms'; did you mean linger_ms\?"),
        (Producer, {"batch_bytes": 5}, r"did you mean batch_size\?"),
        (Producer, {"group_id": "g"}, r"Producer\(\) takes no 'group_id'"),
        (Consumer, {"groupid": "g"}, r"did you mean group_id\?"),
        (Consumer, {"read_committed": True}, r"did you mean isolation_level\?"),
        (Consumer, {"consumer_timeout_ms": 5}, r"'consumer_timeout_ms'; poll\(timeout=…\)"),
        (Consumer, {"group_protocol": "consumer"}, "groups of this client are of the classic"),
        (Consumer, {"client_rack": "a"}, r"takes no 'client_rack'; it takes auto_commit_interval"),
        (Producer, {"max_block_ms": 5}, r"did you mean delivery_timeout_ms\?"),
        (Consumer, {"group": "g", "group_id": "g"}, "group is short for group_id"),
        (Admin, {"timeout": 5}, r"Admin\(\) takes no 'timeout'"),
    ],
)
def test_a_wrong_keyword_is_named_with_the_nearest_one(
    make: type, options: dict[str, object], words: str
) -> None:
    with pytest.raises(TypeError, match=words) as refused:
        make("localhost:9092", **options)
    assert len(refused.traceback) <= 6


@pytest.mark.parametrize(
    ("kind", "options"),
    [(sync.Producer, ProducerOptions), (sync.Consumer, ConsumerOptions), (Admin, AdminOptions)],
)
def test_each_option_has_a_default_or_is_short_for_one(kind: type, options: type) -> None:
    """The typed dictionary is the one declaration; defaults and `help` follow it."""
    home = importlib.import_module(options.__module__)
    short = {"group", "compression"}
    assert options.__annotations__.keys() - short == home.DEFAULTS.keys()


def test_names_of_other_clients_are_answered_with_ours() -> None:
    """A table of names would rot: what it says to call is there."""
    for kind, names in ((sync.Producer, _PRODUCER), (sync.Consumer, _CONSUMER)):
        for name, instead in names.items():
            assert not hasattr(kind, name)
            call = instead.partition("(")[0]
            assert (
                not call.isidentifier() or hasattr(kind, call) or call in ("Admin", *dir(builtins))
            )
    with sync.Admin("localhost:1") as admin:
        for name, instead in _ADMIN.items():
            part, _, call = instead.partition("(")[0].partition(".")
            assert hasattr(getattr(admin, part), call)
            with pytest.raises(AttributeError, match=re.escape(instead)):
                getattr(admin, name)


def test_no_options_are_the_defaults() -> None:
    """And options that are given overrule them."""
    defaults = AdminOptions(client_id="x", request_timeout_ms=5)
    given: AdminOptions = {"client_id": "y"}
    assert checked_options({}, defaults, AdminOptions) == defaults
    assert checked_options(given, defaults, AdminOptions) == {**defaults, **given}


# What users call: the parts of `Admin`, and these.
FACES = {"Admin", "Consumer", "Producer"} | {
    type(part).__name__
    for name, part in vars(ottla.client.Admin("localhost:1")).items()
    if name[0] != "_"
}


def public_methods() -> Iterator[tuple[str, inspect.Signature]]:
    """Every method of the client's classes that users call."""
    for found in pkgutil.walk_packages(ottla.client.__path__, "ottla.client."):
        module = importlib.import_module(found.name)
        for kind in vars(module).values():
            if not inspect.isclass(kind) or kind.__module__ != module.__name__:
                continue
            if kind.__name__ not in FACES:
                continue
            for name, method in inspect.getmembers(kind, inspect.isfunction):
                if not name.startswith("_") or name == "__init__":
                    yield f"{kind.__module__}.{kind.__name__}.{name}", inspect.signature(method)


def test_no_call_takes_a_string_for_a_list_of_its_letters() -> None:
    """Whatever takes several names or partitions takes one as well, or refuses it with a reason."""
    unguarded = {
        f"{where}({name}: {parameter.annotation})"
        for where, signature in public_methods()
        for name, parameter in signature.parameters.items()
        for told in [str(parameter.annotation)]
        if "Iterable[str]" in told or "Iterable[ottla.base.ids.TopicPartition" in told
        if not told.startswith(("str |", "ottla.base.ids.TopicPartition |"))
    }
    assert unguarded == set()
