"""Errors that say that a request is too long."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from wakeloop.platform.provider_errors import find_status, is_provider_error, read_error_text

TOO_LARGE = 413  # HTTP: some servers send it without a body
_N = r"[\d,]+"
_WORDS = (
    # DeepSeek, vLLM, OpenAI's older ones: FoundationAgents/OpenManus#79, vllm-project/vllm#20409
    (
        rf"maximum context length is (?P<limit>{_N}) tokens.{{0,60}}?requested {_N} tokens "
        rf"\((?P<asked>{_N}) in.{{0,120}}?(?P<reply>{_N}) (?:in|for) the completion"
    ),
    # vLLM from 0.10 on: UKGovernmentBEIS/inspect_ai#2634
    (
        rf"is too large: (?P<reply>{_N})\..{{0,40}}?maximum context length is (?P<limit>{_N}) tokens and "
        rf"your request has (?P<asked>{_N}) input"
    ),
    # vLLM from 0.15 on: vllm-project/vllm#33418
    (
        rf"maximum context length is (?P<limit>{_N}) tokens.{{0,60}}?requested (?P<reply>{_N}) output tokens"
        rf".{{0,60}}?at least (?P<asked>{_N}) input"
    ),
    # vLLM: thu-coai/Glyph#9
    rf"prompt \(length (?P<asked>{_N})\) is longer than the maximum model length of (?P<limit>{_N})",
    # SGLang: anomalyco/opencode#25230, QwenLM/Qwen3#1321, sgl-project/sglang#4048
    (
        rf"maximum context length of (?P<limit>{_N}) tokens.{{0,80}}?(?P<asked>{_N}) tokens from the input "
        rf"messages and (?P<reply>{_N}) tokens for the completion"
    ),
    rf"input \((?P<asked>{_N}) tokens\) is longer than the model's context length \((?P<limit>{_N})",
    rf"input length \((?P<asked>{_N}) tokens\) exceeds the maximum allowed length \((?P<limit>{_N})",
    # OpenRouter, for every provider there: ThinkInAIXYZ/deepchat#1320, LOME-AI/HushBox
    rf"maximum context length is (?P<limit>{_N}) tokens.{{0,60}}?requested about (?P<asked>{_N}) tokens",
    # OpenAI: chathub-dev/chathub#126; its Responses: langchain-openai's own table
    rf"maximum context length is (?P<limit>{_N}) tokens.{{0,60}}?(?:resulted in|has) (?P<asked>{_N})",
    rf"maximum context length (?:is|of) (?P<limit>{_N})",
    rf"configured limit of (?P<limit>{_N}) tokens.{{0,60}}?resulted in (?P<asked>{_N})",
    r"exceeds the context window",
    r"context_length_exceeded",
    # OpenAI, Groq: larger than all the tokens of a minute, so that waiting would not help (goose#9785)
    rf"request too large.{{0,200}}?limit (?P<limit>{_N}), requested (?P<asked>{_N})",
    # Anthropic, also on Bedrock and Vertex: stackblitz-labs/bolt.diy#401
    rf"prompt is too long: (?P<asked>{_N}) tokens > (?P<limit>{_N})",
    rf"exceed context limit: (?P<asked>{_N}) \+ (?P<reply>{_N}) > (?P<limit>{_N})",
    # Fireworks (before the shorter words of others)
    rf"prompt is too long: (?P<asked>{_N}), model maximum context length: (?P<limit>{_N})",
    # Bedrock's other models, mlx: strands-agents/harness-sdk#1663, ddalcu/mlx-serve#66
    r"input is too long for requested model|prompt is too long|prompt exceeds maximum context length",
    # Gemini: google-gemini/gemini-cli#6678
    rf"input token count \((?P<asked>{_N})\) exceeds the maximum number of tokens allowed \((?P<limit>{_N})",
    # xAI: cline/cline#3120
    rf"maximum prompt length is (?P<limit>{_N}) but the request contains (?P<asked>{_N})",
    # Groq: OpenHands/OpenHands#1902
    r"reduce the length of the (?:input )?(?:messages|prompt)",
    # Mistral
    rf"prompt contains (?P<asked>{_N}) tokens.{{0,100}}?model with (?P<limit>{_N}) maximum context length",
    # Cohere
    rf"too many tokens.{{0,80}}?cannot exceed (?P<limit>{_N}).{{0,20}}?received (?P<asked>{_N})",
    # Kimi, MiniMax, GitHub Copilot: earendil-works/pi-mono, packages/ai/src/utils/overflow.ts
    rf"exceeded model token limit: (?P<limit>{_N})(?: \(requested: (?P<asked>{_N}))?",
    r"context window exceeds limit",
    rf"prompt token count of (?P<asked>{_N}) exceeds the limit of (?P<limit>{_N})",
    # SiliconFlow: sjzar/chatlog#30
    rf"prompt_tokens \((?P<asked>{_N})\) must be less than max_seq_len \((?P<limit>{_N})",
    # watsonx
    rf"number of input tokens (?P<asked>{_N}) cannot exceed the total tokens limit (?P<limit>{_N})",
    # TGI, Together: opea-project/GenAIExamples#340
    (
        rf"max_new_tokens`? must be <= (?P<limit>{_N})"
        rf"(?:\. given: (?P<asked>{_N}) `inputs` tokens and (?P<reply>{_N}))?"
    ),
    # llama.cpp: ggml-org/llama.cpp#15780, oobabooga/textgen#7257
    (
        rf"exceeds? the available context size.{{0,200}}?n_prompt_tokens\W+(?P<asked>{_N})"
        rf"\W+n_ctx\W+(?P<limit>{_N})"
    ),
    rf"request \((?P<asked>{_N}) tokens\) exceeds the available context size \((?P<limit>{_N})",
    r"exceeds? the available context size|exceed_context_size_error",
    # llama-cpp-python: rllm-team/rllm#55
    rf"requested tokens \((?P<asked>{_N})\) exceed context window of (?P<limit>{_N})",
    # LM Studio: lmstudio-ai/lmstudio-bug-tracker#546, anomalyco/opencode#11141
    rf"keep the first (?P<asked>{_N}) tokens when context.{{0,80}}?context length of only (?P<limit>{_N})",
    rf"n_keep \((?P<asked>{_N})\) >= n_ctx \((?P<limit>{_N})",
    # DashScope with Qwen, Zhipu with GLM, Volcengine with Doubao
    rf"range of input length should be \[\d+, ?(?P<limit>{_N})\]",
    r"prompt exceeds max length|prompt 超长",
    rf"input length (?P<asked>{_N}) exceeds (?:the )?maximum (?:allowed )?length (?P<limit>{_N})",
    # Ollama, where it does not cut by itself
    r"prompt too long; exceeded (?:max )?context length",
    r"input length exceeds the (?:maximum )?context length",
)
_REFUSALS = tuple(re.compile(words, re.IGNORECASE | re.DOTALL) for words in _WORDS)


class LengthRefusal(NamedTuple):
    """A refusal for length: the tokens that a request may have, and those that it had, where it says so."""

    limit: int | None = None
    asked: int | None = None


def find_length_refusal(error: BaseException) -> LengthRefusal | None:
    """Return what an error says about a request that is too long; None for any other error.

    Where the reply alone is too long for the model, a shorter request would not help: that is another error.

    >>> find_length_refusal(ValueError("prompt is too long: 202609 tokens > 200000 maximum"))
    LengthRefusal(limit=200000, asked=202609)
    """
    if not isinstance(error, Exception):
        return None
    text = read_error_text(error)
    for words in _REFUSALS:
        if (found := words.search(text)) is not None:
            return _read_numbers(found.groupdict())
    is_refusal = is_provider_error(error, "ContextOverflowError") or find_status(error) == TOO_LARGE
    return LengthRefusal() if is_refusal else None


def _read_numbers(named: Mapping[str, str | None]) -> LengthRefusal | None:
    numbers: dict[str, int] = {}
    for name, digits in named.items():
        if digits:
            numbers[name] = int(digits.replace(",", ""))
    if "limit" not in numbers:
        return LengthRefusal(asked=numbers.get("asked"))
    limit = numbers["limit"] - numbers.get("reply", 0)
    return LengthRefusal(limit, numbers.get("asked")) if limit > 0 else None
