"""franz-go's own tests that need a broker: produce, fetch, groups, transactions, share groups."""

from suites import go_tests
from suites.result import Result
from suites.suite import Side, Suite

_PACKAGE = "github.com/twmb/franz-go/pkg/kgo"
# Those of its tests that speak with a cluster; the others say nothing about it.
_TESTS = (
    "Test848RegexBrokerResolves",
    "TestAddRemovePartitions",
    "TestClient_Produce",
    "TestClient_ProduceLargeMessages",
    "TestConsumeMaxDecompressBatchBytes",
    "TestConsumeRegex",
    "TestConsumeRegexShareSkipsInternal",
    "TestConsumeTopicRetrieval",
    "TestConsumeTopicRetrieval_Many",
    "TestDirectPartitionPurge",
    "TestGroupETL",
    "TestGroupSimple",
    "TestHookPollStart",
    "TestIssue1034",
    "TestIssue325",
    "TestIssue337",
    "TestIssue434",
    "TestIssue523",
    "TestIssue648",
    "TestIssue769",
    "TestIssue810",
    "TestIssue831",
    "TestIssue865",
    "TestIssueFetchLargerThanBrokerMaxReadBytes",
    "TestIssueProduceBrokerTooOldFailsRecords",
    "TestIssueProduceSyncManualPartitionNegativeDoesNotPanic",
    "TestPauseIssue489",
    "TestPauseIssueOct2023",
    "TestPing",
    "TestPooling",
    "TestShareGroup",
    "TestShareGroupAckOnClose",
    "TestShareGroupETL",
    "TestShareGroupOffsetsAdmin",
    "TestTxnEtl",
    "TestUnknownGroupOffsetFetchPinned",
)


def _run(side: Side) -> list[Result]:
    pattern = f"^({'|'.join(_TESTS)})$"
    env = {
        "KGO_SEEDS": side.bootstrap,
        "KGO_TEST_RF": "3",
        "KGO_TEST_RECORDS": "50000",
        "KGO_TEST_UNSAFE": "1",
    }
    return go_tests.run(_PACKAGE, pattern, side.folder / "kgo.log", env=env)


SUITE = Suite(
    name="kgo",
    title="franz-go: tests of the client against a cluster",
    source=f"Go: github.com/twmb/franz-go {go_tests.version('github.com/twmb/franz-go')}",
    needs=("go",),
    fetch=go_tests.fetch,
    run=_run,
)
