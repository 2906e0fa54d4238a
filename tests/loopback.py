"""A server on a free port of 127.0.0.1, for tests."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Loopback(ThreadingHTTPServer):
    """Serves from its making until `close`; a client that went away is no error.

    Such a client shows when its connection is dropped, often in a later test of the same process: a traceback
    would be in that test's error output.
    """

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        at_once = 0.02  # seconds between two looks whether it is to end; half a second is the default
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
