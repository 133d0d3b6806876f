"""`ottla start`: one command, and a broker serves."""

import json
import logging
import sys
from pathlib import Path

import click

from ottla import _compiled
from ottla.base.log_lines import log_to_stderr
from ottla.base.settings import BrokerSettings
from ottla.cli import options
from ottla.cli.start.several import AT_HAND, Brokers, Plan, require_single

# Time, level, what happened.
LOG_LAYOUT = "%(asctime)s %(levelname)-7s %(message)s"

_CONTRACT = {
    "group": "acks=all is answered once the record is on disk (group commit)",
    "os": "acks=all is answered once the record is in the page cache: a power cut may lose it",
}


@click.command()
@click.option("--brokers", type=int, default=1, show_default=True, help="How many brokers.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("ottla-data"),
    show_default=True,
    help="The folder for the logs; it is made if it is not there.",
)
@click.option("--port", "-p", type=int, default=9092, show_default=True, help="0 takes a free one.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="0.0.0.0 serves every network."
)
@options.settings
@click.option("--verbose", "-v", is_flag=True, help="Log changes of state, not only trouble.")
@options.output
def start(
    brokers: int,
    data: Path,
    port: int,
    host: str,
    assignments: tuple[str, ...],
    verbose: bool,
    form: str,
) -> None:
    """Start a broker on this machine, or several that replicate; ctrl-C stops them.

    \b
    ottla start
    ottla start --brokers 3 --port 9092
    ottla start --data /var/lib/ottla --port 19092
    ottla start --set log.retention.hours=24 --set num.partitions=4

    Any of Kafka's broker settings can be set; `ottla config explain NAME` says what it does.
    """  # noqa: D301
    if brokers < 1:
        raise click.BadParameter("at least one broker", param_hint="--brokers")
    if brokers > 1:
        plan = Plan(brokers, data, host, port, options.parse_settings(assignments))
        sys.exit(_start_several(plan, verbose=verbose, form=form))
    require_single(data)
    settings = BrokerSettings(
        {
            "listeners": f"PLAINTEXT://{host}:{port}",
            "log.dirs": str(data.absolute()),
            **AT_HAND,
            **options.parse_settings(assignments),
        }
    )
    log_to_stderr(logging.INFO if verbose else logging.WARNING, LOG_LAYOUT)
    # The broker is imported last, so that a wrong option is refused at once.
    from ottla.broker.process.broker import Broker  # noqa: PLC0415
    from ottla.broker.process.main import run  # noqa: PLC0415

    def on_ready(broker: Broker) -> None:
        if form == "json":
            address = f"{host}:{broker.port}"
            answer = {"bootstrap": address, "port": broker.port, "data": str(data)}
            click.echo(json.dumps(answer))
            return
        click.echo(f"Ottla serves on {host}:{broker.port}, data in {data}")
        click.echo(_CONTRACT[settings.text("log.flush.policy")] + "; ctrl-C stops")
        if why_plain := _compiled.reason():
            click.echo(f"the codec runs in its plain form, which is slower: {why_plain}")

    run(settings, on_ready=on_ready)


def _start_several(plan: Plan, *, verbose: bool, form: str) -> int:
    log_to_stderr(logging.INFO if verbose else logging.WARNING, LOG_LAYOUT)
    if left_out := plan.left_out():
        click.echo(
            f"{plan.data} also holds broker{'s' * (len(left_out) > 1)} "
            f"{', '.join(map(str, left_out))}: not started, so what only they hold is offline; "
            f"`--brokers {left_out[-1]}` starts all",
            err=True,
        )
    plan.prepare()
    running = Brokers(plan, LOG_LAYOUT)
    running.start()
    ports = dict(sorted(running.ports()))
    addresses = [f"{plan.host}:{port}" for port in ports.values()]
    if form == "json":
        click.echo(json.dumps({"bootstrap": ",".join(addresses), "data": str(plan.data)}))
    elif ports:
        click.echo(f"{len(ports)} brokers serve on {', '.join(addresses)}, data in {plan.data}")
        click.echo(
            "new topics have"
            f" {plan.settings(1)['default.replication.factor']} replicas; ctrl-C stops all,"
            " the death of one stops none"
        )
        settings = BrokerSettings(plan.settings(1))
        click.echo(_CONTRACT[settings.text("log.flush.policy")])
    return running.watch()
