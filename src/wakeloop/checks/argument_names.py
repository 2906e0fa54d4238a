"""Messages for unknown arguments, with the right name."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from types import MappingProxyType
from typing import Any, TypeVar, cast

from wakeloop.errors import ArgumentError
from wakeloop.settings import ALIASES, translate_word
from wakeloop.text.wording import suggest

F = TypeVar("F", bound=Callable[..., Any])

_INPUT = "It belongs to the input: agent.invoke({'messages': […], 'todos': […]})."
_CONFIG = "It belongs to the config of a run: agent.invoke(…, {'configurable': {'thread_id': 'NAME'}})."
_MODEL_OPTION = "It is an option of the model: model=ChatOpenAI(…)."
_COMPILE = "Use build_todo_graph(…).compile(…), which takes it."

# Names from create_react_agent, create_agent and other builders, whose right name is spelled too differently
# for a suggestion by spelling alone.
AGENT_HINTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("prompt", "instructions"), "Pass the system message as system_prompt=…."),
        "llm": "Pass the model as model=….",
        "middleware": "An agent takes no LangChain middleware. Use pre_model_hook or verify, or "
        "WakeLoopMiddleware inside create_agent.",
        **dict.fromkeys(("preset", "profile"), "Pass the name of a preset as settings='NAME'."),
        **dict.fromkeys(
            ("output_schema", "structured_output"), "Pass the schema of the answer as response_format=…."
        ),
        **dict.fromkeys(("todos", "items", "plan", "goal"), _INPUT),
        **dict.fromkeys(("interrupt_before", "interrupt_after", "debug", "cache"), _COMPILE),
        "post_model_hook": "Not supported. Use verify=…, which is asked before an item is completed.",
        **dict.fromkeys(("thread_id", "config"), _CONFIG),
        "recursion_limit": "It belongs to the config of a run: agent.invoke(…, {'recursion_limit': 100}). "
        "To limit requests, pass settings={'max_requests': …}.",
        **dict.fromkeys(
            ("temperature", "top_p", "api_key", "base_url", "max_tokens", "model_options", "model_kwargs"),
            _MODEL_OPTION,
        ),
    }
)
GRAPH_HINTS: Mapping[str, str] = MappingProxyType(
    {**AGENT_HINTS, **dict.fromkeys(("checkpointer", "store"), "Pass it to compile(…) of the graph.")}
)
MIDDLEWARE_HINTS: Mapping[str, str] = MappingProxyType(
    {
        **{name: AGENT_HINTS[name] for name in ("preset", "profile", "todos", "goal")},
        **dict.fromkeys(
            ("prompt", "instructions"),
            "Pass what the model reads about the list as system_prompt=… or tool_description=….",
        ),
        **dict.fromkeys(
            ("model", "tools", "checkpointer", "store", "state_schema", "response_format"),
            "Pass it to create_agent.",
        ),
        "interrupt_on": "Use HumanInTheLoopMiddleware; for the plan, settings={'approve_plan': 'first'}.",
    }
)
EDIT_HINTS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("complete", "completed", "close", "finish"), "Pass the ids to close as done=….")
)


def reject_unknown_arguments(hints: Mapping[str, str]) -> Callable[[F], F]:
    """Make a function raise an `ArgumentError` for an unknown keyword.

    Python's own `TypeError` names the wrong argument, but not the one that was meant.
    """

    def decorate(function: F) -> F:
        known = tuple(name for name in signature(function).parameters if name != "self")
        called = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

        @wraps(function)
        def call_with_known(*args: Any, **named: Any) -> Any:
            for name in named:
                if name not in known:
                    hint = _find_hint(name, known, hints)
                    raise ArgumentError(f"{called} has no argument {name!r}. {hint}")
            return function(*args, **named)

        return cast(F, call_with_known)

    return decorate


def _find_hint(name: str, known: tuple[str, ...], hints: Mapping[str, str]) -> str:
    if name in hints:
        return hints[name]
    if "settings" in known:
        setting = name if name in ALIASES else translate_word(name)
        if setting:
            return f"It is a setting: settings={{{setting!r}: …}}."
    return suggest(name, known)
