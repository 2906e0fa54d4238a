"""Finds tool calls that a model wrote as plain text.

`docs/models.md` lists the forms by model family, and a test compares the two.
"""

import ast
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from wakeloop.text.thoughts import END_MARKS, FENCE, strip_end_marks

_JSON = json.JSONDecoder(strict=False)
_NAME_KEYS = ("name", "tool_name", "tool", "function", "function_name", "recipient_name", "action")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input", "action_input")
_ENVELOPES = ("tool_calls", "tool_uses", "tool_call", "function_call")  # keys of a message that holds calls
_MOST_TRIES = 64  # places at which calls may begin; a long program has thousands of braces
_LONGEST_CODE = 20_000  # characters of a call in Python's form
_NAME = r"[A-Za-z_][\w.-]*"
_MARK = re.compile(  # around calls: the opening and closing tokens of all families
    r"</?(?:\w+:|\uff5c+DSML\uff5c+)?"
    r"(?:tool_?(?:calls?|use|code)|tools|function_?calls?)>"  # Hermes, Qwen, GLM, MiniMax
    r"|<[|\uff5c]?/?(?:tool[_▁]?calls?|python_(?:tag|start|end)|action|plugin|START_ACTION|END_ACTION|tools_)"
    r"[^<>{}\n]{0,30}[|\uff5c]?>"  # Granite, Phi, Kimi, DeepSeek, Llama, InternLM, Command R, LFM, Gemma 4
    r"|</?(?:start|end)_function_call>"  # FunctionGemma
    r"|\[/?TOOL_CALLS\]",  # Mistral
    re.IGNORECASE,
)
_SEPARATOR = re.compile(  # between a name and its arguments
    r"(?:\s|\[CALL_ID\][\w-]*|\[ARGS\]|<[|\uff5c]tool[_▁]call[_▁]argument[_▁]begin[|\uff5c]>|<\uff5ctool▁sep\uff5c>|<tool_sep>"
    r"|<\|channel\|>(?:commentary|analysis)|<\|constrain\|>|<\|message\|>|```json\b|\bjson\b|\bcode\b"
    r"|\bAction Input\b|:)*"
)
_NAMED = re.compile(
    rf"(?:function\s*<\uff5ctool▁sep\uff5c>|call:|>>>|Action:[ \t]*|"
    rf"(?:<\|start\|>)?(?:assistant\s*)?(?:<\|channel\|>)?(?:(?:commentary|analysis)\s+)?to=)?"
    rf"(?P<name>{_NAME})(?::\d+)?"
)
_TAGGED = re.compile(
    rf"<(?:\uff5c+DSML\uff5c+)?(?:function=|function name=\"?|invoke name=\"?)(?P<name>{_NAME})\"?\s*>"
)
_TAGGED_END = re.compile(r"</(?:\uff5c+DSML\uff5c+)?(?:function|invoke)>")
_PARAMETER = re.compile(
    r"<(?:\uff5c+DSML\uff5c+)?parameter(?:=(?P<key>[^>\n]+)|\s+name=\"(?P<named>[^\"\n]+)\"[^>\n]*)>"
    r"(?P<value>.*?)(?:</(?:\uff5c+DSML\uff5c+)?parameter>|\Z)",
    re.DOTALL,
)
_PAIR = re.compile(r"\s*<arg_key>(?P<key>[^<]*)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>", re.DOTALL)
_SPACE, _BETWEEN, _FUNCTOOLS = re.compile(r"\s*"), re.compile(r"[ \t\r\n,;]*"), re.compile(r"functools(?=\[)")
_PARENTHESIS = re.compile(r"\s*\);?")
_CLOSED_FENCE = re.compile(r"\s*```")
_ACTION = re.compile(r"(?:Action:[ \t]*)?")
_FENCE = re.compile(  # some models write the whole block on one line
    r"```(?:json|jsonc|tool_code|tool_calls?)?[ \t]*(?:\r?\n|(?=[\[{]))", re.IGNORECASE
)
_BROKEN = re.compile(rf"""["'](?:{"|".join(_NAME_KEYS)})["']\s*:\s*["']([^"'\n]+)["']""")
_START = re.compile(  # where calls may begin: a mark or tag anywhere, the rest at the start of a line
    rf"{_MARK.pattern}|<(?:\uff5c+DSML\uff5c+)?(?:function=|function name=|invoke name=)"
    rf"|to=functions\.|^[ \t]*(?:Action:[ \t]*)?```|^ {{0,3}}(?:\[\s*)?\{{|^functools(?=\[)|^functions\."
    rf"|^>>>(?={_NAME}\n)|^Action:[ \t]*(?={_NAME}\s*\nAction Input:)"
    rf"|^{_NAME}(?=\(\{{|\[ARGS\])|\A\[?(?={_NAME}\()",
    re.IGNORECASE | re.MULTILINE,
)
_TILDES = re.compile(r"^([ \t]*)~~~", re.MULTILINE)  # the other fence of Markdown
_BACKTICKS = re.compile(r"^`([\[{].*[\]}])`(?=\s*$)", re.MULTILINE)  # around a whole line
_CHANNEL = re.compile(  # what comes before `to=functions.`
    r"(?:<\|start\|>)?(?:assistant\s*)?(?:<\|channel\|>)?(?:(?:commentary|analysis)\s+)?\Z"
)
_LONGEST_CHANNEL = 80  # characters
_LAST = ("}", "]", ")", ">", "`")  # how calls end; a call without arguments ends with its name, after a mark


