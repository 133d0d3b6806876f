"""Options of the lake's functions: a value of a wrong type is refused before anything is done."""

from pathlib import Path
from typing import Any

import pytest

import ottla.lake
from ottla.base.errors import WrongWords
from ottla.lake.job.options import ChangelogOptions, LoadOptions
from ottla.lake.model.option import filled
from ottla.lake.write.publish import PublishOptions


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("accept_loss", "no", "accept_loss is 'no', and not True or False"),
        ("skip_unreadable", 1, "skip_unreadable is 1, and not True or False"),
        ("start", 5, "start is 5, and not a string"),
        ("group", "", "group is empty: write one, or leave it out"),
        ("override", "", "override is empty: write one, or leave it out"),
        ("group", ["a"], "group is a value of type list, and not a string"),
        ("row_group_rows", True, "row_group_rows is True, and not a whole number above 0"),
        ("row_group_rows", 0, "row_group_rows is 0, and not a whole number above 0"),
        ("conf", ["a=b"], "conf is a value of type list, and not a mapping of names to strings"),
        ("client", "sasl.password=hunter2", "client is a value of type str, and not a mapping"),
        ("client", {"sasl.password": 5}, "client is a value of type dict, and not a mapping"),
        ("config", {"sasl.password": "hunter2"}, "config is a value of type dict, and not a str"),
        ("decode", "json", "decode is a value of type str, and not a Decode or a mapping"),
        ("watch", print, "and not an Observer"),
        ("runner", "here", "runner is 'here', and not a Runner"),
    ],
)
def test_wrong_type_is_refused_and_no_secret_is_shown(name: str, value: Any, said: str) -> None:
    given: Any = {name: value}
    with pytest.raises(WrongWords) as error:
        filled(LoadOptions, given)
    assert said in error.value.message
    assert "hunter2" not in error.value.message


def test_right_types_are_accepted(tmp_path: Path) -> None:
    """A path may stand for a string; None is the default."""
    given: Any = {
        "config": tmp_path / "client.properties",
        "columns": {"id": "int64"},
        "decode": {"value": "json"},
        "runner": ottla.lake.run_here,
        "accept_loss": None,
        "spark_session": object(),
    }
    found = filled(LoadOptions, given)
    assert found["accept_loss"] is False
    assert filled(ChangelogOptions, {"buckets": 4})["buckets"] == 4


def test_publish_refuses_wrong_types_too() -> None:
    given: Any = {"transaction_records": 0}
    with pytest.raises(WrongWords, match="transaction_records is 0"):
        filled(PublishOptions, given)
    given = {"pace": 5}
    with pytest.raises(WrongWords, match="pace is 5, and not a PublishPace"):
        filled(PublishOptions, given)
