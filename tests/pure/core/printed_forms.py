"""Calls as many model families print them, and answers that only quote such things."""

CALL = '{"name": "look", "arguments": {"path": "a"}}'
SET = '{"name": "look", "parameters": {"path": "a"}}'
ARGS = '{"path": "a"}'
BEGIN, SEP, END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"  # noqa: RUF001
DSML = "｜DSML｜"  # noqa: RUF001

FORMS = {  # family and form: every one is look(path="a")
    "Qwen, Hermes": f"<tool_call>\n{CALL}\n</tool_call>",
    "Qwen, never closed": f"<tool_call>\n{CALL}",
    "Qwen Coder": "<tool_call>\n<function=look>\n<parameter=path>\na\n</parameter>\n</function>\n"
    "</tool_call>",
    "Llama 3": f"<|python_tag|>{SET}<|eom_id|>",
    "Llama 3, bare": SET,
    "Llama 3, its own tools": '<|python_tag|>look.call(path="a")<|eom_id|>',
    "Llama 4": '<|python_start|>[look(path="a")]<|python_end|>',
    "Llama, in Python's form": '[look(path="a")]',
    "Mistral": f"[TOOL_CALLS] [{CALL}]",
    "Mistral 3": f"[TOOL_CALLS]look{ARGS}",
    "Mistral 3, with marks": f"[TOOL_CALLS]look[CALL_ID]abcdefghi[ARGS]{ARGS}",
    "Mistral 3, half of the marks": f"look[ARGS]{ARGS}",
    "DeepSeek R1": f"{BEGIN}function{SEP}look\n```json\n{ARGS}\n```{END}",
    "DeepSeek V3.1": f"{BEGIN}look{SEP}{ARGS}{END}",
    "DeepSeek V3.2": f'<{DSML}function_calls>\n<{DSML}invoke name="look">\n<{DSML}parameter name="path" '
    f'string="true">a</{DSML}parameter>\n</{DSML}invoke>\n</{DSML}function_calls>',
    "GLM": "<tool_call>look\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>"
    f"{ARGS}<|tool_call_end|><|tool_calls_section_end|>",
    "Kimi, without marks": f"functions.look:0 {ARGS}",
    "gpt-oss": f"<|channel|>commentary to=functions.look <|constrain|>json<|message|>{ARGS}<|call|>",
    "gpt-oss, the other order": "<|start|>assistant to=functions.look<|channel|>commentary json<|message|>"
    f"{ARGS}",
    "gpt-oss, without marks": f"assistantcommentary to=functions.look json{ARGS}",
    "Granite": f"<|tool_call|>[{CALL}]",
    "Functionary": f"<function=look>{ARGS}</function>",
    "Functionary 3": f">>>look\n{ARGS}",
    "Phi 4": f"<|tool_call|>[{CALL}]<|/tool_call|>",
    "Phi 3": f"functools[{CALL}]",
    "Command R": '<|START_ACTION|>[\n  {"tool_call_id": "0", "tool_name": "look", "parameters": '
    '{"path": "a"}}\n]<|END_ACTION|><|END_OF_TURN_TOKEN|>',
    "Command R, older": 'Action: ```json\n[\n    {"tool_name": "look", "parameters": {"path": "a"}}\n]\n```',
    "Gemma 3": '```tool_code\nprint(look(path="a"))\n```',
    "MiniMax": '<minimax:tool_call>\n<invoke name="look">\n<parameter name="path">a</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
    "Nemotron": f"<TOOLCALL>[{CALL}]</TOOLCALL>",
    "InternLM": f"<|action_start|><|plugin|>{SET}<|action_end|>",
    "LFM": '<|tool_call_start|>[look(path="a")]<|tool_call_end|>',
    "Seed": "<seed:tool_call><function=look><parameter=path>a</parameter></function></seed:tool_call>",
    "Apertus": f'<|tools_prefix|>[{{"look": {ARGS}}}]<|tools_suffix|>',
    "fenced JSON": f"```json\n{CALL}\n```",
    "fenced JSON, never closed": f"```json\n{CALL}",
    "fenced JSON on one line": f"```json {CALL} ```",
    "fenced JSON of Windows": f"```json\r\n{CALL}\r\n```",
    "fenced JSON in a list": f"   ```json\n   {CALL}\n   ```",
    "JSON fenced with tildes": f"~~~json\n{CALL}\n~~~",
    "JSON in backticks": f"`{CALL}`",
    "a fence without a language": f"```\n{SET}\n```",
    "JSON alone": CALL,
    "JSON, indented": f"  {CALL}",
    "a list of JSON on many lines": f"[\n  {CALL}\n]",
    "a list of JSON": f"[{CALL}]",
    "JSON as in the API": '{"type": "function", "function": {"name": "look", "arguments": '
    '"{\\"path\\": \\"a\\"}"}}',
    "a call": f"look({ARGS})",
}
MALFORMED = {  # the same, but their arguments are not JSON
    "Gemma 4": '<|tool_call>call:look{path:<|"|>a<|"|>}<tool_call|>',
    "FunctionGemma": "<start_function_call>call:look{path:<escape>a<escape>}<end_function_call>",
    "a brace too few": '<tool_call>{"name": "look", "arguments": {"path": "a"}</tool_call>',
    "a Python dict": "<tool_call>{'name': 'look', 'arguments': {'path': 'a'}}</tool_call>",
}

