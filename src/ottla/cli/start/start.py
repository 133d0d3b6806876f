"""`ottla start`: starts a broker with one command."""

import json
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import click

from ottla import _compiled
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.log_lines import log_as_json, log_to_stderr
from ottla.base.private_files import whose
from ottla.base.settings import BrokerSettings, read_broker_settings
from ottla.base.settings.listeners import is_wildcard
from ottla.cli.common import options
from ottla.cli.start.plan import AT_HAND, METRICS, Plan, require_single, several, unit, unit_of
from ottla.cli.start.secured import Secured, address_for_clients, instructions
from ottla.cli.start.several import Brokers
from ottla.operations.secure.login import PROTOCOL
from ottla.operations.secure.settings import ADMINISTRATOR, SecureFolder

# Time, level, message.
LOG_LAYOUT = "%(asctime)s %(levelname)-7s %(message)s"

_CONTRACT = {
    "group": "acks=all is answered once the record is on disk (group commit)",
    "os": "acks=all is answered once the record is in the page cache: a power cut may lose it",
}


_log = logging.getLogger(__name__)


@click.command()
@click.option("--brokers", type=int, default=1, show_default=True, help="How many brokers.")
@click.option(
    "--cores",
    metavar="auto|N",
    help="One broker on each core, as one unit: auto takes all cores, N so many.",
)
@click.option(
    "--data",
    # Readability is checked below, with a message that names the owner.
    type=click.Path(path_type=Path, file_okay=False, readable=False),
    default=Path("ottla-data"),
    show_default=True,
    help="The folder for the logs; it is made if it is not there.",
)
@click.option("--port", "-p", type=int, default=9092, show_default=True, help="0 takes a free one.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="0.0.0.0 serves every network."
)
@click.option(
    "--secure/--no-secure",
    default=None,
    help="With TLS, logins, ACLs and a user `admin`; all that is made stays in --data.",
)
@click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    help="Serve metrics for Prometheus there, by default on 127.0.0.1; each further broker takes"
    " the next port.",
)
@options.settings("log.retention.ms=7d")
@click.option("--verbose", "-v", is_flag=True, help="Log changes of state, not only trouble.")
@options.output
def start(
    brokers: int,
    cores: str | None,
    data: Path,
    port: int,
    host: str,
    secure: bool | None,
    metrics: str | None,
    assignments: tuple[str, ...],
    verbose: bool,
    form: str,
) -> None:
    """Start a broker on this machine, one per core, or several that replicate; ctrl-C stops them.

    \b
    ottla start
    ottla start --brokers 3 --port 9092
    ottla start --cores auto
    ottla start --data /var/lib/ottla --port 19092
    ottla start --secure
    ottla start --brokers 3 --metrics 9464
    ottla start --set log.retention.ms=1d --set num.partitions=4

    Any of Kafka's broker settings can be set; `ottla config explain NAME` says what it does.
    """  # noqa: D301
    if brokers < 1:
        raise click.BadParameter("at least one broker", param_hint="--brokers")
    _require_decision(data, secure)
    given = options.parse_settings(assignments)
    if metrics is not None:
        given[METRICS] = metrics if ":" in metrics else f"127.0.0.1:{metrics}"
    log_to_stderr(logging.INFO if verbose else logging.WARNING, LOG_LAYOUT)
    listeners = f"{PROTOCOL if secure else 'PLAINTEXT'}://{host}:{port}"
    cores = cores or given.get("cores")
    if cores and brokers > 1:
        raise click.UsageError(
            "either --brokers, for copies on one machine, or --cores, for more throughput"
        )
    if cores or brokers > 1:
        plan = (
            unit(cores, data, listeners, {**AT_HAND, **given})
            if cores
            else several(brokers, data, listeners, given)
        )
        sys.exit(_start_several(plan, given, host, secure=bool(secure), form=form))
    require_single(data)
    texts = {
        "listeners": listeners,
        **({} if "log.dir" in given else {"log.dirs": str(data.absolute())}),
        **AT_HAND,
        **given,
    }
    made = _secured(texts, data, several=False) if secure else None
    settings = BrokerSettings(texts if made is None else {**texts, **made.settings})
    # The folder in `--set log.dirs`, or else the option as typed.
    has_own = "log.dirs" in given or "log.dir" in given
    folders = ", ".join(settings.log_dirs) if has_own else str(data)
    # The broker is imported last, so that a wrong option is refused at once.
    from ottla.broker.process.broker import Broker  # noqa: PLC0415
    from ottla.broker.process.main import run  # noqa: PLC0415

    def on_ready(broker: Broker) -> None:
        address = address_for_clients(host, broker.port)
        if form == "json":
            answer = {"bootstrap": address, "port": broker.port, "data": folders}
            click.echo(json.dumps({**answer, **_files(made)}))
            return
        click.echo(f"Ottla serves on {address}, data in {folders}")
        click.echo(_CONTRACT[settings.text("log.flush.policy")] + "; ctrl-C stops")
        _say_metrics(settings, port=broker.metrics.status().port)
        _say_if_plain()
        _instruct(made, [address])

    run(settings, on_ready=on_ready)


