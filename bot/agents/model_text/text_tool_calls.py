"""Reads tool calls that a model wrote into its text instead of the field for them. Pure.

<tool_call>{"name": …, "arguments": {…}}</tool_call>     Hermes, Qwen; also <function_call>
<invoke name="…"><parameter name="k">v</…></invoke>      MiniMax, Seed, DeepSeek 3.2 (｜DSML｜)
<tool_call>name<arg_key>k</arg_key><arg_value>v</…>      GLM
<function=name>{…}</function>, <parameter=k>v</…>        Llama 3.1, Qwen-Coder
[TOOL_CALLS][{…}], [TOOL_CALLS]name[ARGS]{…}             Mistral
<|python_tag|>{…}, <|python_tag|>name.call(k="v")        Llama 3
<｜tool▁calls▁begin｜>…name<｜tool▁sep｜>{…}…             DeepSeek
<|tool_calls_section_begin|>…functions.name:0…{…}…       Kimi
<|tool_call_start|>[name(k="v")]<|tool_call_end|>        LFM
```tool_code print(name(k="v")) ```                      Gemma; also ```python
<start_function_call>call:name{k:<escape>v<escape>}<…>   FunctionGemma; Gemma 4: <|tool_call>
```json {…} ```, bare JSON, name(k="v") alone            any model, known by the names of tools"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bot.agents.tool_types import ToolCall
from bot.text.json_text import dump_json

# Forms that say what they are. Each runs to its end mark, or to the end of the text.
_MARKED = re.compile(
    r"<(?P<tag>(?:\w+:|｜DSML｜)?(?:tool|function)_calls?)>(?P<tagged>.*?)(?:</(?P=tag)>|\Z)"
    r"|(?P<function><(?:function=|invoke name=\")[\w.-]*\"?"
    r"(?:>.*?(?:</(?:function|invoke)>|\Z)|\Z))"
    r"|<\|tool_call(?:s_section)?_begin\|>(?P<kimi>.*?)(?:<\|tool_calls_section_end\|>|\Z)"
    r"|<\|tool_call_start\|>(?P<lfm>.*?)(?:<\|tool_call_end\|>|\Z)"
    r"|(?:<start_function_call>|<\|tool_call>)(?P<braces>.*?)"
    r"(?:<end_function_call>|<tool_call\|>|\Z)"
    r"|<\|tool_call\|>(?P<piped>.*?)(?:<\|/tool_call\|>|\Z)"
    r"|\[TOOL_CALLS\](?P<mistral>.*)\Z"
    r"|<\|python_tag\|>(?P<python>.*)\Z"
    r"|<｜tool▁calls▁begin｜>(?P<deepseek>.*?)(?:<｜tool▁calls▁end｜>|\Z)"
    r"|^(?P<fence>`{3,}|~{3,})[ \t]*(?:tool_code|tool_calls?|function_calls?)[ \t]*\n"
    r"(?P<fenced>.*?)(?:^(?P=fence)[ \t]*$|\Z)"
    r"|^tool_code[ \t]*\n(?P<gemma>.*)\Z"
    r"|<tool_(?:response|result|output)s?>.*?(?:</tool_(?:response|result|output)s?>|\Z)"
    r"|<\|tool_call_\w+\|>",
    re.DOTALL | re.MULTILINE,
)
MARKS = (
    "<tool_call", "<function_call", "<function=", "<|tool_call|>", "[TOOL_CALLS]", "<|python_tag|>",
    "<｜tool▁calls▁begin｜>", "<tool_response", "<tool_result", "<tool_output",
    "<｜DSML｜function_calls>",
    '<invoke name="', "<minimax:tool_call>", "<seed:tool_call>", "<|tool_call>",
    "<start_function_call>",
)  # fmt: skip
_FENCE = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[ \t]*(?:json)?[ \t]*\n(?P<json>\s*[\[{].*?)(?:^(?P=fence)[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_CODE_FENCE = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[ \t]*py(?:thon)?[ \t]*\n(?P<python>.*?)(?:^(?P=fence)[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_OPEN_FENCE = re.compile(
    r"^(?:`+|~+)[ \t]*(?:p(?:y\w*)?|j(?:s(?:on?)?)?|t(?:o(?:o(?:l\w*)?)?)?|f(?:u\w*)?)?\s*\Z",
    re.MULTILINE,
)
_BARE = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
_CALL_START = re.compile(r"[\[{][\s\[{]*(?:\"|\Z)")
_BROKEN = re.compile(r"[\[{\s]*\"(?:name|tool)\"\s*:\s*\"([\w-]+)\"")
_NAMED_CALL = re.compile(
    r"\s*+([\w.-]++)\s*+(?:(?:\[ARGS\]|<｜tool▁sep｜>)\s*+)?(?:```json\s*+)?(?=\{)"
)
_BRACKET = re.compile(r"[\[{]")
_PYTHON = re.compile(r"\s*(?:\[\s*)?(?:print\(\s*)?([A-Za-z_][\w.]*)\(")
_FIRST_WORD = re.compile(r"\s*(?:\[\s*)?(?:print\(\s*)?(?:[A-Za-z_][A-Za-z0-9_.]*)?\Z")
_BRACES = re.compile(r"call:([\w.-]+)\s*(\{.*)", re.DOTALL)
_LOOSE = re.compile(
    r'(?P<mark><escape>|<\|"\|>)(?P<said>.*?)(?P=mark)|"(?:[^"\\]|\\.)*+"'
    r"|(?P<before>[{,]\s*)(?P<key>\w+)(?=\s*:)",
    re.DOTALL,
)
_ARGUMENT = re.compile(
    r"<arg_key>((?:(?!<arg_key>).)*?)</arg_key>\s*+<arg_value>((?:(?!<arg_key>).)*?)</arg_value>",
    re.DOTALL,
)
_FUNCTION = re.compile(
    r"<(?:function=|invoke name=\")([\w.-]+)\"?>(.*?)(?:</(?:function|invoke)>|\Z)", re.DOTALL
)
_PARAMETER = re.compile(
    r"<parameter(?:=| name=\")([\w.-]++)[^>]*+>\n?(.*?)\n?(?:</parameter>|\Z)", re.DOTALL
)
_NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input")

# Where calls stand in a text, and each of them: its name, and its arguments as JSON.
_FoundCalls = tuple[int, int, list[tuple[str, str]]]
_DECODER = json.JSONDecoder(strict=False)

_CODE = re.compile(
    r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[^\n]*\n.*?^[ \t]*(?P=fence)[`~]*[ \t]*$"
    r"|(?<!`)(?P<ticks>`++)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)",
    re.DOTALL | re.MULTILINE,
)


def text_tool_calls(
    text: str, tools: Collection[str] = (), *, complete: bool = True
) -> tuple[str, tuple[ToolCall, ...]]:
    """`text` without the calls in it, and the calls; nobody has checked their arguments.

    Forms that do not say that they are calls count only with a name of `tools`. Of an unfinished
    text (not `complete`) what may still become a call is left out. Text without calls comes back
    unchanged.
    """
    plain = {match.start() for match in outside_code(_MARKED, text, complete=complete)}
    marked_calls: list[_FoundCalls] = [
        (*match.span(), list(_read_marked(match)))
        for match in _MARKED.finditer(text)
        if match["fence"] or match.start() in plain
    ]
    unmarked_calls = list(_unmarked_calls(text, frozenset(tools), complete=complete))
    if not complete:
        return text[
            : min((one[0] for one in (*marked_calls, *unmarked_calls)), default=len(text))
        ], ()
    for candidate in unmarked_calls:
        if not any(_overlap(candidate, one) for one in marked_calls):
            marked_calls.append(candidate)
    if not marked_calls:
        return text, ()
    marked_calls.sort()
    calls = [call for _, _, several in marked_calls for call in several]
    rest = _without(text, [(start, end) for start, end, _ in marked_calls])
    return rest, tuple(_tool_call(place, call) for place, call in enumerate(calls))


def _overlap(one: _FoundCalls, other: _FoundCalls) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in spans:
        parts.append(text[at:start])
        at = max(at, end)
    return "".join([*parts, text[at:]]).strip()


def _tool_call(place: int, call: tuple[str, str]) -> ToolCall:
    name, arguments = call
    return ToolCall(f"text_{place}", _bare_name(name), arguments)


def _bare_name(name: str) -> str:
    """Without what models put in front: `functions.recall`, `default_api.recall`."""
    return name.rpartition(".")[2]


# Forms that say what they are
def _read_marked(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    if match["braces"]:
        yield from _of_braces(match["braces"])
        return
    kinds = ("tagged", "function", "kimi", "lfm", "piped", "mistral", "python", "deepseek",
             "fenced", "gemma")  # fmt: skip
    yield from _read(next((match[kind] for kind in kinds if match[kind] is not None), ""))


def _of_function(body: str) -> str:
    parameters = {key: _value(value) for key, value in _PARAMETER.findall(body)}
    return dump_json(parameters).decode() if parameters else body.strip() or "{}"


def _of_braces(body: str) -> Iterator[tuple[str, str]]:
    """A call whose arguments are JSON but for bare keys and marks around its strings."""
    if not (call := _BRACES.search(body)):
        return
    strict_json = _LOOSE.sub(_strict, call[2])
    with suppress(ValueError, RecursionError):
        yield call[1], dump_json(_DECODER.raw_decode(strict_json)[0]).decode()


def _strict(match: re.Match[str]) -> str:
    if match["said"] is not None:
        return dump_json(match["said"]).decode()
    return f'{match["before"]}"{match["key"]}"' if match["key"] else match[0]


def _read(body: str) -> Iterator[tuple[str, str]]:
    """The calls in a body whose marks are off, whatever notation they are in."""
    body = body.replace("｜DSML｜", "")
    if functions := _FUNCTION.findall(body):
        yield from ((name, _of_function(arguments)) for name, arguments in functions)
        return
    body = re.sub(r":\d+\s*<\|tool_call_argument_begin\|>|<\|tool_call_\w+\|>", "\n", body)
    body = re.sub(r"<｜tool▁call▁(?:begin|end)｜>|function(?=<｜tool▁sep｜>)", "\n", body)
    body = re.sub(r"(?m)^[^\S\n]*+<｜tool▁sep｜>", "", body)
    if pairs := _ARGUMENT.findall(body):
        name = body.partition("<arg_key>")[0].strip()
        yield name, dump_json({key.strip(): _value(value) for key, value in pairs}).decode()
        return
    if calls := list(_json_calls(body)):
        yield from calls
        return
    yield from _python_calls(body)


def _json_calls(body: str) -> Iterator[tuple[str, str]]:
    """JSON values one after the other, each a call, a list of calls, or after a name."""
    at = 0
    while at < len(body):
        name = _NAMED_CALL.match(body, at)
        bracket = _BRACKET.search(body, at)
        if not bracket:
            return
        try:
            value, at = _DECODER.raw_decode(body, name.end() if name else bracket.start())
        except (ValueError, RecursionError):
            return
        if name:
            yield name[1], dump_json(value).decode()
        else:
            yield from _calls_of(value)


def _calls_of(value: Any) -> Iterator[tuple[str, str]]:
    """The calls that a JSON value describes."""
    if isinstance(value, list):
        for one in value:
            yield from _calls_of(one)
    if not isinstance(value, Mapping):
        return
    if several := value.get("tool_calls") or value.get("tool_call"):
        yield from _calls_of(several)
        return
    fields = value["function"] if isinstance(value.get("function"), Mapping) else value
    name = next((fields[key] for key in _NAMES if isinstance(fields.get(key), str)), "")
    if not name:
        return
    arguments = next((fields[key] for key in _ARGUMENTS if key in fields), None)
    if arguments is None and fields.keys() - {*_NAMES, "type", "id"}:
        return  # an object that happens to have a name
    yield name, arguments if isinstance(arguments, str) else dump_json(arguments or {}).decode()


def _python_calls(body: str) -> Iterator[tuple[str, str]]:
    """Calls as Python writes them, with literal arguments: `print(recall(query="x"))`."""
    try:
        tree = ast.parse(body.strip(), mode="exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in tree.body:
        if isinstance(statement, ast.Expr | ast.Assign) and statement.value:
            yield from _of_expression(statement.value)


def _of_expression(expression: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(expression, ast.List):
        for one in expression.elts:
            yield from _of_expression(one)
    if not isinstance(expression, ast.Call):
        return
    name = _dotted_name(expression.func)
    if name == "print":
        for one in expression.args:
            yield from _of_expression(one)
        return
    try:
        arguments = {one.arg: ast.literal_eval(one.value) for one in expression.keywords if one.arg}
        arguments_json = json.dumps(arguments, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return
    if name and not expression.args:
        yield name.removesuffix(".call"), arguments_json


def _dotted_name(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute):
        return f"{_dotted_name(function.value)}.{function.attr}".strip(".")
    return ""


def _value(text: str) -> Any:
    """An argument between tags: JSON where it is some, else text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


