"""A schema registry in memory that speaks Confluent's documented API, over HTTP.

Only what is documented is answered: schemas by number, versions of subjects, references, and
errors with their codes. `fail_next` makes it answer with an HTTP status some times.
"""

import base64
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


@dataclass
class RigRegistry:
    """What is registered, and how it answers."""

    url: str = ""
    # (user, password) or a token that is demanded.
    user: tuple[str, str] | None = None
    token: str | None = None
    fail_next: int = 0
    fail_status: int = 503
    requests: list[str] = field(default_factory=list)
    _schemas: dict[int, dict[str, Any]] = field(default_factory=dict)
    _subjects: dict[str, list[int]] = field(default_factory=dict)

    def register(
        self,
        subject: str,
        schema: str,
        kind: str = "AVRO",
        references: Sequence[tuple[str, str, int]] = (),
    ) -> int:
        """Register a version of `subject`; references are (name, subject, version)."""
        entry: dict[str, Any] = {"schema": schema}
        if kind != "AVRO":
            entry["schemaType"] = kind
        if references:
            entry["references"] = [
                {"name": name, "subject": other, "version": version}
                for name, other, version in references
            ]
        number = next((n for n, one in self._schemas.items() if one == entry), None)
        number = number or len(self._schemas) + 1
        self._schemas[number] = entry
        self._subjects.setdefault(subject, []).append(number)
        return number

    def answer(self, path: str, authorization: str | None) -> tuple[int, Any]:
        """The status and the body for a GET of `path`."""
        self.requests.append(path)
        if self.fail_next:
            self.fail_next -= 1
            return self.fail_status, {"error_code": 50002, "message": "made to fail"}
        if not self._lets_in(authorization):
            return 401, {"error_code": 401, "message": "Unauthorized"}
        match [unquote(part) for part in path.split("?", maxsplit=1)[0].strip("/").split("/")]:
            case ["schemas", "ids", number] if number.isdigit():
                found = self._schemas.get(int(number))
                return (200, found) if found else (404, _error(40403, "Schema not found"))
            case ["subjects", subject, "versions", version]:
                return self._version(subject, version)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _version(self, subject: str, version: str) -> tuple[int, Any]:
        numbers = self._subjects.get(subject)
        if numbers is None:
            return 404, _error(40401, f"Subject '{subject}' not found.")
        place = len(numbers) if version == "latest" else int(version)
        if not 0 < place <= len(numbers):
            return 404, _error(40402, f"Version {version} not found.")
        number = numbers[place - 1]
        return 200, {"subject": subject, "version": place, "id": number, **self._schemas[number]}

    def _lets_in(self, authorization: str | None) -> bool:
        if self.token is not None:
            return authorization == f"Bearer {self.token}"
        if self.user is not None:
            pair = base64.b64encode(":".join(self.user).encode()).decode()
            return authorization == f"Basic {pair}"
        return True


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error_code": code, "message": message}


@contextmanager
def schema_registry() -> Iterator[RigRegistry]:
    """Run a registry on a port of this machine."""
    registry = RigRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(self.path, self.headers.get("Authorization"))
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
