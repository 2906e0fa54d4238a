"""Attributes that are computed once: no object waits for another, no fork inherits a lock."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from wakeloop import preset
from wakeloop.dialects import get_dialect
from wakeloop.dialects.base import Dialect
from wakeloop.platform import child_processes
from wakeloop.platform.computed_once import computed_once
from wakeloop.server import EnvironmentModel


class Slow:
    """Computes only when allowed to."""

    def __init__(self) -> None:
        self.asked, self.may = threading.Event(), threading.Event()

    @computed_once
    def number(self) -> int:
        """A number."""
        self.asked.set()
        assert self.may.wait(10)
        return 1


def test_it_is_computed_at_the_first_access_and_kept() -> None:
    looks: list[int] = []

    class Looked:
        @computed_once
        def it(self) -> list[int]:
            """It."""
            looks.append(1)
            return looks

    one = Looked()
    assert one.it is one.it is looks
    assert (looks, Looked.it.__doc__, vars(one)) == ([1], "It.", {"it": looks})


def test_one_object_does_not_wait_for_another() -> None:
    first, second = Slow(), Slow()
    second.may.set()
    other = threading.Thread(target=lambda: first.number)
    other.start()
    assert first.asked.wait(10)
    here = threading.Thread(target=lambda: second.number)
    here.start()
    here.join(5)
    waits = here.is_alive()
    first.may.set()
    other.join(10)
    assert not waits


def test_two_concurrent_accesses_see_one_value() -> None:
    slow = Slow()
    seen: list[Any] = []
    threads = [threading.Thread(target=lambda: seen.append(slow.number)) for _ in range(4)]
    for thread in threads:
        thread.start()
    slow.may.set()
    for thread in threads:
        thread.join(10)
    assert seen == [1] * 4


class Waiting(tuple):  # type: ignore[type-arg]
    """Tools that another thread iterates over until it is released."""

    __slots__ = ()
    looking, may = threading.Event(), threading.Event()

    def __iter__(self) -> Any:
        self.looking.set()
        assert self.may.wait(10)
        return super().__iter__()


def test_a_dialect_in_use_by_another_thread_does_not_block() -> None:
    held, free = (type(get_dialect("parley"))() for _ in range(2))
    assert isinstance(held, Dialect)
    object.__setattr__(held, "tools", Waiting(held.tools))
    other = threading.Thread(target=lambda: held.tool_names)
    other.start()
    assert Waiting.looking.wait(10)
    here = threading.Thread(target=lambda: free.tool_names)
    here.start()
    here.join(5)
    waits = here.is_alive()
    Waiting.may.set()
    other.join(10)
    here.join(10)
    assert not waits
    assert "todo_write" in free.tool_names
    assert preset("wakeloop").dialect == "parley"


def test_a_model_by_environment_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setenv("WAKELOOP_MODEL", "openai:x")
    monkeypatch.setattr("wakeloop.server.create_model", lambda name: made.append(name) or name)
    monkeypatch.setattr("wakeloop.server.bind_tools", lambda model, _: model)
    model = EnvironmentModel()
    assert (model._real, model._real, made) == ("openai:x", "openai:x", ["openai:x"])
    assert model.model_dump().get("_real") is None


@pytest.mark.parametrize(("version", "told"), [((3, 11, 9), ["after_in_child"]), ((3, 12, 0), [])])
def test_locks_of_other_packages_are_renewed_where_python_has_them(
    version: Any, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    registered: list[str] = []
    monkeypatch.setattr(os, "register_at_fork", lambda **hooks: registered.extend(hooks))
    monkeypatch.setattr(child_processes, "sys", SimpleNamespace(version_info=version))
    child_processes.free_locks_in_children.__wrapped__()
    assert registered == told
