"""An HTTP proxy that loses answers: requests are done, and their senders never hear of it."""

import contextlib
import http.client
import http.server
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

# What a request is: its method, and its path with the query.
Wanted = Callable[[str, str], bool]


@dataclass(slots=True)
class LossyProxy:
    """Stands in front of one server. `lose` says which answers are lost, and how many."""

    port: int
    lost: list[str] = field(default_factory=list)
    _wanted: Wanted = field(default=lambda _method, _path: False)
    _left: int = 0
    _forwards: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def lose(self, wanted: Wanted, count: int = 1, *, forward: bool = True) -> None:
        """Lose the next `count` answers to requests that are `wanted`.

        Without `forward` the requests themselves are lost.
        """
        with self._lock:
            self._wanted, self._left, self._forwards = wanted, count, forward
            self.lost.clear()

    def takes(self, method: str, path: str) -> tuple[bool, bool]:
        """Whether the server is to get the request, and its sender the answer."""
        with self._lock:
            if self._left == 0 or not self._wanted(method, path):
                return True, True
            self._left -= 1
            self.lost.append(f"{method} {path}")
            return self._forwards, False


@contextlib.contextmanager
def lossy_proxy(server: str, without: tuple[str, ...] = ()) -> Iterator[LossyProxy]:
    """A proxy in front of `server`, which is `host:port`; it takes away the headers `without`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_sent, is_answered = proxy.takes(self.command, self.path)
            if is_sent:
                connection = http.client.HTTPConnection(server, timeout=60)
                headers = {k: v for k, v in self.headers.items() if k.lower() not in without}
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                content = answer.read()
                connection.close()
            if not is_answered:
                self.close_connection = True
                return
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                    self.send_header(name, value)
            if answer.status not in (204, 304):
                size = answer.headers.get("Content-Length") if self.command == "HEAD" else None
                self.send_header("Content-Length", size or str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one  # noqa: N815

        def log_message(self, *_arguments: object) -> None:
            pass

    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    proxy = LossyProxy(listening.server_address[1])
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        listening.shutdown()
        listening.server_close()
