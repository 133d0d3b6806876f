"""The administration of plain calls has what the asynchronous one has, visibly."""

import inspect

import pytest

from ottla.client import Admin
from ottla.client.sync import admin as plain

# The classes of `admin.topics` and so on, by name.
PARTS = {
    type(part).__name__: type(part)
    for name, part in vars(Admin("localhost:1")).items()
    if name[0] != "_"
}


def calls(part: type) -> list[str]:
    """Public coroutine functions."""
    return sorted(
        name
        for name, value in vars(part).items()
        if inspect.iscoroutinefunction(value) and not name.startswith("_")
    )


@pytest.mark.parametrize("name", PARTS)
def test_each_part_has_its_twin_of_plain_calls(name: str) -> None:
    """A call that is added to one and forgotten in the other is found here."""
    asynchronous, twin = PARTS[name], getattr(plain, name)
    assert calls(asynchronous) == sorted(n for n in vars(twin) if not n.startswith("_"))
    assert calls(asynchronous) != []


def test_the_parts_are_those_of_the_admin() -> None:
    """Every part can be reached from an `Admin`, by the same name on both sides."""
    with plain.Admin("localhost:1") as admin:
        found = {type(part).__name__: name for name, part in vars(admin).items() if name[0] != "_"}
        twins = {
            type(part).__name__: name for name, part in vars(admin._admin).items() if name[0] != "_"
        }
    assert found.keys() == PARTS.keys()
    assert found == twins


def test_help_and_dir_show_what_a_call_does() -> None:
    """Names, parameters and documentation are those of the asynchronous method."""
    with plain.Admin("localhost:1") as admin:
        create = admin.topics.create
        assert {"create", "delete", "describe"} <= set(dir(admin.topics))
    assert create.__doc__ == "Create one topic and wait until its partitions have leaders."
    assert list(inspect.signature(create).parameters) == [
        *("name", "partitions", "replication_factor", "config"),
    ]
