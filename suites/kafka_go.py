"""segmentio/kafka-go's tests that speak with a broker, at localhost:9092."""

from suites import go_tests
from suites.result import Result
from suites.suite import AUTHORIZER, Side, Suite

_PACKAGE = "github.com/segmentio/kafka-go"
# Those of its tests that need a broker, by the beginnings of their names.
_TESTS = (
    *("Client", "Conn", "Consumer", "Dialer", "OffsetFetchRequest", "Reader", "Rebalance"),
    *("BatchDontExpectEOF", "CloseLeavesGroup", "WriteV2RecordBatch", "Writer$"),
    *("AlterUserScram", "DescribeUserScram", "UnsupportedSASL", "ErrorCannotConnect"),
)
# Its project skips them too: a connection to a partition is not the byte stream they test.
_ENVIRONMENT = {"KAFKA_SKIP_NETTEST": "1", "KAFKA_VERSION": "3.7.0"}
# These look up a coordinator by a half-made object and end the whole process: with any broker.
_BROKEN = (
    "consumer_group_commits_on_close",
    "verify_offset_committed",
    "verify_offset_committed_when_using_interval_committer",
)


def _run(side: Side) -> list[Result]:
    skip = f"-skip=^TestReaderConsumerGroup$/^({'|'.join(_BROKEN)})$"
    log = side.folder / "kafka-go.log"
    return go_tests.run(
        _PACKAGE, f"^Test({'|'.join(_TESTS)})", log, env=_ENVIRONMENT, flags=(skip,)
    )


SUITE = Suite(
    name="kafka-go",
    title="kafka-go: tests of the client against a broker",
    source=f"Go: {_PACKAGE} {go_tests.version(_PACKAGE)}",
    needs=("go",),
    fetch=go_tests.fetch,
    run=_run,
    # As in its own project's test environment.
    settings={
        **AUTHORIZER,
        "auto.create.topics.enable": "true",
        "message.max.bytes": "200000000",
    },
    brokers=1,
    port=9092,
)
