"""A server on a free port of 127.0.0.1, for tests."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Loopback(ThreadingHTTPServer):
    """Serves from its creation until `close`; a client that disconnects is not an error.

    A disconnect is noticed when the connection is dropped, often during a later test of the same process, and
    a traceback would appear in that test's error output.
    """

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        at_once = 0.02  # seconds between two checks for its end; the default is half a second
        threading.Thread(target=self.serve_forever, args=(at_once,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def close(self) -> None:
        self.shutdown()
        self.server_close()
