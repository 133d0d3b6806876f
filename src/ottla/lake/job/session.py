"""Gets the Spark session of a load: the running session, or a new one.

If a master is set (by spark-submit, spark-defaults.conf or an option), a new session uses it. If no
master is set, the session runs on this machine, with settings for one machine.
"""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.base.secret_options import is_secret

# With this master, tasks run in this process, without Spark and Java.
HERE = "here"
# Spark tries each task up to 4 times. With `local[*]`, a load fails if one worker is killed.
LOCAL_MASTER = "local[*,4]"

LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}

_DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_LOGGING = re.compile(r"spark\.log\.level|log4j")
_DEFAULT_NAME = "ottla lake"
_WORKERS_PYTHON = "spark.pyspark.python"
# The forms of `--master`; other cluster managers are set by `--conf`.
_MASTER = re.compile(
    r"local|local\[(\*|\d+)(,\d+)?\]|local-cluster\[.+\]|yarn|(spark|k8s|sc|mesos)://.+"
)
_SUBMITTED_MASTER = re.compile(r"--master\b|--remote\b|\bspark\.(master|remote)\b")
_DEFAULTS_MASTER = re.compile(r"^\s*spark\.(master|remote)(\s*[=:]|\s)\s*\S", re.MULTILINE)
_DEFAULTS_PYTHON = re.compile(r"^\s*spark\.pyspark\.python(?:\s*[=:]|\s)\s*(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The caller's settings for a new session.

    `master` may be a Spark Connect URL (`sc://`). If it is `here`, tasks run in this process,
    without a session.
    """

    master: str | None = None
    name: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_here(self) -> bool:
        """Return whether tasks run in this process, without Spark."""
        return self.master == HERE


def checked_settings(settings: SparkSettings, *, has_own: bool) -> SparkSettings:
    """Check `settings` before a call creates anything, and return them.

    `has_own` says that the caller has given a runner or a session, so Spark need not be installed.
    Raises OttlaError for an invalid master, or if Spark is missing.
    """
    if settings.master is not None and not settings.is_here:
        _require_master(settings.master)
    if not has_own and not settings.is_here and find_spec("pyspark") is None:
        raise _not_installed()
    return settings


def _not_installed() -> OttlaError:
    return OttlaError(
        ErrorCode.UNSUPPORTED_VERSION,
        "Spark is not installed: pip install 'ottla[spark]', or run this in one process without "
        'Spark (--here, master="here")',
    )


def builder_settings(
    wanted: SparkSettings, environment: Mapping[str, str], defaults: str
) -> dict[str, str]:
    """Return the settings for Spark's session builder. Raises OttlaError.

    `environment` has the environment variables, `defaults` is the text of spark-defaults.conf.
    """
    settings = {"spark.app.name": wanted.name} if wanted.name else {}
    if wanted.master is not None:
        _require_master(wanted.master)
        kind = "spark.remote" if wanted.master.startswith("sc://") else "spark.master"
        settings[kind] = wanted.master
    elif not (
        "spark.master" in wanted.conf
        or "spark.remote" in wanted.conf
        or _names_master(environment, defaults)
    ):
        settings |= {"spark.master": LOCAL_MASTER, **LOCAL_SETTINGS}
    # Keep the application name that spark-submit has set.
    if "PYSPARK_GATEWAY_PORT" not in environment:
        settings.setdefault("spark.app.name", _DEFAULT_NAME)
    return settings | dict(wanted.conf)


def _require_master(master: str) -> None:
    """Raise an error for an invalid master, in place of a stack trace of Spark later."""
    if not _MASTER.fullmatch(master):
        raise WrongWords(
            f"{master!r} is no master of Spark: write local[2], spark://HOST:7077, yarn, "
            "k8s://https://HOST:443 or sc://HOST:15002, or here for this process without Spark; "
            "other managers go into --conf spark.master=…"
        )


def quiet_settings(
    settings: Mapping[str, str], environment: Mapping[str, str], defaults: str
) -> dict[str, str]:
    """Return settings that limit Spark's log to errors, if this process starts the driver.

    They are empty if the driver runs already, or if `settings` (of the new session) or `defaults`
    configure the log.
    """
    remote = "spark.remote" in settings or "SPARK_REMOTE" in environment
    said = " ".join((*settings.keys(), *settings.values(), defaults))
    if remote or "PYSPARK_GATEWAY_PORT" in environment or _LOGGING.search(said):
        return {}
    quiet = {"spark.log.level": "ERROR"}
    # Without this file, Spark prints a line about its logging before it knows its log level.
    if _DRIVER_OPTIONS not in said:
        quiet[_DRIVER_OPTIONS] = f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"
    return quiet


def workers_python(
    conf: Mapping[str, str], environment: Mapping[str, str], defaults: str, here: str
) -> str:
    """Return the Python program that runs tasks: the configured one, or by default `here`.

    `here` is this process's Python. PySpark itself reads only the environment. This function
    prefers settings, as spark-submit does.
    """
    found = _DEFAULTS_PYTHON.search(defaults)
    return (
        conf.get(_WORKERS_PYTHON)
        or environment.get("PYSPARK_PYTHON")
        or (found[1] if found else here)
    )


def path_with(python: str, path: str, here: str) -> str:
    """Return a PATH on which the bare name `python` is the program in the folder of `here`.

    The driver's JVM plans Python data sources with the workers' program, which it looks up on the
    PATH. If that folder has no such program, `path` is returned unchanged.
    """
    folder = os.path.dirname(here)
    beside = shutil.which(python, path=folder) if os.path.basename(python) == python else None
    if beside is None or shutil.which(python, path=path) == beside:
        return path
    return f"{folder}{os.pathsep}{path}"


def _names_master(environment: Mapping[str, str], defaults: str) -> bool:
    """Return whether the environment or Spark's configuration sets a master."""
    return (
        "PYSPARK_GATEWAY_PORT" in environment  # Set by spark-submit, which knows the master.
        or "SPARK_REMOTE" in environment
        or "MASTER" in environment
        or _SUBMITTED_MASTER.search(environment.get("PYSPARK_SUBMIT_ARGS", "")) is not None
        or _DEFAULTS_MASTER.search(defaults) is not None
    )


def running_session() -> Any:
    """Return the Spark session of this process; None if none runs."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.errors import PySparkException  # noqa: PLC0415  # As below.
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        # `active` finds a session of another thread too, without changing its settings.
        return SparkSession.active()
    except PySparkException:
        return None


def session(wanted: SparkSettings | None = None) -> Any:
    """Return the running Spark session, or start one with the settings `wanted`.

    Raises OttlaError if Spark or Java is missing. The message says which package to install.
    """
    try:
        # Spark is an extra, and slow to import: only a load needs it.
        import pyspark  # noqa: PLC0415
        from pyspark.errors import PySparkException  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError:
        raise _not_installed() from None
    wanted = wanted or SparkSettings()
    defaults = _spark_defaults(os.environ, Path(pyspark.__file__).parent)
    # By default workers use this Python, with its packages, rather than the first on the PATH.
    python = workers_python(wanted.conf, os.environ, defaults, sys.executable)
    os.environ["PYSPARK_PYTHON"] = python
    os.environ["PATH"] = path_with(python, os.environ.get("PATH", ""), sys.executable)
    running = running_session()
    if running is not None:
        return running
    builder = SparkSession.builder
    settings = builder_settings(wanted, os.environ, defaults)
    settings = quiet_settings(settings, os.environ, defaults) | settings
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        shown = shown_in_processes(settings, os.environ)
        if shown != settings:
            _start_java(shown)
        return builder.getOrCreate()
    except PySparkException as error:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "Spark did not start; it needs Java 17 or newer (set JAVA_HOME, or install "
            f"openjdk-17-jre-headless): {error}",
        ) from error


def shown_in_processes(
    settings: Mapping[str, str], environment: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the settings that may be on Java's command line: all except secrets.

    For Spark Connect, all are returned, because no Java is started here.
    """
    if "spark.remote" in settings or "SPARK_REMOTE" in environment:
        return settings
    return {name: value for name, value in settings.items() if not is_secret(name, value)}


def _start_java(settings: Mapping[str, str]) -> None:
    """Start the driver's JVM, if none runs, with `settings` on its command line.

    Without this, PySpark would put all settings of a new session on the command line, where all
    users of the machine see them. Once the JVM runs, settings are sent over its connection.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415  # As above.

    SparkContext._ensure_initialized(conf=SparkConf().setAll(list(settings.items())))


def _spark_defaults(environment: Mapping[str, str], installed: Path) -> str:
    """Return the text of spark-defaults.conf as Spark finds it; empty if there is none."""
    home = Path(environment.get("SPARK_HOME") or installed)
    folder = Path(environment.get("SPARK_CONF_DIR") or home / "conf")
    try:
        return (folder / "spark-defaults.conf").read_text(errors="replace")
    except OSError:
        return ""
