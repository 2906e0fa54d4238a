"""Structured output: replies parsed as JSON."""

import json
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.utils.function_calling import convert_to_json_schema
from pydantic import BaseModel, ValidationError


def bind_schema(
    model: BaseChatModel,
    schema: dict[str, Any] | type,
    *,
    include_raw: bool,
    method: str = "json_schema",
    strict: bool | None = None,
    **kwargs: Any,
) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
    """Return a runnable: the model with `response_format` bound, then a parser of its reply."""
    shape = convert_to_json_schema(schema)
    wanted = {"name": shape.get("title", "answer"), "schema": shape, "strict": strict}
    asked = model.bind(
        response_format={"type": "json_schema", "json_schema": wanted},
        ls_structured_output_format={"kwargs": {"method": method}, "schema": schema},
        **kwargs,
    )

    def parse(reply: AIMessage) -> Any:
        return _parse_reply(reply, schema)

    def parse_and_show(reply: AIMessage) -> dict[str, Any]:
        try:
            return {"raw": reply, "parsed": _parse_reply(reply, schema), "parsing_error": None}
        except OutputParserException as error:
            return {"raw": reply, "parsed": None, "parsing_error": error}

    return asked | RunnableLambda(parse_and_show if include_raw else parse)


def _parse_reply(reply: AIMessage, schema: dict[str, Any] | type) -> Any:
    text = str(reply.text)
    try:
        data = reply.tool_calls[0]["args"] if reply.tool_calls else json.loads(text)
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            return schema.model_validate(data)
    except (json.JSONDecodeError, ValidationError) as error:
        raise OutputParserException(f"The reply does not fit the format: {error}", llm_output=text) from error
    if not isinstance(data, dict):
        raise OutputParserException(f"The reply is not a JSON object: {text}", llm_output=text)
    return data