@dataclass(frozen=True, slots=True)
class PrintedCall:
    """A call as text: the tool and its arguments, which are a string if they are not a JSON object."""

    name: str
    args: dict[str, Any] | str


def find_printed_calls(text: str, tools: Collection[str]) -> tuple[int, list[PrintedCall]]:
    """Return the calls that a reply ends with, and where they begin; `[]` if it does not end with any.

    Only calls of the given tools count. Several in a row count if nothing stands between them.

    >>> find_printed_calls('I look. <tool_call>{"name": "look", "arguments": {}}</tool_call>', {"look"})
    (8, [PrintedCall(name='look', args={})])
    """
    text = _TILDES.sub(r"\1```", strip_end_marks(text))
    text = _BACKTICKS.sub(r" \1 ", text).rstrip()  # neither moves anything
    if not (text.endswith(_LAST) or "<" in text[-_MOST_TRIES:]) or not any(name in text for name in tools):
        return len(text), []
    for start in _find_starts(text):
        calls = _CallReader(text, tools).read_from(start)
        if calls:
            return start, calls
    return len(text), []


def _find_starts(text: str) -> Iterator[int]:
    """Yield the places where the calls at the end may begin, the first one first."""
    places: list[int] = []
    for found in _START.finditer(text):
        start = found.start()
        if found[0] == "to=functions.":
            channel = _CHANNEL.search(text, max(0, start - _LONGEST_CHANNEL), start)
            start = channel.start() if channel else start
        line = text[text.rfind("\n", 0, start) + 1 : start]
        if not line.lstrip().startswith(">"):  # not in a quotation
            places.append(start)
    fences = 0
    counted = 0
    for start in places[-_MOST_TRIES:]:
        fences += text.count(FENCE, counted, start)
        counted = start
        if not fences % 2:  # not in a block of code
            yield start


