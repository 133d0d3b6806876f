"""How a driver and its tasks are let into a cluster: what travels between them has no secret.

The path of a file of settings travels with the work, and each machine reads the file that it has
there. Only a DataFrame's own `kafka.…` options travel themselves: inside of pickled readers and
writers, which stand in no plan.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NoReturn

from ottla.base.secret_options import CONFIG_VARIABLE
from ottla.client.common.settings import check_names
from ottla.client.connection.security import ClientConfig, read_config

BOOTSTRAP = "kafka.bootstrap.servers"
_CLIENT = "kafka."


@dataclass(frozen=True, slots=True)
class ClientAccess:
    """Can be pickled; the repr has no secret. Without anything it is what OTTLA_CONFIG says."""

    config: str | None = None  # The path of a file of settings.
    # Single settings by Kafka's names; they overrule the file.
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def client_config(self) -> ClientConfig:
        """What a client on this machine is given. Raises OttlaError."""
        if not self.settings:
            return None if self.config is None else found_here(self.config)
        path = self.config or os.environ.get(CONFIG_VARIABLE)
        given = read_config(found_here(path)) if path else {}
        return {**given, **self.settings}


@dataclass(frozen=True, slots=True)
class Brokers:
    """A cluster, and how its clients are let in. Travels with tasks; the repr has no secret."""

    bootstrap: str
    access: ClientAccess = field(default_factory=ClientAccess)


# `host:port,…` alone is a cluster whose clients read what OTTLA_CONFIG names.
Bootstrap = str | Brokers


def brokers_of(
    bootstrap: str, config: str | None = None, client: Mapping[str, str] | None = None
) -> Brokers:
    """The cluster of a call, with its settings, else those that OTTLA_CONFIG names now.

    Raises ClientError for a setting that no client of Kafka has.
    """
    check_names(client or {})
    path = os.path.abspath(config) if config else config_of_process()
    return Brokers(bootstrap, ClientAccess(path, dict(client or {})))


def as_brokers(bootstrap: Bootstrap) -> Brokers:
    """The cluster, as a value of its own."""
    return bootstrap if isinstance(bootstrap, Brokers) else Brokers(bootstrap)


def require_known(
    given: Iterable[str],
    names: Sequence[str],
    wrong: Callable[[str], NoReturn],
    passed_over: Iterable[str] = (),
) -> None:
    """Call `wrong` with the nearest name where an option of a DataFrame has none of the `names`.

    `given` are in lower case. `kafka.…` are settings of a client.
    """
    known = {name.lower(): name for name in names}
    for name in set(given) - known.keys() - {one.lower() for one in passed_over}:
        if not name.startswith(_CLIENT):
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            best = f"did you mean {known[near[0]]}? The" if near else "the"
            wrong(f"there is no option {name!r}; {best} options are {', '.join(names)}, kafka.…")


def access_of(options: Mapping[str, str]) -> ClientAccess:
    """What options of a DataFrame say, with their names in lower case.

    Raises ClientError for one that no client of Kafka has.
    """
    settings = {
        name.removeprefix(_CLIENT): value
        for name, value in options.items()
        if name.startswith(_CLIENT) and name != BOOTSTRAP
    }
    check_names(settings)
    return ClientAccess(options.get("config"), settings)


def bootstrap_of(options: Mapping[str, str]) -> str:
    """The cluster that options of a DataFrame name, with their names in lower case."""
    return options.get(BOOTSTRAP) or "localhost:9092"


def config_of_process() -> str | None:
    """The path of the file that this process's clients read."""
    path = os.environ.get(CONFIG_VARIABLE)
    return os.path.abspath(path) if path else None


def found_here(path: str) -> str:
    """Where this machine has the driver's file `path`.

    Under the same path; else among the files that Spark sent here, by its name; else where
    OTTLA_CONFIG of this process says.
    """
    if os.path.exists(path):
        return path
    sent = _sent_with_spark(os.path.basename(path))
    return sent or os.environ.get(CONFIG_VARIABLE) or path


def _sent_with_spark(name: str) -> str | None:
    pyspark = sys.modules.get("pyspark")  # Where Spark runs it is imported.
    if pyspark is None:
        return None
    # Outside of a session of Spark it has no folder.
    with suppress(AssertionError, AttributeError):
        path = os.path.join(pyspark.SparkFiles.getRootDirectory(), name)
        return path if os.path.exists(path) else None
    return None
