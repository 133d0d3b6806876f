"""`ottla undo` lists changes by any client, shows what it would do, and does it."""

from .ottla_command import Command


def test_a_setting_goes_back_after_a_preview(run: Command, name: str) -> None:
    """Nothing is changed without --yes, and an undone change has nothing left to undo."""
    run("topic", "create", name, "-s", "retention.ms=7000")
    run("config", "set", "topic", name, "retention.ms=1000")
    changes = run("undo", "-o", "json").json
    change = next(one for one in changes if one["change"] == f"settings of topic {name}")
    assert change["undo"] == "sets retention.ms=7000"
    assert "ottla-cli" in change["by"]
    shown = run("undo", change["id"]).out
    assert "Nothing is changed yet; the same with --yes does it." in shown
    assert run("config", "get", "topic", name, "retention.ms", "-o", "json").json[0]["value"] == (
        "1000"
    )
    assert "Undone." in run("undo", change["id"], "--yes").out
    assert run("config", "get", "topic", name, "retention.ms", "-o", "json").json[0]["value"] == (
        "7000"
    )
    assert "Nothing to do: the values are as they were." in run("undo", change["id"]).out


def test_a_deleted_topic_comes_back_with_its_records(run: Command, name: str) -> None:
    """It has the same id, and a name that is in use is named as the obstacle."""
    run("topic", "create", name)
    run("produce", name, stdin="hello\n")
    before = run("topic", "describe", name, "-o", "json").json
    run("topic", "delete", name, "--yes")
    changes = run("undo", "-o", "json").json
    change = next(one for one in changes if one["change"] == f"deletion of topic {name}")
    assert change["undo"].startswith("restores 1 partition, ")
    run("topic", "create", name)
    assert f"a new topic is named {name}" in run("undo", change["id"]).out
    assert f"a new topic is named {name}" in run.refused("undo", change["id"], "--yes")
    run("topic", "delete", name, "--yes")
    assert "Undone." in run("undo", change["id"], "--yes").out
    after = run("topic", "describe", name, "-o", "json").json
    assert after["topic_id"] == before["topic_id"]
    assert run("consume", name, "-n", "1").out == "hello\n"


def test_unknown_changes_are_refused(run: Command) -> None:
    """The error names the command that lists them."""
    assert "`ottla undo` lists those there are" in run.refused("undo", "no-such-change")
