"""The table of presets: every value, every tool, and what it costs when nothing moves."""

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import wakeloop
from wakeloop import LoopSettings, SettingsError, create_todo_agent, preset
from wakeloop.presets import PRESETS
from wakeloop.testing import ScriptedModel, calls, walk

SAME = {
    "inject_todo_instructions": True,
    "continuation_prompt": None,
    "nudge_items": 30,
    "reply_retries": 2,
    "printed_calls": "ask",
    "guard_rearms": False,
    "earn_wakes": 0,
    "retries_fall": False,
    "on_no_list": "accept",
    "force_call": "never",
    "on_question": "wake",
    "on_new_topic": "ignore",
    "verify_when": "claim",
    "audit": "off",
    "approve_plan": "off",
    "max_context": 0,
    "max_tokens": None,
    "max_cost": None,
    "prices": {},
    "max_seconds": None,
    "on_budget": "report",
    "finish_reason": "required",
    "tool_description": None,
    "prompts": {},
}
WAKELOOP = {
    **SAME,
    "max_idle_rounds": 10,
    "max_requests": 500,
    "dialect": "parley",
    "statuses": None,
    "repeats": "store",
    "max_items": 200,
    "in_progress": "at_most_one",
    "auto_continue": True,
    "max_wake_cycles": 25,
    "max_idle_wakes": 3,
    "stop_on_repeat": False,
    "nag_after": 5,
    "nag_every": 5,
    "nag_when": "open",
    "guard_retries": 1,
    "on_guard_exhausted": "proceed",
}
UNBOUNDED = {"max_idle_rounds": 0, "max_requests": None}
CUBEPI = {
    **WAKELOOP,
    **UNBOUNDED,
    "dialect": "write_todos",
    "max_items": None,
    "in_progress": "exactly_one",
    "max_wake_cycles": 0,
    "max_idle_wakes": 0,
}
FINISHING = {
    "repeats": "name",
    "max_idle_wakes": 5,
    "earn_wakes": 100,
    "guard_rearms": True,
    "reply_retries": 4,
    "printed_calls": "ask",
    "retries_fall": True,
    "force_call": "second",
    "on_question": "insist",
    "on_new_topic": "say",
    "max_context": None,
}
TABLE: dict[str, dict[str, Any]] = {
    "wakeloop": {**WAKELOOP, **FINISHING},
    "langchain": {**WAKELOOP, **FINISHING, "dialect": "write_todos", "in_progress": "any"},
    "agentparley": {
        **WAKELOOP,
        **UNBOUNDED,
        "statuses": ("done", "blocked"),
        "max_items": None,
        "in_progress": "any",
        "max_idle_wakes": 0,
        "nag_after": 0,
        "guard_retries": 0,
    },
    "loki": {
        **WAKELOOP,
        **UNBOUNDED,
        "dialect": "loki",
        "max_items": None,
        "in_progress": "any",
        "auto_continue": False,
        "max_wake_cycles": 10,
        "max_idle_wakes": 0,
        "stop_on_repeat": True,
        "nag_after": 0,
        "guard_retries": 0,
    },
    "lesson": {
        **WAKELOOP,
        **UNBOUNDED,
        "dialect": "checklist",
        "max_items": 20,
        "max_wake_cycles": 0,
        "max_idle_wakes": 0,
        "nag_after": 3,
        "nag_every": 1,
        "nag_when": "always",
        "guard_retries": 0,
    },
    "cubepi": CUBEPI,
    "cubepi-strict": {**CUBEPI, "guard_retries": 2, "on_guard_exhausted": "block"},
}


def test_these_are_all_presets_and_all_their_values() -> None:
    assert {name: settings.model_dump() for name, settings in PRESETS.items()} == TABLE


@pytest.mark.parametrize("name", TABLE)
def test_a_preset_is_named_frozen_and_varied_by_a_copy(name: str) -> None:
    settings = preset(name)
    varied = settings.model_copy(update={"max_wake_cycles": 7})
    assert isinstance(varied, LoopSettings)
    assert (varied.max_wake_cycles, varied.dialect) == (7, settings.dialect)
    assert settings.model_dump() == TABLE[name]
    with pytest.raises(SettingsError, match="max_wake_cycles"):
        settings.model_copy(update={"max_wake_cycle": 7})


# -- the tools -------------------------------------------------------------------------------------------

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def taking(**properties: Any) -> dict[str, Any]:
    """The parameters of a tool; those whose names end with `_` are optional."""
    required = [name for name in properties if not name.endswith("_")]
    return {
        "type": "object",
        "properties": {name.rstrip("_"): schema for name, schema in properties.items()},
    } | ({"required": required} if required else {})


def one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


def list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def parley(*statuses: str) -> dict[str, Any]:
    return {
        "todo_write": taking(items=list_of(STRING)),
        "todo_update": taking(id=INTEGER, status=one_of(*statuses), reason_=STRING),
        "todo_list": NOTHING,
    }


