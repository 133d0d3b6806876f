"""Failures that are understood: the cause in a sentence, by suite and test.

A note stands beside its test where that fails on either side; a failure without a note shows the
suite's own words.
"""

_NO_SASL = "Needs a SASL listener on port 9093, which neither side has here."
_MADE_AGAIN = (
    "With auto.create.topics.enable the test's own question about the deleted topic makes it again."
)
NOTES: dict[tuple[str, str], str] = {
    ("kafka-go", "TestDescribeUserScramCredentials"): (
        "Kafka still lists the user that the test has just deleted."
    ),
    ("kafka-go", "TestUnsupportedSASLMechanism"): _NO_SASL,
    ("kafka-go", "TestWriter/writing_a_message_with_SASL_Plain_authentication"): _NO_SASL,
    ("kafka-go", "TestConn/test_delete_topics"): _MADE_AGAIN,
    ("kafka-go", "TestConn/test_delete_topics_with_an_invalid_topic"): _MADE_AGAIN,
    ("kafka-go", "TestReaderReadCompactedMessage"): (
        "Asks for segments of 200 bytes; both refuse less than 1 MiB, as Kafka has since 4.0."
    ),
    ("kafka-go", "TestReaderConsumerGroup/consumer_group_rebalance"): (
        "Deals 24 records to three partitions and wants 12 for each of two readers: only a "
        "rebalance in between, which delivers records twice, lets it pass."
    ),
    ("kafka-go", "TestClientElectLeaders"): (
        "Waits five seconds for an election, which a busy machine may take longer for."
    ),
    ("kafka-go", "TestRebalanceTooManyConsumers"): (
        "Waits ten seconds for a rebalance, which a busy machine may take longer for."
    ),
    ("streams-eos", "no produce error is retried"): (
        "Kafka refuses a batch with CONCURRENT_TRANSACTIONS while the last transaction's end is "
        "being written, and those that follow it as out of order; Ottla sends all of them back "
        "with the first error."
    ),
    ("kafka-python", "test_admin_integration: test_create_partitions"): (
        "Places new partitions on broker 0; both sides count their brokers from 1."
    ),
    ("kafka-python", "test_consumer_integration: test_group"): (
        "Waits 15 seconds for four consumers to settle, which a busy machine may take longer for."
    ),
    ("kafka-python", "test_admin_integration: test_describe_metadata_quorum"): (
        "Ottla has no quorum of controllers to describe."
    ),
}


def note(suite: str, test: str) -> str:
    """The note for a test, or for the test it is a part of."""
    while test:
        if found := NOTES.get((suite, test)):
            return found
        test = test.rpartition("/")[0]
    return ""
