"""`ottla acl explain`: whether something is allowed, and which rule says so."""

from ipaddress import ip_address

import click

from ottla.cli.acl.rule import operation_of, principal_of, resource_of, rule_arguments
from ottla.cli.common import options
from ottla.cli.common.connect import with_admin
from ottla.cli.text.output import show
from ottla.diagnosis.access import explain_access


@click.command()
@rule_arguments
@click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="From where."
)
@options.bootstrap
@options.output
def explain(
    principal: str, operation: str, resource: str, host: str, bootstrap: str, form: str
) -> None:
    """Say whether something is allowed, and which rule decides.

    \b
    ottla acl explain User:alice write topic:flights
    ottla acl explain User:alice read group:readers --host 10.0.0.7
    """  # noqa: D301
    user, what, pattern = principal_of(principal), operation_of(operation), resource_of(resource)
    origin = _address(host)
    ruling = with_admin(bootstrap, lambda admin: explain_access(admin, user, origin, what, pattern))
    answer = {
        "allowed": "yes" if ruling.allowed else "no",
        "why": ruling.reason.value,
        "rule": "" if ruling.acl is None else str(ruling.acl),
    }
    show(form, [answer], ["allowed", "why", "rule"])


def _address(host: str) -> str:
    """The address in the form that brokers see. Raises BadParameter."""
    try:
        return str(ip_address(host))
    except ValueError:
        raise click.BadParameter(
            f"{host} is no address: brokers know clients by their IP address, as 10.0.0.7",
            param_hint="--host",
        ) from None
