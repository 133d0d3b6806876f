"""Passes the connection settings of a cluster from the driver to its tasks, without secrets.

Only the path of a settings file is sent with a task, and each machine reads its own copy of the
file. But a DataFrame's `kafka.…` options are sent as values, inside pickled readers and writers,
which appear in no query plan.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NoReturn

from ottla.base.secret_options import CONFIG_VARIABLE
from ottla.client import sync
from ottla.client.common.settings import check_names
from ottla.client.connection.security import ClientConfig, read_config

BOOTSTRAP = "kafka.bootstrap.servers"
_CLIENT = "kafka."


@dataclass(frozen=True, slots=True)
class ClientAccess:
    """Connection settings of a client: a settings file, and single settings.

    Without either, the file in OTTLA_CONFIG is used. Can be pickled; the repr has no secret.
    """

    config: str | None = None  # The path of a settings file.
    # Single settings by Kafka's names, which override the file.
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    def client_config(self) -> ClientConfig:
        """Return the settings for a client on this machine. Raises OttlaError."""
        if not self.settings:
            return None if self.config is None else found_here(self.config)
        path = self.config or os.environ.get(CONFIG_VARIABLE)
        given = read_config(found_here(path)) if path else {}
        return {**given, **self.settings}


@dataclass(frozen=True, slots=True)
class Brokers:
    """The bootstrap servers of a cluster, and the settings of its clients.

    Can be pickled; the repr has no secret.
    """

    bootstrap: str
    access: ClientAccess = field(default_factory=ClientAccess)

    def admin(self) -> sync.Admin:
        """Return an admin client of the cluster. Raises OttlaError."""
        return sync.Admin(self.bootstrap, config=self.access.client_config())


# For a plain `host:port,…`, clients use the settings in OTTLA_CONFIG.
Bootstrap = str | Brokers


def brokers_of(
    bootstrap: str, config: str | None = None, client: Mapping[str, str] | None = None
) -> Brokers:
    """Return a cluster with the given client settings, by default those in OTTLA_CONFIG.

    Raises ClientError for a setting that Kafka's clients do not have.
    """
    check_names(client or {})
    path = os.path.abspath(config) if config else config_of_process()
    return Brokers(bootstrap, ClientAccess(path, dict(client or {})))


def as_brokers(bootstrap: Bootstrap) -> Brokers:
    """Return `bootstrap` as `Brokers`; a plain address gets the default client settings."""
    return bootstrap if isinstance(bootstrap, Brokers) else Brokers(bootstrap)


def require_known(
    given: Iterable[str],
    names: Sequence[str],
    wrong: Callable[[str], NoReturn],
    passed_over: Iterable[str] = (),
) -> None:
    """Call `wrong` with the nearest known name for each option that is not in `names`.

    `given` has the option names of a DataFrame in lower case. Options `kafka.…` are allowed, as
    they are client settings, and so are those in `passed_over`.
    """
    known = {name.lower(): name for name in names}
    for name in set(given) - known.keys() - {one.lower() for one in passed_over}:
        if not name.startswith(_CLIENT):
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            best = f"did you mean {known[near[0]]}? The" if near else "the"
            wrong(f"there is no option {name!r}; {best} options are {', '.join(names)}, kafka.…")


def access_of(options: Mapping[str, str]) -> ClientAccess:
    """Return the client settings in a DataFrame's options, whose names are in lower case.

    Raises ClientError for a setting that Kafka's clients do not have.
    """
    settings = {
        name.removeprefix(_CLIENT): value
        for name, value in options.items()
        if name.startswith(_CLIENT) and name != BOOTSTRAP
    }
    check_names(settings)
    return ClientAccess(options.get("config"), settings)


def bootstrap_of(options: Mapping[str, str]) -> str:
    """Return the cluster that a DataFrame's options name; option names are in lower case."""
    return options.get(BOOTSTRAP) or "localhost:9092"


def config_of_process() -> str | None:
    """Return the path of the settings file that this process's clients read."""
    path = os.environ.get(CONFIG_VARIABLE)
    return os.path.abspath(path) if path else None


def found_here(path: str) -> str:
    """Return the path on this machine of the driver's settings file `path`.

    It is the same path if that exists, else the file of this name that Spark has sent here, else
    the path in OTTLA_CONFIG of this process.
    """
    if os.path.exists(path):
        return path
    sent = _sent_with_spark(os.path.basename(path))
    return sent or os.environ.get(CONFIG_VARIABLE) or path


def _sent_with_spark(name: str) -> str | None:
    pyspark = sys.modules.get("pyspark")  # A process that runs Spark has imported it already.
    if pyspark is None:
        return None
    # Without a Spark session there is no folder of sent files.
    with suppress(AssertionError, AttributeError):
        path = os.path.join(pyspark.SparkFiles.getRootDirectory(), name)
        return path if os.path.exists(path) else None
    return None
