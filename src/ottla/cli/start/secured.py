"""The files and settings that `--secure` has created, and instructions for clients."""

import logging
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ottla.base.errors import OttlaError
from ottla.operations.secure.login import MECHANISM, PROTOCOL
from ottla.operations.secure.settings import ADMINISTRATOR, SecureFolder

_log = logging.getLogger(__name__)

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Secured:
    """The files, the settings to add to the given settings, and messages for the user."""

    files: SecureFolder
    settings: dict[str, str]
    notes: list[str]
    # Renews certificates that expire soon, and returns messages about that.
    renew: Callable[[], list[str]]

    def keep_renewed(self) -> None:
        """Renew certificates daily while this process runs. Brokers reload them."""
        threading.Thread(target=self._renew_daily, name="ottla-renewal", daemon=True).start()

    def _renew_daily(self) -> None:
        while True:
            time.sleep(_DAY_S)
            try:
                notes = self.renew()
            except (OSError, OttlaError) as error:
                _log.error(
                    "the certificates in %s cannot be renewed (%s): clients refuse them once they"
                    " have expired",
                    self.files.folder,
                    error,
                )
                continue
            for note in notes:
                _log.warning("%s", note)


def address_for_clients(host: str, port: int) -> str:
    """Return the host as clients write it: an IPv6 address gets brackets if it has none."""
    bare = host.strip("[]")
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


def instructions(files: SecureFolder, addresses: Sequence[str]) -> list[str]:
    """Return blocks of lines with headings. They have names of files, but no secrets."""
    first, all_of_them = addresses[0], ",".join(addresses)
    java = shlex.quote(str(files.for_java))
    tool = f"--bootstrap-server {first} --command-config {java}"
    rdkafka, password, authority = map(
        repr, map(str, (files.for_librdkafka, files.password, files.authority))
    )
    return [
        f"Clients log in as {ADMINISTRATOR}, who may do everything; the password is in"
        f" {files.password}.",
        "",
        "ottla:",
        f"  export OTTLA_CONFIG={java} OTTLA_BOOTSTRAP={all_of_them}",
        "  ottla topic list",
        "Kafka's tools:",
        f"  kafka-topics.sh {tool} --list",
        f"  kafka-console-producer.sh {tool} --topic greetings",
        "confluent-kafka; the file is for others on librdkafka, too:",
        f"  settings = dict(line.strip().split('=', 1) for line in open({rdkafka}))",
        f"  settings['bootstrap.servers'] = '{all_of_them}'",
        "  producer = confluent_kafka.Producer(settings)",
        "kafka-python:",
        f"  password = open({password}).read().strip()",
        f"  producer = kafka.KafkaProducer(bootstrap_servers={list(addresses)!r},"
        f" security_protocol='{PROTOCOL}', sasl_mechanism='{MECHANISM}',"
        f" sasl_plain_username='{ADMINISTRATOR}', sasl_plain_password=password,"
        f" ssl_cafile={authority})",
        "aiokafka, with the password read as above:",
        f"  context = aiokafka.helpers.create_ssl_context(cafile={authority})",
        f"  producer = aiokafka.AIOKafkaProducer(bootstrap_servers={list(addresses)!r},"
        f" security_protocol='{PROTOCOL}', sasl_mechanism='{MECHANISM}',"
        f" sasl_plain_username='{ADMINISTRATOR}', sasl_plain_password=password,"
        " ssl_context=context)",
        "A first user of your own, who may read one topic and nothing else:",
        "  ottla user add alice",
        "  ottla acl add User:alice read topic:greetings",
    ]