@dataclass(slots=True)
class _CallReader:
    """Reads calls one after another up to the end of a reply."""

    text: str
    tools: Collection[str]
    place: int = 0
    marked: bool = False  # whether a mark says that calls follow
    found: list[PrintedCall] = field(default_factory=list)

    def read_from(self, start: int) -> list[PrintedCall]:
        """Return the calls from a place on; `[]` if anything else is there."""
        self.place = start
        while self.skip_marks() < len(self.text):
            before = self.place
            for read in (self.read_fence, self.read_tagged, self.read_json, self.read_named, self.read_code):
                if read():
                    break
            else:
                if not self.read_broken():
                    return []
            if self.place <= before:
                return []
        return self.found

    def skip_marks(self) -> int:
        """Skip the tokens around calls, and return the place after them."""
        while True:
            self.place = skip(_BETWEEN, self.text, self.place)
            for kind in (_MARK, END_MARKS, _FUNCTOOLS):
                if mark := kind.match(self.text, self.place):
                    break
            else:
                return self.place
            self.marked = True
            self.place = mark.end()

    def accept(self, calls: Sequence[PrintedCall | None], end: int) -> bool:
        """Take calls if all are of known tools; the next one begins at `end`."""
        known = []
        for call in calls:
            name = self.resolve(call.name) if call else None
            if call is None or name is None:
                return False
            known.append(PrintedCall(name, call.args))
        if known:
            self.found += known
            self.place = end
        return bool(known)

    def resolve(self, name: str) -> str | None:
        """Return the tool that a name means: servers print `functions.look` and `look.call`, too."""
        for known in (name, name.removeprefix("functions."), name.removesuffix(".call")):
            if known in self.tools:
                return known
        return None

    def read_fence(self) -> bool:
        """Read a fenced block of JSON, or of code for tools, that holds nothing but calls."""
        opened = _ACTION.match(self.text, self.place)
        fence = opened and _FENCE.match(self.text, opened.end())
        if not fence:
            return False
        end = self.text.find(FENCE, fence.end())
        body = self.text[fence.end() : end if end >= 0 else len(self.text)]
        inner = _CallReader(body.rstrip(), self.tools, marked="tool" in fence[0].lower())
        return self.accept(inner.read_from(0), end + len(FENCE) if end >= 0 else len(self.text))

    def read_json(self) -> bool:
        """Read an object, or a list of objects, with a name and arguments."""
        if not self.text.startswith(("{", "["), self.place):
            return False
        try:
            value, end = _JSON.raw_decode(self.text, self.place)
        except (ValueError, RecursionError):
            return False
        return self.accept([_read_object(part, marked=self.marked) for part in _unwrap(value)], end)

    def read_tagged(self) -> bool:
        """Read `<function=NAME>` or `<invoke name="NAME">`, with JSON or with parameters in tags."""
        tag = _TAGGED.match(self.text, self.place)
        if tag is None or self.resolve(tag["name"]) is None:
            return False
        closing = _TAGGED_END.search(self.text, tag.end())
        end = closing.end() if closing else len(self.text)
        body = self.text[tag.end() : closing.start() if closing else end].strip()
        args: dict[str, Any] | str = {}
        for found in _PARAMETER.finditer(body):
            args[found["key"] or found["named"]] = _parse_value(found["value"].strip("\n"))  # type: ignore[index]
        if body and not args:
            args = _parse_arguments(body)
        return self.accept([PrintedCall(tag["name"], args)], end)

    def read_named(self) -> bool:
        """Read a name and then its arguments: JSON, JSON in parentheses, or pairs in tags."""
        named = _NAMED.match(self.text, self.place)
        if named is None or (name := self.resolve(named["name"])) is None:
            return False
        end = named.end()
        if named[0].startswith("call:") and self.text.startswith("{", end):
            return self.accept([PrintedCall(name, self.read_raw(end))], self.find_closing(end))
        args: dict[str, Any] = {}
        while pair := _PAIR.match(self.text, skip(_SEPARATOR, self.text, end)):
            args[pair["key"].strip()] = _parse_value(pair["value"])
            end = pair.end()
        if args:
            return self.accept([PrintedCall(name, args)], end)
        if self.text.startswith("({", end):
            return self.read_arguments(name, end + 1, _PARENTHESIS)
        start = skip(_SEPARATOR, self.text, end)
        if self.text.startswith("{", start):
            fenced = FENCE in self.text[end:start]
            is_call = self.marked or "functions." in named[0]
            return self.read_arguments(name, start, _CLOSED_FENCE if fenced else None, is_call=is_call)
        alone = self.marked and self.find_closing(end) == skip(_SPACE, self.text, end)
        return alone and self.accept([PrintedCall(name, {})], end)

    def read_arguments(
        self, name: str, start: int, closing: re.Pattern[str] | None, *, is_call: bool = False
    ) -> bool:
        """Read a call's arguments from a place on, and what closes them.

        Where it `is_call` in any case, arguments that are not JSON are malformed ones.
        """
        try:
            value, end = _JSON.raw_decode(self.text, start)
        except (ValueError, RecursionError):
            malformed = [PrintedCall(name, self.read_raw(start))]
            return is_call and self.accept(malformed, self.find_closing(start))
        closed = closing.match(self.text, end) if closing else None
        if closing is _PARENTHESIS and closed is None:
            return False
        return self.accept([PrintedCall(name, value)], closed.end() if closed else end)

    def read_code(self) -> bool:
        """Read calls in Python's form, which some models use between marks or as the whole text."""
        if not (self.marked or self.place == 0):
            return False
        end = self.find_closing(self.place)
        code = self.text[self.place : end].strip()
        if not code.endswith((")", "]")) or len(code) > _LONGEST_CODE:
            return False
        if not (self.marked or code.startswith("[") or "=" in code):
            return False
        try:
            parsed = ast.parse(code, mode="eval").body
            calls = [*map(_read_python_call, _find_python_calls(parsed))]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        return self.accept(calls, end)

    def read_broken(self) -> bool:
        """Read what stands between marks, names a known tool and is not JSON: a malformed call."""
        if not self.marked:
            return False
        raw = self.read_raw(self.place)
        found = _BROKEN.search(raw[:_LONGEST_CODE])
        call = PrintedCall(found[1], raw) if found else None
        return self.accept([call], self.find_closing(self.place))

    def find_closing(self, start: int) -> int:
        """Return where the next mark begins, or the end of the text."""
        mark = _MARK.search(self.text, start)
        return mark.start() if mark else len(self.text)

    def read_raw(self, start: int) -> str:
        """Return the text up to the next mark."""
        return self.text[start : self.find_closing(start)].strip()


