"""Common tracers whose records are kept in memory."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from typing import Any

from langchain_core.tracers.context import tracing_v2_enabled
from langsmith import Client
from loopback import Loopback
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

OTEL = "opentelemetry.instrumentation.genai.langchain"
OPENINFERENCE = "openinference.instrumentation.langchain"


class Spans:
    """The spans that an instrumentation package exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def all(self) -> list[ReadableSpan]:
        """Return all spans in the order in which they began."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    @property
    def tree(self) -> list[tuple[str, str]]:
        """Return the name of each span under its parent's."""
        names = {span.context.span_id: span.name for span in self.all}
        return [(names[s.parent.span_id] if s.parent else "", s.name) for s in self.all]

    def named(self, name: str) -> list[dict[str, Any]]:
        """Return the attributes of the spans of this name."""
        return [dict(span.attributes or {}) for span in self.all if span.name == name]

    def noted(self, name: str) -> list[dict[str, Any]]:
        """Return our own metadata on the spans of this name, as OpenInference records it."""
        return [ours(json.loads(attributes["metadata"])) for attributes in self.named(name)]


def ours(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return our own keys, without the spending."""
    found = {k.removeprefix("wakeloop_"): v for k, v in metadata.items() if k.startswith("wakeloop_")}
    return {k: v for k, v in found.items() if not k.startswith(("spent", "nearest", "share"))}


@contextmanager
def instrumented(package: str) -> Iterator[Spans]:
    """Instrument all runs with one of the packages."""
    spans = Spans()
    instrumentor = import_module(package).LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=spans.provider)
    try:
        yield spans
    finally:
        instrumentor.uninstrument()


class LangSmith:
    """A server for LangSmith's client: `runs` by id, with patches applied; `sent` is every body received."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.runs: dict[str, dict[str, Any]] = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: object) -> None:
                return

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                run = json.loads(body)
                server.sent.append(body)
                server.runs.setdefault(run.get("id") or self.path.rpartition("/")[2], {}).update(run)
                self.send_response(202)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_PATCH = do_POST  # noqa: N815 - the server's own word

        self.server = Loopback(Handler)

    def named(self, name: str) -> list[dict[str, Any]]:
        """Return the metadata of the runs of this name, in the order in which they began."""
        runs = sorted(self.runs.values(), key=lambda run: run["start_time"])
        return [run["extra"]["metadata"] for run in runs if run["name"] == name]

    @contextmanager
    def listening(self) -> Iterator["LangSmith"]:
        """Trace to this server as `LANGSMITH_TRACING=true` would, without batching."""
        client = Client(
            api_url=f"http://127.0.0.1:{self.server.server_port}", api_key="k", auto_batch_tracing=False
        )
        try:
            with tracing_v2_enabled(client=client):
                yield self
        finally:
            self.server.close()
