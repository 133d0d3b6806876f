"""Topics that suites want to find, made before they start."""

from confluent_kafka.admin import AdminClient, NewTopic

_PATIENCE_S = 120.0


def create(bootstrap: str, *names: str, partitions: int = 1, **settings: str) -> None:
    """Make topics of three replicas, and wait until all can be written to."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    config = {name.replace("_", "."): value for name, value in settings.items()}
    wanted = [NewTopic(name, partitions, 3, config=config) for name in names]
    made = admin.create_topics(wanted, operation_timeout=60, request_timeout=90)
    for future in made.values():
        future.result(_PATIENCE_S)
