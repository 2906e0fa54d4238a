"""A relay on 127.0.0.1 that records every request on its way to a real server."""

import json
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from loopback import Loopback

PASSED_ON = ("Authorization", "Content-Type", "Accept")


class Relay:
    """Forwards what it gets, as it comes; `bodies` are the requests, `statuses` the server's answers."""

    def __init__(self, target: str) -> None:
        self.target, self.bodies = target.rstrip("/"), list[dict[str, Any]]()
        self.statuses = list[int]()
        self.server = Loopback(self._handler())
        self.url = self.server.url

    @property
    def requests(self) -> list[list[BaseMessage]]:
        """Return the messages of every chat request, in order."""
        return [convert_to_messages(body["messages"]) for body in list(self.bodies)]

    def shut(self) -> None:
        self.server.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        relay = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                relay.bodies.append(json.loads(data))
                headers = {name: self.headers[name] for name in PASSED_ON if self.headers[name]}
                address = relay.target + self.path.removeprefix("/v1")
                try:
                    answer = urllib.request.urlopen(
                        urllib.request.Request(address, data, headers), timeout=100
                    )
                except urllib.error.HTTPError as error:
                    answer = error
                relay.statuses.append(answer.status)
                with answer:
                    self.send_response(answer.status)
                    self.send_header("Content-Type", answer.headers["Content-Type"])
                    self.end_headers()
                    while part := answer.read1(65_536):
                        self.wfile.write(part)
                        self.wfile.flush()

            def log_message(self, *args: object) -> None:
                pass

        return Handler
