"""Rules for all tests: no network, no keys, no traces."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from levels import Level

pytest_plugins = ["belts", "postgres"]  # `--paths`; the fixture `postgres`: the URL of a new database

LOOPBACK = ["127.0.0.1", "::1"]

settings.register_profile(
    "ci",
    deadline=None,  # a shared machine stalls now and then
    derandomize=True,  # the same examples every time, so that a failure can be repeated
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


# Jupyter's schemas install it; jsonschema, and so mcp, would spend 1.5 s of CPU on its grammar.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# A client of an HTTP API reads all trusted authorities, 0.1 s of CPU per context, but no test connects to any
# of them: all addresses are on loopback.
os.environ["SSL_CERT_DIR"] = os.path.dirname(__file__)  # noqa: PTH120 - a folder that holds none


def interrupt(number: int, frame: Any) -> None:
    """Do what Python does at Ctrl-C, without being its handler.

    `asyncio.run` replaces Python's own handler with its own, and prints the result when it removes it.
    """
    signal.default_int_handler(number, frame)


def pytest_configure() -> None:
    """Handle Ctrl-C and a hangup, even if a script's background or `nohup` ignores them.

    Processes inherit ignored signals, but not handlers.
    """
    signal.signal(signal.SIGINT, interrupt)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("loopback"):
            item.add_marker(pytest.mark.allow_hosts(LOOPBACK))


def pytest_collection_finish() -> None:
    """Freeze the collected items, so that the garbage collector does not scan them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture(autouse=True)
def every_request(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Check every request of this process against rule 13: no server may refuse its history."""
    asked: list[Any] = []
    if request.node.get_closest_marker("pure") is None:
        from wakeloop.model.request import Request

        build = Request.build_messages

        def kept(self: Request, *args: Any) -> Any:
            wire = build(self, *args)
            asked.append(list(wire))
            return wire

        monkeypatch.setattr(Request, "build_messages", kept)
    yield asked
    from wakeloop.testing import wire_faults

    assert wire_faults(asked) == []


@pytest.fixture(autouse=True)
def no_handler_stays() -> Iterator[None]:
    """Restore signal handlers; otherwise processes of later tests would inherit an ignored Ctrl-C."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    if after != before:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])
    assert after == before


HOMES = count()


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Give each test its own home and none of the caller's keys; subprocesses treat warnings as errors."""
    for name in os.environ:
        if name.startswith(("OPENAI_", "LANGCHAIN_", "LANGSMITH_", "LANGGRAPH_", "WAKELOOP_", "COLUMNS")):
            monkeypatch.delenv(name)
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(HOMES))
    if Level.belt == "real":  # the other belts write to no folder
        home.mkdir(parents=True)
    monkeypatch.setenv("PYTHONWARNINGS", "error,ignore::ResourceWarning")  # clients stay open to the end
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
