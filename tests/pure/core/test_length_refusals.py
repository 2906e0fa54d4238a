"""The words with which servers refuse a request that is too long."""

# ruff: noqa: E501 - words as servers send them
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError

from wakeloop.model.length_refusals import LengthRefusal, find_length_refusal

SAID: dict[str, tuple[str, int | None, int | None]] = {  # words; the limit for a request; its actual length
    "OpenAI": (
        (
            "Error code: 400 - {'error': {'message': \"This model's maximum context length is 128000 tokens. However, "
            'your messages resulted in 173172 tokens. Please reduce the length of the messages."}}'
        ),
        128000,
        173172,
    ),
    "OpenAI Responses": ("Your input exceeds the context window of this model.", None, None),
    "OpenAI, configured": (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300001 tokens.",
        272000,
        300001,
    ),
    "DeepSeek": (
        (
            "This model's maximum context length is 65536 tokens. However, you requested 66343 tokens (62247 "
            "in the messages, 4096 in the completion). Please reduce the length of the messages or completion."
        ),
        61440,
        62247,
    ),
    "vLLM 0.10": (
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is "
            "4096 tokens and your request has 2104 input tokens (2000 > 4096 - 2104)."
        ),
        2096,
        2104,
    ),
    "vLLM 0.11": (
        (
            "This model's maximum context length is 200 tokens. However, your request has 203 input tokens. Please "
            "reduce the length of the input messages."
        ),
        200,
        203,
    ),
    "vLLM 0.15": (
        (
            "This model's maximum context length is 4096 tokens. However, you requested 100 output tokens and your "
            "prompt contains at least 3997 input tokens, for a total of at least 4097 tokens."
        ),
        3996,
        3997,
    ),
    "vLLM, pictures": (
        "The decoder prompt (length 163840) is longer than the maximum model length of 131072.",
        131072,
        163840,
    ),
    "SGLang": (
        "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
        40960,
        61709,
    ),
    "SGLang, with a reply": (
        (
            "Requested token count exceeds the model's maximum context length of 202752 tokens. You requested a "
            "total of 202941 tokens: 170941 tokens from the input messages and 32000 tokens for the completion."
        ),
        170752,
        170941,
    ),
    "OpenRouter": (
        (
            "This endpoint's maximum context length is 163840 tokens. However, you requested about 170000 tokens "
            "(169000 of text input, 1000 in the output)."
        ),
        163840,
        170000,
    ),
    "Anthropic": ("prompt is too long: 202609 tokens > 200000 maximum", 200000, 202609),
    "Anthropic, with a reply": (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
        180000,
        190000,
    ),
    "Bedrock": ("ValidationException: Input is too long for requested model.", None, None),
    "Gemini": (
        "400 The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
        1048576,
        1200293,
    ),
    "xAI": (
        "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
        131072,
        136973,
    ),
    "Groq": ("Please reduce the length of the messages or completion.", None, None),
    "Groq, a minute's tokens": (
        (
            "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8123, please reduce "
            "your message size"
        ),
        6000,
        8123,
    ),
    "Mistral": (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
        40000,
    ),
    "Cohere": (
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4700.",
        4081,
        4700,
    ),
    "Fireworks": ("The prompt is too long: 74391, model maximum context length: 32767", 32767, 74391),
    "Kimi": (
        "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)",
        8192,
        9000,
    ),
    "MiniMax": ("invalid params, context window exceeds limit", None, None),
    "GitHub Copilot": ("prompt token count of 70000 exceeds the limit of 64000", 64000, 70000),
    "SiliconFlow": ("length of prompt_tokens (163280) must be less than max_seq_len (32768).", 32768, 163280),
    "watsonx": (
        "the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model",
        4096,
        5000,
    ),
    "TGI, Together": (
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens and 512 "
            "`max_new_tokens`"
        ),
        3585,
        4000,
    ),
    "llama.cpp": (
        (
            "Error code: 400 - {'error': {'code': 400, 'message': 'the request exceeds the available context size. "
            "try increasing the context size or enable context shift', 'type': 'exceed_context_size_error', "
            "'n_prompt_tokens': 14429, 'n_ctx': 8192}}"
        ),
        8192,
        14429,
    ),
    "llama.cpp, later": (
        "request (15234 tokens) exceeds the available context size (4096 tokens), try increasing it",
        4096,
        15234,
    ),
    "llama-cpp-python": ("Requested tokens (2285) exceed context window of 2048", 2048, 2285),
    "LM Studio": (
        (
            "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with "
            "context length of only 4096 tokens, which is not enough."
        ),
        4096,
        15857,
    ),
    "LM Studio, later": ("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 7424, 15028),
    "Ollama": ("the input length exceeds the context length", None, None),
    "mlx": ("Prompt exceeds maximum context length", None, None),
    "DashScope": (
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
        30720,
        None,
    ),
    "Zhipu": ("Error code: 400 - {'error': {'code': '1261', 'message': 'Prompt 超长'}}", None, None),
    "Z.ai": (
        "Error code: 400 - {'error': {'code': '1261', 'message': 'Prompt exceeds max length'}}",
        None,
        None,
    ),
    "Volcengine": ("Input length 131336 exceeds the maximum length 131072. Request id: 02", 131072, 131336),
    "Ollama 0.12": ("prompt too long; exceeded max context length by 4 tokens", None, None),
}


@pytest.mark.parametrize("server", SAID)
def test_the_words_of_each_server(server: str) -> None:
    words, limit, asked = SAID[server]
    assert find_length_refusal(ValueError(words)) == LengthRefusal(limit, asked)


class StatusError(Exception):
    status_code = 413


@pytest.mark.parametrize("error", [ContextOverflowError("No."), StatusError("No.")])
def test_a_class_or_a_status_is_enough_without_words(error: Exception) -> None:
    assert find_length_refusal(error) == LengthRefusal()


@pytest.mark.parametrize(
    "error",
    [
        ValueError("Rate limit reached for tokens per minute (TPM): Limit 6000, Used 5900, Requested 200."),
        ValueError("max_tokens is too large: 8192"),
        ValueError(  # no request is short enough for such a reply
            "This model's maximum context length is 8192 tokens. However, you requested 8246 tokens (54 in the "
            "messages, 8192 in the completion)."
        ),
        ValueError("The tool's input is too long"),
        KeyboardInterrupt("prompt is too long: 2 tokens > 1 maximum"),
    ],
)
def test_other_errors_are_not_length_refusals(error: Any) -> None:
    assert find_length_refusal(error) is None