def skip(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return the place after what a pattern matches at `start`."""
    found = pattern.match(text, start)
    return found.end() if found else start


def _find_python_calls(node: ast.expr) -> list[ast.expr]:
    """Return the calls of a list, of `print(…)`, or the one there is."""
    if isinstance(node, ast.List | ast.Tuple):
        return node.elts
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
        return node.args
    return [node]


def _read_python_call(node: ast.expr) -> PrintedCall:
    """Return a call in Python's form. Raises ValueError for anything else."""
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError
    args = {word.arg or "": ast.literal_eval(word.value) for word in node.keywords}
    return PrintedCall(ast.unparse(node.func), args)


def _unwrap(value: Any) -> list[Any]:
    """Return the parts of a list, of a message that holds calls, or the one object there is."""
    if isinstance(value, dict):
        value = next((value[key] for key in _ENVELOPES if value.get(key)), value)
    return value if isinstance(value, list) else [value]


def _read_object(value: Any, *, marked: bool) -> PrintedCall | None:
    """Return the call that a JSON object is. Data and a tool's definition are not calls.

    After a mark the arguments may be missing, and the name may be the only key.
    """
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    given = next((key for key in _ARGUMENT_KEYS if key in value), None)
    if name is None and marked and len(value) == 1:
        name, args = next(iter(value.items()))
        return PrintedCall(name, _parse_arguments(args))
    if name is None or not (given or marked) or "description" in value:
        return None
    args = value[given] if given else {}
    if isinstance(args, dict) and isinstance(args.get("properties"), dict) and "type" in args:
        return None  # a schema: this shows what a tool takes
    return PrintedCall(name, _parse_arguments(args))


def _parse_arguments(args: Any) -> dict[str, Any] | str:
    """Return arguments as an object, also from a JSON string; what is not an object stays as text."""
    if args is None:
        return {}
    if isinstance(args, str):
        try:
            args = _JSON.decode(args.strip() or "{}")
        except (ValueError, RecursionError):
            return str(args)
    return args if isinstance(args, dict) else json.dumps(args)


def _parse_value(text: str) -> Any:
    """Return a parameter's value: JSON if it is, else the text itself."""
    try:
        return _JSON.decode(text.strip())
    except (ValueError, RecursionError):
        return text
