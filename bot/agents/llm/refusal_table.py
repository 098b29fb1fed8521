"""How servers of models word that they do not take part of a request. Pure data.

Read by `bot.agents.llm.refusals`. The examples are quoted from documents and reports, except those
of the server "any": these are made, for wordings that many gateways share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Feature = Literal[
    "tools", "tool_choice", "parallel_tool_calls", "response_format", "stream", "stream_options",
    "whole", "system", "turns", "images", "max_completion_tokens", "max_tokens", "temperature",
]  # fmt: skip
"""A field of a request, and: `whole`, an answer without streaming; `system`, a message of that
role; `turns`, two messages of one role in a row; `images`, pictures in a message."""

_REFUSING = (400, 404, 422)
_LOCAL = (*_REFUSING, 500, 501)  # llama.cpp and what is built on it call this an error of theirs


@dataclass(frozen=True, slots=True)
class Refusal:
    """How `server` words that it does not take `feature`; `example` is a message of `source`.

    Where `says` has a group, that names the field, and `feature` is None.
    """

    server: str
    feature: Feature | None
    says: str
    example: str
    source: str
    statuses: tuple[int, ...] = _REFUSING


_GH = "https://github.com"
# The first that fits decides.
REFUSALS = (
    Refusal(
        "OpenAI", "max_tokens", r"use '?max_completion_tokens'? instead",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.", f"{_GH}/sipeed/picoclaw/issues/16",
    ),
    Refusal(
        "OpenAI", "system", r"'messages\[\d+\]\.role' does not support 'system'",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "https://platform.openai.com/docs/guides/reasoning (o1-mini)",
    ),
    Refusal(
        "OpenAI", "stream", r"verified to stream this model",
        "Your organization must be verified to stream this model. Please go to: "
        "https://platform.openai.com/settings/organization/general and click on Verify "
        "Organization.", "https://help.openai.com/en/articles/10910291", (*_REFUSING, 403),
    ),
    Refusal(
        "OpenAI", "images", r"image_url is only supported by certain models",
        "Invalid content type. image_url is only supported by certain models.",
        "https://community.openai.com (gpt-4-0613)",
    ),
    Refusal(
        "OpenAI", None, r"un(?:supported|known) (?:parameter|value): '(\w+)",
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default "
        "(1) value is supported.", "https://platform.openai.com/docs/guides/reasoning",
    ),
    Refusal(
        "Azure", None, r"unrecognized request arguments? supplied: ([\w, ]+)",
        "Unrecognized request arguments supplied: tool_choice, tools",
        f"{_GH}/MicrosoftDocs/azure-docs/issues/118117",
    ),
    Refusal(
        "DeepSeek", "tools", r"does not support function call",
        "deepseek-reasoner does not support Function Calling",
        f"{_GH}/spring-projects/spring-ai/pull/2643",
    ),
    Refusal(
        "DeepSeek", "turns", r"does not support successive (?:user|assistant)",
        "deepseek-reasoner does not support successive user or assistant messages (messages[1] "
        "and messages[2] in your input).", "https://api-docs.deepseek.com/guides/reasoning_model",
    ),
    Refusal(
        "DeepSeek", "images", r"unknown variant `image_url`",
        "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant "
        "`image_url`, expected `text` at line 1 column 321", "https://api.deepseek.com",
    ),
    Refusal(
        "DeepSeek", None, r"does not support (?:the parameter|this) `?(\w+)",
        "deepseek-reasoner does not support this tool_choice",
        f"{_GH}/lollipopkit/flutter_gpt_box/issues/213",
    ),
    Refusal(
        "Qwen (DashScope)", "whole", r"only supports? stream mode",
        "This model only support stream mode, please enable the stream parameter to access the "
        "model. ", f"{_GH}/infiniflow/ragflow/issues/5912",
    ),
    Refusal(
        "Qwen (DashScope)", "whole", r"enable_thinking must be set to false for non-stream",
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "https://help.aliyun.com/zh/model-studio/error-code",
    ),
    Refusal(
        "Qwen (DashScope)", "tools", r"tool call(?:s|ing)? (?:is|are) not supported",
        "<400> InternalError.Algo.InvalidParameter: The tool call is not supported",
        "seen with DashScope behind Claude Code",
    ),
    Refusal(
        "Qwen (DashScope)", "tool_choice", r"tool_choice parameter does not support",
        "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support "
        "being set to required or object in thinking mode", f"{_GH}/cloudwego/eino/issues/994",
    ),
    Refusal(
        "Qwen (SiliconFlow)", "tools", r"function call(?:ing)? is not supported",
        "Function call is not supported for this model.", "https://docs.siliconflow.cn (20037)",
    ),
    Refusal(
        "Doubao (Ark)", "images", r"do(?:es)? not support image",
        "Model do not support image input. Request id: 0217",
        "https://www.volcengine.com/docs/82379/1299023",
    ),
    Refusal(
        "Doubao (Ark)", None,
        r"the parameter `(\w+)[^`]*` specified in the request (?:is|are) not (?:valid|supported)",
        "The parameter `response_format.type` specified in the request are not valid: "
        "`json_object` is not supported by this model. Request id: 0217",
        "https://www.volcengine.com/docs/82379/1299023",
    ),
    Refusal(
        "Kimi (Moonshot)", "tool_choice", r"tool_choice '?\w+'? is incompatible",
        "tool_choice 'specified' is incompatible with thinking enabled",
        "https://platform.moonshot.ai/docs",
    ),
    Refusal(
        "Kimi (Moonshot)", "temperature", r"invalid temperature: only",
        "invalid temperature: only 1 is allowed for this model",
        f"{_GH}/HKUDS/nanobot/pull/202",
    ),
    Refusal(
        "Zhipu", "images", r"messages\.content\.type 参数非法",
        "messages.content.type 参数非法，取值范围 ['text']",
        "https://open.bigmodel.cn/dev/api#error-code-v3 (1210)",
    ),
    Refusal(
        "vLLM", "tools", r"tool choice requires --enable-auto-tool-choice|--tool-call-parser",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        f"{_GH}/vllm-project/vllm/issues/9986",
    ),
    Refusal(
        "vLLM", "images", r"is not a multimodal model|at most 0 image",
        "At most 0 image(s) may be provided in one request.",
        f"{_GH}/vllm-project/vllm (serving_chat.py)",
    ),
    Refusal(
        "vLLM", "system", r"system role (?:is )?not supported",
        "System role not supported", "chat template of google/gemma-2", _LOCAL,
    ),
    Refusal(
        "vLLM", "turns", r"roles must alternate",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "chat templates of Gemma, Mistral and Phi", _LOCAL,
    ),
    Refusal(
        "vLLM", None, r"\('body', '(\w+)'\)",
        "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra "
        "inputs are not permitted', 'input': 10}]", f"{_GH}/vllm-project/vllm (protocol.py)",
    ),
    Refusal(
        "Mistral", None, r"\b(\w+): extra inputs are not permitted",
        "body.max_completion_tokens: Extra inputs are not permitted", "https://docs.mistral.ai/api",
    ),
    Refusal(
        "llama.cpp", "tools", r"tools param requires --jinja",
        "tools param requires --jinja flag", f"{_GH}/defilantech/LLMKube/issues/126", _LOCAL,
    ),
    Refusal(
        "llama.cpp", "images", r"image input is not supported",
        "image input is not supported - hint: if this is unexpected, you may need to provide the "
        "mmproj", f"{_GH}/ggml-org/llama.cpp (tools/server)", _LOCAL,
    ),
    Refusal(
        "llama.cpp", None, r"unsupported param: (\w+)",
        "Unsupported param: tools", f"{_GH}/ggml-org/llama.cpp/issues/10920", _LOCAL,
    ),
    Refusal(
        "Ollama", "tools", r"does not support tools?\b",
        "registry.ollama.ai/library/gemma3:4b does not support tools",
        f"{_GH}/louisho5/picobot/issues/6",
    ),
    Refusal(
        "Ollama", "images", r"missing data required for image input|does not support images?\b",
        "this model is missing data required for image input",
        f"{_GH}/ollama/ollama (server/routes.go)", _LOCAL,
    ),
    Refusal(
        "LM Studio", "response_format", r"'response_format\.type' must be",
        "'response_format.type' must be 'json_schema' or 'text'",
        f"{_GH}/lmstudio-ai/lmstudio-bug-tracker",
    ),
    Refusal(
        "LM Studio", "tools", r"error rendering prompt with jinja template",
        'Error rendering prompt with jinja template: "Cannot call something that is not a '
        'function: got ObjectValue"', f"{_GH}/lmstudio-ai/lmstudio-bug-tracker/issues/2180",
    ),
    Refusal(
        "OpenRouter", "tools", r"no endpoints found that support tool",
        "No endpoints found that support tool use. To learn more about provider routing, visit: "
        "https://openrouter.ai/docs/provider-routing", "https://openrouter.ai/docs",
    ),
    Refusal(
        "OpenRouter", "images", r"no endpoints found that support image",
        "No endpoints found that support image input", "https://openrouter.ai/docs",
    ),
    Refusal(
        "Groq", "tools", r"tool calling`? is not supported",
        "`tool calling` is not supported with this model", "https://console.groq.com/docs/errors",
    ),
    Refusal(
        "Gemini", "tools", r"function calling is not enabled",
        "Function calling is not enabled for this model", "https://ai.google.dev/gemini-api/docs",
    ),
    Refusal(
        "LiteLLM", None, r"does not support parameters: (.{1,200})",
        "litellm.UnsupportedParamsError: together_ai does not support parameters: {'tools': "
        "[{'type': 'function'", f"{_GH}/BerriAI/litellm/issues/7785",
    ),
    Refusal(
        "Bedrock", "tools", r"(?:doesn't|not) support (?:the )?(?:tools?|function)\b(?! ?choice)",
        "This model doesn't support tool use.",
        f"{_GH}/langchain-ai/langchain-aws/issues/447",
    ),
    Refusal(
        "any", "tools", r"不支持.{0,12}(?:工具|函数|\btools?\b|function)",
        "当前模型不支持工具调用", "gateways in front of other models",
    ),
    Refusal(
        "any", "images", r"(?:not support|n't support|不支持).{0,20}(?:image|vision|图片|图像)|"
        r"image input not supported", "Invalid request: Image input not supported for model "
        "moonshot-v1-8k", "gateways in front of other models",
    ),
    Refusal(
        "any", "system", r"(?:not support|n't support|不支持).{0,12}system (?:role|message|prompt)|"
        r"developer instruction is not enabled|role must be in \[user, assistant\]",
        "Developer instruction is not enabled for models/gemma-3-12b-it",
        f"{_GH}/google/adk-python/issues/3900",
    ),
    Refusal(
        "Perplexity", "turns", r"should be alternating|should alternate with assistant",
        "After the (optional) system message(s), user and assistant roles should be alternating.",
        f"{_GH}/perplexityai/api-discussion/issues/265",
    ),
    Refusal(
        "any", "stream_options", r"stream_options", "Unrecognized field: stream_options",
        "older gateways",
    ),
    Refusal(
        "any", "stream", r"stream(?:ing)?\b.{0,30}\bnot supported|not support stream(?:ing)?\b",
        "Streaming is not supported for this model.", "gateways in front of other models",
    ),
)  # fmt: skip
