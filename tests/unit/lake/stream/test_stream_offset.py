"""A stream's offset survives Spark's checkpoint, and the same offset is the same text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import OttlaError
from ottla.lake.source.cluster import LogPosition
from ottla.lake.source.stream_offset import Key, StreamOffset, from_json, to_json

places = st.dictionaries(
    st.builds(Key, st.sampled_from("ab"), st.integers(0, 11)),
    st.builds(LogPosition, st.integers(0, 2**62), st.integers(-1, 9)),
)


@given(places)
def test_json_and_back(found: dict[Key, LogPosition]) -> None:
    offset = StreamOffset({"a": None, "b": "id of b"}, found)
    text = json.dumps(to_json(offset))

    assert from_json(json.loads(text)) == offset
    turned = StreamOffset(dict(reversed(offset.ids.items())), dict(reversed(found.items())))
    assert json.dumps(to_json(turned)) == text
    # Spark gives back what it was given.
    assert json.dumps(json.loads(text)) == text


@pytest.mark.parametrize("content", [{}, {"0": 5}, {"topics": {"a": {"partitions": {"x": {}}}}}])
def test_offsets_of_others_are_refused(content: dict[str, object]) -> None:
    with pytest.raises(OttlaError, match="use a new checkpoint folder"):
        from_json(content)