def _start_several(
    plan: Plan, given: Mapping[str, str], host: str, *, secure: bool, form: str
) -> int:
    if not plan.is_unit and (left_out := plan.others()):
        click.echo(
            f"{plan.data} also holds broker{'s' * (len(left_out) > 1)} "
            f"{', '.join(map(str, left_out))}: not started, so what only they hold is offline; "
            f"`--brokers {left_out[-1]}` starts all",
            err=True,
        )
    plan.check()
    first = plan.settings(plan.numbers[0])
    made = _secured(first, plan.data, several=True) if secure else None
    if made is not None:
        plan = replace(plan, texts={**plan.texts, **made.settings, **given})
    running = _launched(plan)
    # Set before any output, because a program that reads the output may send a signal at once.
    with running.handling_signals():
        _announce(plan, host, dict(sorted(running.ports())), made, form)
        return running.watch()


def run_unit(properties: Path) -> int:
    """Run the brokers of a settings file with `cores` until SIGTERM; return the exit code.

    SIGHUP reads the file again, and restarts the brokers one after another. Raises OttlaError with
    cause and remedy if they cannot be started.
    """

    def plan_again() -> Plan:
        return unit_of(read_broker_settings(properties))

    plan = plan_again()
    plan.check()
    running = _launched(plan, plan_again)
    with running.handling_signals():
        for number, port in running.ports():
            _log.info("broker %d serves on port %d", number, port)
        return running.watch()


def _launched(plan: Plan, plan_again: Callable[[], Plan] | None = None) -> Brokers:
    added = plan.added()
    plan.prepare()
    if added:
        _log.warning(
            "new in %s: broker %s. `ottla cluster balance --apply` moves partitions there",
            plan.data,
            ", ".join(map(str, added)),
        )
    if plan.texts.get("logger.format") == "json":
        log_as_json()
    running = Brokers(plan, LOG_LAYOUT, plan_again)
    running.start()
    return running


def _announce(
    plan: Plan, host: str, ports: Mapping[int, int], made: Secured | None, form: str
) -> None:
    """Print the addresses of the brokers, for people or for programs."""
    addresses = [address_for_clients(host, port) for port in ports.values()]
    if form == "json":
        answer = {"bootstrap": ",".join(addresses), "data": str(plan.data)}
        click.echo(json.dumps({**answer, **_files(made)}))
    elif ports:
        settings = BrokerSettings(plan.settings(plan.numbers[0]))
        replicas = settings.integer("default.replication.factor")
        click.echo(
            f"{len(ports)} broker{'s' * (len(ports) > 1)} serve{'s' * (len(ports) == 1)} on "
            f"{', '.join(addresses)}, data in {plan.data}"
        )
        if plan.is_unit:
            click.echo(
                f"new topics have {replicas} replica{'s' * (replicas > 1)}, no two of a partition"
                f" on {settings.value('broker.rack')}; ctrl-C stops all, and one that dies is"
                " started again"
            )
        else:
            click.echo(
                f"new topics have {replicas} replicas; ctrl-C stops all, the death of one stops"
                " none"
            )
        click.echo(_CONTRACT[settings.text("log.flush.policy")])
        _say_metrics(*(BrokerSettings(plan.settings(number)) for number in plan.numbers))
        _say_if_plain()
        _instruct(made, addresses)


def _say_metrics(*brokers: BrokerSettings, port: int = 0) -> None:
    """Print where the metrics are; `port` is the actual one, where that is known."""
    places = [settings.text(METRICS).rpartition(":") for settings in brokers]
    urls = [f"http://{host}:{port or asked}/metrics" for host, colon, asked in places if colon]
    if urls:
        click.echo(f"metrics for Prometheus: {', '.join(urls)}")


def _say_if_plain() -> None:
    if why := _compiled.reason():
        click.echo(f"the codec runs in its plain form, which is slower: {why}")


def _require_decision(data: Path, secure: bool | None) -> None:
    """Refuse to start a secured folder without security, unless the user requests that."""
    try:
        was_secured = SecureFolder(data.absolute()).is_there
    except OSError as error:
        owner = whose(str(data)) if isinstance(error, PermissionError) else ""
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{data} cannot be read: {error.strerror}{owner}; choose another --data, or let the"
            " owner start the broker",
        ) from None
    if secure is None and was_secured:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{data} was started with --secure: add it again, or --no-secure to serve what is there"
            " without logins and without TLS",
        )


def _secured(given: Mapping[str, str], data: Path, *, several: bool) -> Secured:
    """Return the settings that `--secure` adds, and messages. Raises OttlaError."""
    try:
        from ottla.cli.start.secure import secure  # noqa: PLC0415  # An extra, and slow to import.
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("cryptography"):
            raise
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            "--secure makes certificates, for which a library is missing: pip install"
            " 'ottla[security]'",
        ) from None
    made = secure(given, data, several=several)
    for note in made.notes:
        click.echo(note, err=True)
    return made


def _files(made: Secured | None) -> dict[str, object]:
    """Return the names of the created files, for programs; they contain no secret."""
    if made is None:
        return {}
    files = made.files
    return {
        "user": ADMINISTRATOR,
        "password_file": str(files.password),
        "authority": str(files.authority),
        "client_properties": str(files.for_java),
        "librdkafka_properties": str(files.for_librdkafka),
    }


def _instruct(made: Secured | None, addresses: list[str]) -> None:
    """Print how clients reach secured brokers, and keep their certificates renewed."""
    if made is None:
        return
    # Clients cannot connect to a wildcard address such as 0.0.0.0.
    reached = [
        f"localhost:{port}" if is_wildcard(host.strip("[]")) else f"{host}:{port}"
        for host, _, port in (address.rpartition(":") for address in addresses)
    ]
    for line in instructions(made.files, reached):
        click.echo(line)
    made.keep_renewed()
