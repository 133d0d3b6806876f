"""Long requests as several short ones: nothing is lost, and the answers are one."""

import pytest
from rig.large_requests import growing

from ottla.broker.serving.portions import (
    DIVIDED,
    ONCE,
    REPEATED,
    Once,
    answer_once,
    division,
    edges,
    join,
    portions,
)
from ottla.wire.api import ApiKey
from ottla.wire.field import Field
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ottla.wire.notation import REQUESTS, RESPONSES


def group(name, topics):
    """A request for the offsets of topics, by their names and numbers of partitions."""
    return OffsetFetchRequestGroup(
        group_id=name,
        topics=[
            OffsetFetchRequestTopics(name=topic, partition_indexes=list(range(count)))
            for topic, count in topics.items()
        ],
    )


def answer_to(body):
    return OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(
                group_id=one.group_id,
                topics=[
                    OffsetFetchResponseTopics(
                        name=topic.name,
                        partitions=[
                            OffsetFetchResponsePartitions(partition_index=index)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in one.topics
                ],
            )
            for one in body.groups
        ]
    )


@pytest.mark.parametrize(
    "groups",
    [
        {"a": {"t": 1000}},
        {"a": {f"t{n}": 3 for n in range(300)}, "b": {"t": 1}},
        {f"g{n}": {"t": 1} for n in range(600)},
        {"a": {"t": 255, "u": 257, "v": 512}, "b": {}, "c": {"t": 300}},
    ],
    ids=["one topic", "many topics", "many groups", "mixed"],
)
def test_the_answers_to_portions_are_one_answer(groups):
    """As if the request had been served in one go, and no portion is longer than it may be."""
    body = OffsetFetchRequest(groups=[group(*each) for each in groups.items()])
    divided = division(ApiKey.OFFSET_FETCH, body)
    assert divided is not None
    whole = before = None
    for portion in portions(body, divided):
        leaves = sum(len(t.partition_indexes) for g in portion.groups for t in g.topics)
        assert leaves <= divided.most
        after = edges(portion, divided)
        if whole is None:
            whole = answer_to(portion)
        else:
            join(whole, answer_to(portion), divided, before, after)
        before = after
    assert whole == answer_to(body)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_of_a_group_in_any_portion_is_that_of_the_group(failing):
    """It has no partitions then, as if it had been asked for in one go."""
    body = OffsetFetchRequest(groups=[group("a", {"t": 700}), group("b", {"t": 1})])
    divided = division(ApiKey.OFFSET_FETCH, body)
    whole = before = None
    for number, portion in enumerate(portions(body, divided)):
        answer, after = answer_to(portion), edges(portion, divided)
        if number == failing:
            answer.groups[0] = OffsetFetchResponseGroup(group_id="a", error_code=16)
        if whole is None:
            whole = answer
        else:
            join(whole, answer, divided, before, after)
        before = after
    assert whole.groups == [
        OffsetFetchResponseGroup(group_id="a", error_code=16),
        *answer_to(body).groups[1:],
    ]


def test_a_short_request_is_not_divided():
    """Nor one without anything in its list."""
    body = OffsetFetchRequest(groups=[group("a", {"t": 200})])
    assert division(ApiKey.OFFSET_FETCH, body) is None
    assert division(ApiKey.OFFSET_FETCH, OffsetFetchRequest()) is None
    assert division(ApiKey.JOIN_GROUP, JoinGroupRequest()) is None


def test_a_resource_that_is_named_twice_is_described_once():
    """With the settings that either asks for; null asks for all, and so does an empty list."""
    body = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=keys)
            for name, keys in (
                ("a", ["x"]),
                ("b", None),
                ("a", ["y"]),
                ("b", ["z"]),
                ("c", ["x"]),
                ("c", []),
            )
        ]
    )
    assert list(answer_once(ApiKey.DESCRIBE_CONFIGS, body)) == []
    assert [(one.resource_name, one.configuration_keys) for one in body.resources] == [
        ("a", ["x", "y"]),
        ("b", None),
        ("c", None),
    ]


def test_a_partition_that_is_named_twice_has_its_producers_described_once():
    """Also where it is in two portions."""
    body = DescribeProducersRequest(
        topics=[
            TopicRequest(name="a", partition_indexes=[*range(200), *range(200)]),
            TopicRequest(name="a", partition_indexes=[7, 200]),
        ]
    )
    for _ in answer_once(ApiKey.DESCRIBE_PRODUCERS, body):
        pass
    assert [one.partition_indexes for one in body.topics] == [list(range(201))]


@pytest.mark.parametrize("version", [7, 8, 10])
def test_the_offset_of_a_partition_that_is_named_often_is_fetched_once(version):
    """Within a topic, and in two elements of one topic: an answer grows with what is committed."""
    kind = OffsetFetchRequestTopic if version < 8 else OffsetFetchRequestTopics
    topics = [
        kind(name="t", partition_indexes=[0] * 3_000 + [1]),
        kind(name="u", partition_indexes=[5]),
        kind(name="t", partition_indexes=[1, 2, 0]),
    ]
    if version < 8:
        body = OffsetFetchRequest(group_id="g", topics=topics)
    else:
        body = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    for _ in answer_once(ApiKey.OFFSET_FETCH, body):
        pass
    found = body.topics if version < 8 else body.groups[0].topics
    assert [(one.name, one.partition_indexes) for one in found] == [("t", [0, 1, 2]), ("u", [5])]


def fields_of(kind, path):
    """The fields of a path, each in the element of the one before."""
    found: list[Field] = []
    for name in path:
        (field,) = [each for each in kind.__fields__ if each.name == name]
        found.append(field)
        kind = field.element
    return found


def test_the_tables_name_lists_that_exist():
    """In request and response, as deep as each other."""
    for key, ways in DIVIDED.items():
        for way in ways:
            asked = fields_of(REQUESTS[key], way.asked)
            answers = fields_of(RESPONSES[key], way.answers)
            assert len(asked) == len(answers)
            assert {field.kind for field in asked + answers} == {"array"}
    for key, ways in ONCE.items():
        for way in ways:
            kind, once = REQUESTS[key], way
            while isinstance(once, Once):
                (field,) = fields_of(kind, (once.field,))
                kind, inner = field.element, once.inner
                names = {each.name for each in getattr(kind, "__fields__", ())}
                assert names >= {*once.names, *([inner] if isinstance(inner, str) else [])}
                once = inner
    for key, rule in REPEATED.items():
        for way in DIVIDED[key]:
            for names, field in zip(rule.names, fields_of(REQUESTS[key], way.asked), strict=True):
                own = {each.name for each in getattr(field.element, "__fields__", ())}
                assert own >= set(names) or field.element == "string"


def test_every_list_of_a_divided_request_is_in_a_portion():
    """Whatever a request of 1,000 elements asks for, its portions ask for, in its order."""
    for each in growing({key: REQUESTS[key].__versions__ for key in DIVIDED}):
        body = each.request(1_000)
        divided = division(each.api, body)
        if divided is None or divided.asked[: len(each.path)] != each.path:
            continue
        asked = [getattr(body, divided.asked[0])]
        got = [[one for part in portions(body, divided) for one in getattr(part, divided.asked[0])]]
        for name in divided.asked[1:]:
            asked = [getattr(one, name) for one in asked for one in one]
            got = [getattr(one, name) for one in got for one in one]
        assert [one for own in asked for one in own] == [one for own in got for one in own]
