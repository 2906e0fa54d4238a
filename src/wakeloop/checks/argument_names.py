"""Names of arguments that are none, and the right ones."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from types import MappingProxyType
from typing import Any, TypeVar, cast

from wakeloop.errors import ArgumentError
from wakeloop.settings import ALIASES, LoopSettings

F = TypeVar("F", bound=Callable[..., Any])

_PROMPT = "the text for the system message is system_prompt=…"
_STEPS = "it goes in with the run, as config={'recursion_limit': N}"
_COMPILE = "build_todo_graph(…).compile(…) takes it"
_BEGINS = "it goes in with the input, as agent.invoke({'messages': […], 'todos': […]})"
_FORMAT = "the schema of the answer is response_format=…"
_OPTION = "it is the model's own: make the model with it, as in model=ChatOpenAI(…)"
_SUBAGENT = "a subagent is a tool of yours, or a session of its own: session_tools of wakeloop.sessions"
AGENT_HINTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("prompt", "system", "system_message", "instructions", "instruction"), _PROMPT),
        **dict.fromkeys(("state_modifier", "messages_modifier", "system_text"), _PROMPT),
        **dict.fromkeys(("llm", "chat_model", "model_name", "model_id"), "the model is model=…"),
        **dict.fromkeys(("functions", "tool", "toolkit"), "tools go in as a list, tools=[…]"),
        **dict.fromkeys(("middleware", "middlewares"), (
            "LangChain's middleware is not taken; pre_model_hook, verify, response_format and a graph around "
            "the agent have its place"
        )),
        **dict.fromkeys(("preset", "profile", "mode"), "a preset's name is settings='NAME'"),
        **dict.fromkeys(("options", "loop_settings", "setting"), "settings go in as settings=…"),
        **dict.fromkeys(("memory", "saver", "checkpoint", "checkpointers"), "a saver is checkpointer=…"),
        **dict.fromkeys(("output_schema", "response_schema", "schema", "output_type", "output"), _FORMAT),
        **dict.fromkeys(("structured_output", "format", "response_model", "output_format"), _FORMAT),
        **dict.fromkeys(("context", "config_schema", "context_type"), "a context's type is context_schema=…"),
        **dict.fromkeys(("state", "state_type"), "a subclass of TodoState is state_schema=…"),
        **dict.fromkeys(("todos", "items", "todo_list", "plan", "goal", "todo_goal"), _BEGINS),
        **dict.fromkeys(("recursion_limit", "max_steps", "max_iterations", "max_turns"), _STEPS),
        **dict.fromkeys(("interrupt_before", "interrupt_after", "debug", "cache"), _COMPILE),
        **dict.fromkeys(("verifier", "validator", "validate", "check"), "a verifier is verify=…"),
        **dict.fromkeys(("hitl", "human_in_the_loop", "approvals", "approve", "ask_for"), (
            "tools to be asked about are interrupt_on={'NAME': True}, "
            "and the plan is settings={'approve_plan': 'first'}"
        )),
        "post_model_hook": "there is none; verify is asked before an item is completed",
        **dict.fromkeys(("hook", "pre_hook", "message_hook"), "a hook is pre_model_hook=…"),
        **dict.fromkeys(("thread_id", "thread", "config"), (
            "it goes in with the run, as agent.invoke(…, {'configurable': {'thread_id': 'NAME'}})"
        )),
        **dict.fromkeys(("temperature", "api_key", "base_url", "max_tokens", "model_kwargs"), _OPTION),
        **dict.fromkeys(("subagents", "agents", "handoffs"), _SUBAGENT),
        "version": "there are model, tools, system_prompt and settings, and one way to run tools",
        "max_wakes": "the budget is settings={'max_wake_cycles': N}",
    }
)  # fmt: skip
GRAPH_HINTS: Mapping[str, str] = MappingProxyType(
    {**AGENT_HINTS, **dict.fromkeys(("checkpointer", "store"), "the graph's own compile(…) takes it")}
)
_LIST = "what the model reads of the list is system_prompt=… and tool_description=…"
_CREATE = "create_agent takes it"
MIDDLEWARE_HINTS: Mapping[str, str] = MappingProxyType(
    {
        **{
            name: AGENT_HINTS[name]
            for name in ("preset", "profile", "mode", "options", "loop_settings", "setting")
        },
        **{name: AGENT_HINTS[name] for name in ("verifier", "validator", "validate", "check", "max_wakes")},
        **{
            name: AGENT_HINTS[name]
            for name in ("todos", "items", "plan", "goal", "recursion_limit", "max_steps")
        },
        **dict.fromkeys(("prompt", "instructions", "description", "tool_message"), _LIST),
        **dict.fromkeys(
            ("model", "tools", "checkpointer", "store", "state_schema", "response_format"), _CREATE
        ),
        "interrupt_on": "HumanInTheLoopMiddleware has it; the plan is settings={'approve_plan': 'first'}",
    }
)
EDIT_HINTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("complete", "completed", "close", "finish", "finished"), "ids to close are done=…"),
        **dict.fromkeys(("todos", "items", "new", "append", "write"), "texts of new items are add=…"),
        **dict.fromkeys(("delete", "drop", "discard"), "ids to take away are remove=…"),
        **dict.fromkeys(("begin", "in_progress", "started"), "ids to set in progress are start=…"),
        **dict.fromkeys(("blocked", "hold"), "ids and reasons are block={id: 'reason'}"),
        **dict.fromkeys(("cancelled", "canceled", "abort"), "ids to cancel are cancel=…"),
        **dict.fromkeys(("open", "pending", "undo", "undone", "reset"), "ids to open again are reopen=…"),
        **dict.fromkeys(("rename", "update", "text", "content", "reword"), "new texts are edit={id: 'text'}"),
        **dict.fromkeys(("empty", "clean", "wipe", "init"), "an empty list is clear=True"),
        **dict.fromkeys(("todo_goal", "purpose"), "the goal is goal='…'"),
        **dict.fromkeys(("thread_id", "thread"), (
            "the thread is the second argument, {'configurable': {'thread_id': 'NAME'}}"
        )),
    }
)  # fmt: skip


def reject_unknown_arguments(guesses: Mapping[str, str]) -> Callable[[F], F]:
    """Answer an argument that a function does not have with one sentence: an `ArgumentError`."""

    def around(function: F) -> F:
        known = tuple(name for name in signature(function).parameters if name != "self")
        called = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

        @wraps(function)
        def checked(*args: Any, **named: Any) -> Any:
            for name in named:
                if name not in known:
                    raise ArgumentError(_sentence(called, name, known, guesses))
            return function(*args, **named)

        return cast(F, checked)

    return around


def _sentence(function: str, name: str, known: tuple[str, ...], guesses: Mapping[str, str]) -> str:
    told = guesses.get(name)
    if told is None and (name in LoopSettings.model_fields or name in ALIASES) and "settings" in known:
        told = f"it is a setting, as settings={{{name!r}: …}}"
    if told is None:
        near = get_close_matches(name, known, n=1)
        told = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"{function} has no argument {name!r}: {told}{'' if told.endswith('?') else '.'}"
