"""Undoes the fix of each public bug, one at a time, and checks that its tests fail: `make reverts`.

Each row names a case, a file of the package, its text, and the text without the fix. The tests of the case
take one path, on a copy of the package; a case that still passes proves nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
REVERTS: dict[str, tuple[str, str, str]] = {
    "c01": (
        "todos/rounds.py",
        "if rules.one_write and len(writes) > 1:",
        "if False:",
    ),
    "c02": (
        "dialects/base.py",
        "return fix_surrogates(json.loads(value))",
        "return [value]",
    ),
    "c03": (
        "dialects/write_todos.py",
        'Literal["pending", "in_progress", "completed"] = Field(',
        "Any = Field(",
    ),
    "c04": (
        "model/reply.py",
        "return dialect.render_error(str(misfit))",
        "return None",
    ),
    "c05": (
        "todos/rounds.py",
        "if is_blank(draft.content):",
        "if False:",
    ),
    "c06": (
        "thread/thread_status.py",
        "counts = not message.tool_calls or (closing and wrote)",
        "counts = not message.tool_calls",
    ),
    "c07": (
        "loop/gates.py",
        "return 0 < limit <= case.idle_wakes",
        "return 0 < limit < case.idle_wakes",
    ),
    "c08": (
        "todos/items.py",
        'OPEN = frozenset(("pending", "in_progress"))',
        'OPEN = frozenset(("pending", "in_progress", "blocked"))',
    ),
    "c09": (
        "nodes/run_tools.py",
        "if passes_boundary(error):",
        "if False:",
    ),
    "c10": (
        "thread/repair.py",
        "    return results\n",
        "    return []\n",
    ),
    "c11": (
        "loop/activation.py",
        "kept: Ledger = {key: value for key, value in old.items() if key in names}",
        "kept: Ledger = {**old, 'refused': 'x'}",
    ),
    "c12": (
        "nodes/run_tools.py",
        "if passes_boundary(error):",
        "if False:",
    ),
    "c13": (
        "loop/activation.py",
        '"wake_cycles": 0,',
        '"wake_cycles": old.get("wake_cycles", 0),',
    ),
    "c14": (
        "loop/ruling.py",
        'return "wake"',
        'return "disabled"',
    ),
    "c15": (
        "loop/replies.py",
        "return over == 0 or",
        "return over == 1 or",
    ),
    "c16": (
        "text/marks.py",
        'return {KEY: {"kind": kind, **more}}',
        "return {}",
    ),
    "c17": (
        "nodes/nag.py",
        'find_last(ToolMessage, state["messages"])',
        'find_last(ToolMessage, state["messages"][::-1])',
    ),
    "c18": (
        "loop/activation.py",
        '"wake_cycles": 0,',
        '"wake_cycles": old.get("wake_cycles", 0),',
    ),
    "c19": (
        "thread/edits.py",
        "graph.update_state(config, target.build_update(update, todos), as_node=target.node)",
        'graph.update_state(config, target.build_update(update, todos), as_node="wake")',
    ),
    "c20": (
        "model/request.py",
        "return make_legal(wire, head, self.fill_prompt)",
        "return wire",
    ),
    "c21": (
        "model/request.py",
        'if "llm_input_messages" in result:',
        "if False:",
    ),
    "c22": (
        "model/reply.py",
        "for call in [*raw.tool_calls, *raw.invalid_tool_calls]:",
        "for call in raw.tool_calls:",
    ),
    "c23": (
        "model/finish_reasons.py",
        "def reply_problem(message: AIMessage, *, must_finish: bool = False) -> Problem | None:\n",
        (
            "def reply_problem(message: AIMessage, *, must_finish: bool = False) -> Problem | None:\n"
            "    return None\n"
        ),
    ),
    "c24": (
        "model/bindings.py",
        "return model.bind_tools(tools)",
        "return model.bind_tools(tools, parallel_tool_calls=False)",
    ),
    "c25": (
        "thread/repair.py",
        "    return results\n",
        "    return []\n",
    ),
    "c26": (
        "nodes/run_tools.py",
        "    if passes_boundary(error):",
        "    if True:",
    ),
    "c27": (
        "loop/gates.py",
        "return case.steps_left < case.costs.wake",
        "return False",
    ),
    "c28": (
        "state.py",
        "CheapDeltaChannel(merge_messages, snapshot_frequency=500)",
        "CheapDeltaChannel(merge_messages, snapshot_frequency=1)",
    ),
    "c29": (
        "agent.py",
        "graph.compile(checkpointer=checkpointer,",
        "graph.compile(checkpointer=None,",
    ),
    "c30": (
        "nodes/activate.py",
        'notes["began"] = list(began)',
        'notes["began"] = began',
    ),
    "c31": (
        "nodes/run_tools.py",
        'if getattr(tool, "coroutine", None) is not None and getattr(tool, "func", True) is None:',
        "if False:",
    ),
    "c32": (
        "server.py",
        "return create_todo_agent(EnvironmentModel())",
        "return create_todo_agent(EnvironmentModel(), checkpointer=True)",
    ),
    "c33": (
        "model/tool_calls.py",
        'return (_NOT_IN_NAME.sub("_", name) if name else "unknown")[:LONGEST_NAME]',
        'return name or "unknown"',
    ),
    "c34": (
        "model/tool_calls.py",
        'update["content"] = _rewrite_blocks(message.content, pairs, unfinished)',
        "pass",
    ),
    "c35": (
        "text/marks.py",
        'return "".join(_draw.choices(_LETTERS, k=9))',
        'return "call_" + "".join(_draw.choices(_LETTERS, k=40))',
    ),
    "c36": (
        "model/finish_reasons.py",
        '"stop_reason", "stopReason",',
        "",
    ),
    "c37": (
        "model/reply_watcher.py",
        "if places and places <= _CALLS:",
        "if False:",
    ),
    "c38": (
        "model/reply_watcher.py",
        "if not (kind or unparsed is not None or isinstance(error, OutputParserException)):",
        "if True:",
    ),
    "c39": (
        "model/bindings.py",
        "return any(isinstance(message, AIMessage) and message.tool_calls for message in wire)",
        "return False",
    ),
    "c40": (
        "model/finish_reasons.py",
        'return "refused"',
        "return None",
    ),
    "c41": (
        "text/characters.py",
        'return str(fix_surrogates(str(text))).replace("\\0", "")',
        "return str(fix_surrogates(str(text)))",
    ),
    "c42": (
        "dialects/schemas.py",
        'f"item {part + 1}"',
        'f"item {part}"',
    ),
    "c43": (
        "model/finish_reasons.py",
        'return "cut" if must_finish and unfinished else None',
        'return "cut" if unfinished else None',
    ),
    "c44": (
        "loop/progress.py",
        'return "looping" if 0 < settings.max_idle_rounds <= idle else None',
        "return None",
    ),
    "c45": (
        "model/request.py",
        'if "llm_input_messages" in result:',
        "if False:",
    ),
    "c46": (
        "platform/response_bodies.py",
        "if isinstance(first, BaseModel | Mapping):",
        "if False:",
    ),
    "c47": (
        "model/tool_calls.py",
        '_OLD = frozenset(("tool_calls", "function_call"))',
        '_OLD = frozenset(("tool_calls",))',
    ),
    "c52": (
        "text/marks.py",
        'if isinstance(source, str) and source.strip() not in ("", KEY):',
        "if False:",
    ),
    "c53": (
        "model/reply_kinds.py",
        "if may_call and promises_call(message):",
        "if False:",
    ),
    "c54": (
        "model/reply_kinds.py",
        "start, printed = find_printed_calls(text, tools)",
        "start, printed = 0, []",
    ),
    "c55": (
        "model/reply_kinds.py",
        "text = strip_end_marks(strip_thoughts(whole))",
        "text = strip_end_marks(whole)",
    ),
    "c56": (
        "loop/replies.py",
        'return notes.get("spoke", False) or notes.get("wrote", False)',
        "return True",
    ),
    "c57": (
        "middleware/watched_request.py",
        'return "ended_elsewhere" if self.answered is None else "failed"',
        "return None",
    ),
    "c58": (
        "loop/gates.py",
        "return bool(case.open or case.unmet) and case.awaited is not None",
        "return False",
    ),
    "c59": (
        "loop/silences.py",
        'if woken == "topic" or (woken == "question" and settings.on_question != "wake"):',
        "if False:",
    ),
    "c60": (
        "nodes/activate.py",
        'notes["uncalled"] = "said" if text else "unsaid"',
        "pass",
    ),
    "c61": (
        "thread/exchange.py",
        'if "unseen" in self.ledger and self.active:',
        "if False:",
    ),
    "c62": (
        "nodes/run_tools.py",
        'update["todos"] = {"given": todos, "by": by, "step": step}',
        "pass",
    ),
    "c63": (
        "channels/parallel_agents.py",
        'base = getattr(right, "began", None)',
        "base = None",
    ),
    "c64": (
        "loop/replies.py",
        'return "review" in call and not call["review"].get("alone")',
        "return False",
    ),
    "c65": (
        "checks/run_inputs.py",
        "if not is_package_request(value):",
        "if True:",
    ),
    "c66": (
        "nodes/activate.py",
        "if not has_checkpointer(config):",
        "if False:",
    ),
    "c67": (
        "thread/tool_reviews.py",
        "if misfit := find_misfit(decision.args, schema):",
        "if misfit := None:",
    ),
    "c68": (
        "loop/silences.py",
        'return "subagent" if woken and subagents else None',
        "return None",
    ),
    "c69": (
        "loop/gates.py",
        "stops=lambda case: is_done(case) and case.gave_up,",
        "stops=lambda case: False,",
    ),
    "c70": (
        "thread/judges.py",
        "with raised_as(self.kind, self.name, self.model):\n            verdict = self.function(*given)",
        "if True:\n            verdict = self.function(*given)",
    ),
    "c71": (
        "thread/thread_status.py",
        "elif view.failure:",
        "elif False:",
    ),
    "c73": (
        "model/reply_watcher.py",
        "self.too_long = find_length_refusal(error) if self.takes_refusals else None",
        "self.too_long = None",
    ),
    "c93": (
        "loop/replies.py",
        'if call["id"] in reviews:',
        "if False:",
    ),
    "c74": (
        "model/tool_calls.py",
        "if part and name == part * (len(name) // len(part)):",
        "if False:",
    ),
    "c75": (
        "platform/openai_replies.py",
        "if isinstance(arguments, dict):",
        "if False:",
    ),
    "c76": (
        "platform/openai_replies.py",
        "sent.update({name: kept[name] for name in REASONING_FIELDS if name in kept})",
        "pass",
    ),
    "c77": (
        "model/tool_results.py",
        "    if not others:\n",
        "    if True:\n",
    ),
    "c78": (
        "platform/tool_boundary.py",
        "return _is_task_cancelled()",
        "return True",
    ),
    "c79": (
        "cli/mcp_tools.py",
        "f\"{name.strip('_-')[: MAX_NAME - 1 - len(suffix)] or 'tool'}_{suffix}\"",
        "name",
    ),
    "c80": (
        "channels/conversation.py",
        "if isinstance(item, RemoveMessage):\n                merged",
        "if isinstance(write, list) and isinstance(item, RemoveMessage):\n                merged",
    ),
    "c81": (
        "platform/tool_boundary.py",
        "return isinstance(error, SystemExit) and _comes_from_signal_handler(error.__traceback__)",
        "return not isinstance(error, Exception)",
    ),
    "c82": (
        "platform/outages.py",
        "if outage is None:",
        "if True:",
    ),
    "c83": (
        "sessions/mailbox.py",
        'if callable(method) and not name.startswith("_"):',
        "if False:",
    ),
    "c84": (
        "tools/folder.py",
        "if any(folded.is_relative_to(str(path).casefold()) for path in self.protected):",
        "if False:",
    ),
    "c85": (
        "cli/streams.py",
        "os.dup2(STDERR, STDOUT)",
        "pass",
    ),
    "c86": (
        "cli/streams.py",
        'f".wakeloop-{token_hex(8)}"',
        'f".wakeloop-{os.getpid()}"',
    ),
    "c87": (
        "model/reply_watcher.py",
        "if isinstance(error, RecursionError) and",
        "if False and",
    ),
    "c88": (
        "text/secret_formats.py",
        '    KeyFormat("Tavily", r"tvly-[\\w-]{20,}+"),\n',
        "",
    ),
    "c89": (
        "loop/progress.py",
        ' or any(polls(tools.get(call["name"])) for call, _ in pairs):',
        ":",
    ),
    "c91": (
        "platform/openai_replies.py",
        'converted.message.additional_kwargs["refusal"] = refusal',
        "pass",
    ),
    "c92": (
        "loop/progress.py",
        'text = text_of(messages[-1]) if messages else ""',
        "text = text_of(messages[-1])",
    ),
    "c94": (
        "platform/tool_boundary.py",
        'raise ToolError(f"SystemExit: {error}") from error',
        "raise",
    ),
    "c95": (
        "cli/mcp_servers.py",
        "call.set_exception(message)",
        "call.set_exception(TimeoutError())",
    ),
    "c96": (
        "cli/mcp_tools.py",
        "except Exception as error:  # noqa: BLE001 - a broken schema can raise anything",
        "except ZeroDivisionError as error:",
    ),
    "c97": (
        "cli/store.py",
        'connection.text_factory = lambda text: text.decode("utf-8", "replace")',
        "pass",
    ),
    "c98": (
        "sessions/langgraph_server/server_host.py",
        "if _is_about_to_run(snapshot, items):",
        "if False:",
    ),
    "c99": (
        "loop/replies.py",
        'notes.get("spoke", False) or notes.get("wrote", False)',
        'notes.get("spoke", False) or "writes" in notes',
    ),
    "c100": (
        "model/reply_kinds.py",
        "if is_blank(text) or is_filler(text, prompts):",
        "if is_blank(text):",
    ),
    "c101": (
        "model/reply_kinds.py",
        "if is_faked(text, tools, prompts):",
        "if False:",
    ),
    "c102": (
        "loop/replies.py",
        '"empty" if first else "silent"',
        '"empty"',
    ),
    "c103": (
        "loop/silences.py",
        'return settings.force_call == "second" and bool(open_count) and unanswered',
        "return False",
    ),
}


def files_of(case: str) -> list[str]:
    """Return the files that hold tests of a case."""
    named = re.compile(rf"def test_{case}_")
    found = (path for path in (ROOT / "tests").rglob("test_*.py") if "live" not in path.parts)
    return sorted(os.fspath(path) for path in found if named.search(path.read_text(encoding="utf-8")))


def reverted(case: str, package: Path) -> None:
    """Undo a fix in a copy of the package, in both places if its text occurs twice."""
    file, there, without = REVERTS[case]
    path = package / "wakeloop" / file
    text = path.read_text(encoding="utf-8")
    if there not in text:
        raise SystemExit(
            f"{case}: {file} holds {there!r} no more; write down what would take its mending back"
        )
    path.write_text(text.replace(there, without), encoding="utf-8")


def is_red(case: str) -> tuple[bool, str]:
    """Return whether the tests of a case fail without its fix, and their output."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "src"
        shutil.copytree(ROOT / "src", package, ignore=shutil.ignore_patterns("__pycache__"))
        reverted(case, package)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "--paths",
            "one",
            "-m",
            "not slow",
            "-k",
            f"test_{case}_",
        ]
        told = subprocess.run(
            [*command, *files_of(case)], cwd=ROOT, env={**os.environ, "PYTHONPATH": os.fspath(package)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    return told.returncode == 1, told.stdout.strip().splitlines()[-1]


def main() -> int:
    green = []
    for case in sys.argv[1:] or REVERTS:
        red, said = is_red(case)
        print(f"{case}  {'red' if red else 'GREEN'}  {REVERTS[case][0]}: {said}", flush=True)
        green += [] if red else [case]
    return len(green)


if __name__ == "__main__":
    sys.exit(main())
