"""A string or one partition where several are expected: taken, or refused with what to write."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

import ottla.client
from ottla.client import Admin, AdminOptions, ClientError, Consumer, Producer, TopicPartition
from ottla.client.admin import parts
from ottla.client.arguments import checked_options, name_list, partition_list


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


@pytest.mark.parametrize("make", [Consumer, Producer, Admin])
def test_a_topic_is_no_options(make: type) -> None:
    """`Consumer(bootstrap, "topic")` is what users of other clients try first."""

    async def attempt() -> None:
        make("localhost:9092", "flights")

    with pytest.raises(ClientError, match=r"'flights' stands where .*Options belong: "):
        attempt().send(None)


def test_no_options_are_the_defaults() -> None:
    """And options stay what they are."""
    chosen = AdminOptions(client_id="x")
    assert checked_options(None, AdminOptions, "") == AdminOptions()
    assert checked_options(chosen, AdminOptions, "") is chosen


# What users call: the parts of `Admin`, and these.
FACES = {"Admin", "Consumer", "Producer", "TransactionalProducer", *parts.__all__}


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
