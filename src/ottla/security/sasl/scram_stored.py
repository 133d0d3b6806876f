"""SCRAM credentials as text, as Kafka kept them in ZooKeeper."""

import base64
import binascii

from ottla.security.sasl.scram_keys import ScramCredential

_FIELDS = ("salt", "stored_key", "server_key", "iterations")


def credential_text(credential: ScramCredential) -> str:
    """`salt=…,stored_key=…,server_key=…,iterations=8192`; the keys are in Base64."""
    salt, stored_key, server_key = (
        base64.b64encode(part).decode()
        for part in (credential.salt, credential.stored_key, credential.server_key)
    )
    return (
        f"salt={salt},stored_key={stored_key},server_key={server_key}"
        f",iterations={credential.iterations}"
    )


def parse_credential(text: str) -> ScramCredential:
    """A stored credential. Raises ValueError, which does not repeat the text."""
    fields = dict(part.partition("=")[::2] for part in text.split(","))
    if tuple(sorted(fields)) != tuple(sorted(_FIELDS)):
        raise ValueError(f"it does not have the fields {', '.join(_FIELDS)}")
    try:
        salt, stored_key, server_key = (
            base64.b64decode(fields[name], validate=True) for name in _FIELDS[:3]
        )
        iterations = int(fields["iterations"])
    except (binascii.Error, ValueError):
        raise ValueError("a field of it is not Base64, or its iterations are no number") from None
    return ScramCredential(salt, iterations, stored_key, server_key)