# Forms known by the names of tools
def _unmarked_calls(text: str, tools: frozenset[str], *, complete: bool) -> Iterator[_FoundCalls]:
    if not tools:
        return
    for match in _FENCE.finditer(text):
        calls = _known_calls(_json_calls(match["json"]), tools)
        if calls or (not complete and match.end() == len(text)):
            yield (*match.span(), calls)
    for match in _CODE_FENCE.finditer(text):
        calls = _known_calls(_python_calls(match["python"]), tools)
        is_unfinished = not complete and match.end() == len(text)
        if calls or (is_unfinished and _may_become_call(match["python"], tools)):
            yield (*match.span(), calls)
    for match in _BARE.finditer(text):
        if span := _bare(text, match.end(), tools, complete=complete):
            yield match.start(), *span
    if not complete and (fence := _OPEN_FENCE.search(text)):
        yield (*fence.span(), [])
    if not complete and _FIRST_WORD.match(text):
        yield 0, len(text), []
    if _begins_call(text, tools):
        if not complete:
            yield 0, len(text), []
        elif calls := _known_calls(_python_calls(text), tools):
            yield 0, len(text), calls


def _may_become_call(code: str, tools: frozenset[str]) -> bool:
    return not code.strip() or bool(_FIRST_WORD.match(code)) or _begins_call(code, tools)