ANSWERS = (
    # calls that are shown, with words after them
    f"The call was:\n\n```json\n{CALL}\n```\n\nIt found the file.",
    f"Qwen's models print `<tool_call>{CALL}</tool_call>`.",
    f"The call was:\n\n~~~json\n{CALL}\n~~~\n\nIt found the file.",
    f"~~~python\nTEMPLATE = (\n{CALL}\n)\n~~~",
    f"`{CALL}` is what I sent.",
    f"Write it like this: `{CALL}`",
    f"To look at a file, send this call:\n\n{CALL}\n\nThe path is relative to the root.",
    'I called look({"path": "a"}) and found nothing.',
    'Use `look({"path": "a"})`.',
    "Call `functions.look:0` first.",
    "The first parameter of look is the path.",
    f"> {CALL}",
    f"> <tool_call>{CALL}</tool_call>",
    f"| form | call |\n|---|---|\n| Hermes | <tool_call>{CALL}</tool_call> |",
    f"Here is the template as XML:\n\n```xml\n<tool_call>\n{CALL}\n</tool_call>\n```",
    f"The log of the run:\n\n```text\n[TOOL_CALLS] [{CALL}]\n```",
    'A test for it:\n\n```python\nassert look(path="a") == "seen"\n```',
    'In JavaScript:\n\n```js\nlook({"path": "a"})\n```',
    '- look(path="a")\n- look(path="b")',
    "The request that failed was to=functions.look, with a wrong path.",
    "gpt-oss writes <|channel|>commentary to=functions.look before the JSON.",
    # calls of tools that are not there
    '```json\n{"name": "search", "arguments": {"query": "x"}}\n```',
    '<tool_call>{"name": "search", "arguments": {}}</tool_call>',
    '{"name": "send_mail", "parameters": {"to": "ada"}}',
    'search({"query": "look"})',
    "<function=search>{}</function>",
    # JSON that is data
    '{"name": "look", "version": 2}',
    '```json\n{"name": "look", "path": "a"}\n```',
    '{"result": "done", "files": ["a", "look"]}',
    '[{"title": "look", "done": true}]',
    '{"name": "Ada", "parameters": {"age": 36}}',
    '```json\n{"name": "look", "description": "Look at it.", "parameters": {"type": "object"}}\n```',
    '{"name": "look", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}',
    '```json\n{"arguments": {"path": "a"}}\n```',
    'The config:\n\n```json\n{\n  "tools": ["look"],\n  "name": "agent"\n}\n```',
    # code and markup
    "```python\ndef look(path: str) -> str:\n    return open(path).read()\n```",
    "```html\n<function>look</function>\n```",
    "<answer>42</answer>",
    "<ul>\n<li>look</li>\n</ul>",
    "<result>\nAll 14 tests pass.\n</result>",
    "f(x) = {x | x > 0}",
    "Run `make test`:\n\n```console\n$ make test\n14 passed\n```",
    # results and thoughts that are only named
    "Tool results come in `<tool_response>` tags.",
    "The template wraps results:\n\n```xml\n<tool_response>milk</tool_response>\n```",
    "It shows its thoughts between `<think>` and `</think>`.",
    "The model should answer in this form:\n<think>\nyour reasoning\n</think>\nthe answer",
    "The tag `<|im_start|>` opens a message in ChatML.",
    "I did not see (automatic) messages in the log.",
    "There is no text in the image.",
    "No text.",
    "Continued.",
    "I was interrupted, but the work is done.",
    "[x] tests\n[x] docs\n[ ] release",
)