WHOLE = one_of("pending", "in_progress", "completed")
WRITE_TODOS = {"write_todos": taking(todos=list_of(taking(content=STRING, status=WHOLE)))}
TOOLS: dict[str, dict[str, Any]] = {
    "wakeloop": {
        **parley(),
        "todo_update": taking(
            ids=list_of(INTEGER),
            status_=one_of("in_progress", "done", "blocked", "cancelled", "open"),
            reason_=STRING,
        ),
    },
    "agentparley": parley("done", "blocked"),
    "loki": {
        "todo__init": taking(goal=STRING),
        "todo__add": taking(task=STRING),
        "todo__done": taking(id=INTEGER),
        "todo__list": NOTHING,
        "todo__clear": NOTHING,
    },
    "langchain": {
        "write_todos": taking(
            todos_=list_of(taking(content=STRING, status_=WHOLE)), completed_=list_of(STRING)
        )
    },
    "lesson": {"todo": taking(items=list_of(taking(id=STRING, text=STRING, status=WHOLE)))},
    "cubepi": WRITE_TODOS,
    "cubepi-strict": WRITE_TODOS,
}


NAMED = {
    "wakeloop": {("todo_write", "items"), *(("todo_update", name) for name in ("ids", "status", "reason"))},
    "langchain": {("write_todos", "todos"), ("write_todos", "completed")},
}


def bare(schema: Any) -> Any:
    """Return a schema without its descriptions."""
    if isinstance(schema, dict):
        words = {key for key in ("description", "title") if isinstance(schema.get(key), str)}
        return {key: bare(value) for key, value in schema.items() if key not in words}
    return [bare(one) for one in schema] if isinstance(schema, list) else schema


def tools_of(name: str) -> list[Any]:
    """Return the todo tools as a model gets them, with auto_continue on."""
    model = ScriptedModel("Hello.")
    settings = preset(name).model_copy(update={"auto_continue": True})
    create_todo_agent(model, settings=settings).invoke({"messages": [("user", "go")]})
    return model.bound[0]


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_has_its_name_and_its_exact_schema(name: str) -> None:
    tools = tools_of(name)
    assert {tool["type"] for tool in tools} == {"function"}
    assert {t["function"]["name"]: bare(t["function"]["parameters"]) for t in tools} == TOOLS[name]
    assert [t["function"]["name"] for t in tools] == list(TOOLS[name])


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_and_every_parameter_says_what_it_is_for(name: str) -> None:
    """Except those whose names say it, where every token counts."""
    tools = [tool["function"] for tool in tools_of(name)]
    assert all(tool["description"] for tool in tools)
    bare = {
        (tool["name"], parameter)
        for tool in tools
        for parameter, part in tool["parameters"]["properties"].items()
        if not part.get("description")
    }
    assert bare == NAMED.get(name, set())


# -- one item is written, and then the same text comes forever -------------------------------------------

PLAN = {
    "parley": ("todo_write", {"items": ["a"]}),
    "loki": ("todo__add", {"task": "a"}),
    "checklist": ("todo", {"items": [{"id": "1", "text": "a", "status": "in_progress"}]}),
    "write_todos": ("write_todos", {"todos": [{"content": "a", "status": "in_progress"}]}),
}


BEGUN = ["activate", "call_model", "validate_todos", "call_model", "finalization_guard"]
WALKS = {  # after the plan and the first text
    "wakeloop": [*["wake"] * 5, "correct"],
    "langchain": [*["wake"] * 5, "correct"],
    "agentparley": ["wake"] * 25,
    "loki": ["wake"],
    "lesson": [],
    "cubepi": ["correct"],
    "cubepi-strict": ["correct", "correct", "explain"],
}


@pytest.mark.parametrize("name", TABLE)
def test_the_walk_when_nothing_moves(name: str) -> None:
    settings = preset(name).model_copy(update={"auto_continue": True})
    model = ScriptedModel([calls(PLAN[settings.dialect]), *["Still at it."] * 26])
    again = [
        [*(["wake"] if step == "wake" else []), "call_model", "finalization_guard"] for step in WALKS[name]
    ]
    assert walk(create_todo_agent(model, settings=settings), "go") == [*BEGUN, *chain(*again)]


def test_the_core_names_no_system() -> None:
    """A system is a preset: the loop itself knows only dialects and settings."""
    root = Path(wakeloop.__file__).parent
    core = [root / f"{name}.py" for name in ("graph", "routes", "agent", "state")]
    rooms = ("nodes", "loop", "todos", "model", "thread", "channels")
    for path in [*core, *(path for room in rooms for path in sorted((root / room).glob("*.py")))]:
        code = "\n".join(line.partition("#")[0] for line in path.read_text(encoding="utf-8").split("\n"))
        for system in ("agentparley", "cubepi", '"loki"', '"lesson"', '"parley"', '"checklist"'):
            assert system not in code, f"{path.name} names {system}"