def _begins_call(text: str, tools: frozenset[str]) -> bool:
    match = _PYTHON.match(text)
    return bool(match and _bare_name(match[1]) in tools)


def _bare(
    text: str, start: int, tools: frozenset[str], *, complete: bool
) -> tuple[int, list[tuple[str, str]]] | None:
    """The end of a call that begins at `start`, and what it calls."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        begun_match = not complete and _CALL_START.match(text, start)
        broken_match = _BROKEN.match(text, start)
        return (
            (len(text), []) if begun_match or (broken_match and broken_match[1] in tools) else None
        )
    calls = _known_calls(_calls_of(value), tools)
    return (end, calls) if calls else None


def _known_calls(calls: Iterator[tuple[str, str]], tools: frozenset[str]) -> list[tuple[str, str]]:
    call_list = list(calls)
    return (
        call_list if call_list and all(_bare_name(name) in tools for name, _ in call_list) else []
    )


def outside_code(pattern: re.Pattern[str], text: str, *, complete: bool) -> Iterator[re.Match[str]]:
    """The matches of `pattern` that do not begin in closed code.

    At the end of an unfinished text nothing is sure to be closed.
    """
    spans = [match.span() for match in _CODE.finditer(text)] if _may_hold_code(text) else []
    closed_spans = [(start, end) for start, end in spans if complete or end < len(text)]
    for match in pattern.finditer(text):
        if not any(start <= match.start() < end for start, end in closed_spans):
            yield match


def is_open(text: str) -> bool:
    """Whether code may have begun in `text` that is not closed in it."""
    return _may_hold_code(_CODE.sub("", text))


def _may_hold_code(text: str) -> bool:
    return "`" in text or "~~~" in text
