"""What models and their servers let through, and what people see of it."""

from __future__ import annotations

import json
import re
import time

from hypothesis import example, given
from hypothesis import strategies as st

from bot.agents.model_text.cleaner import Cleaner, Manner, _is_past_beginnings, _is_suspect, _plain
from bot.agents.prompts.prompt import KNOWN_HEADING, QUESTION_HEADING, RULES, TOOL_RULES
from tests.support.rows import every_row

RULES_TEXT = RULES.format(bot_name="Memo", subject="Alice") + TOOL_RULES
MANNER = Manner("Memo", RULES_TEXT, frozenset({"recall", "search_notes", "create_note"}))
ANSWER = "The launch is on **3 March**."
CALL = {"name": "recall", "arguments": {"query": "launch"}}
JSON = json.dumps(CALL)

# The mark's origin → what the endpoint sent; people see ANSWER.
FORMS = {
    "thoughts": f"<think>Let me see.\nMarch?</think>\n\n{ANSWER}",
    "thoughts without a beginning": f"The user asks for a date.\n</think>\n\n{ANSWER}",
    "thinking": f"<thinking>hm</thinking>{ANSWER}",
    "kimi": f"◁think▷hm◁/think▷{ANSWER}",
    "seed": f"<seed:think>hm</seed:think>{ANSWER}",
    "thoughts in the middle": f"<think>a</think>{ANSWER}<think>b</think>",
    "gpt-oss channels": "<|channel|>analysis<|message|>User asks.<|end|><|start|>assistant"
    f"<|channel|>final<|message|>{ANSWER}<|return|>",
    "gpt-oss, marks dropped": f"analysisThe user asks when.assistantfinal{ANSWER}",
    "gemma": f"{ANSWER}<end_of_turn>\n<start_of_turn>user\nand who?<end_of_turn>",
    "gemma from the start": f"<start_of_turn>model\n{ANSWER}<end_of_turn>",
    "chatml": f"{ANSWER}<|im_end|>\n<|im_start|>user\nAlice: thanks",
    "chatml from the start": f"<|im_start|>assistant\n{ANSWER}",
    "llama 2": f"{ANSWER}</s>[INST] and then? [/INST] no",
    "llama 2 from the start": f"<s> [INST] [/INST] {ANSWER} </s>",
    "llama 3": f"<|start_header_id|>assistant<|end_header_id|>\n\n{ANSWER}<|eot_id|>",
    "llama 3, marks dropped": f"assistant\n\n{ANSWER}",
    "gemma, marks dropped": f"model\n{ANSWER}<end_of_turn>",
    "a role that nobody asked for": f"\nuser\n{ANSWER}",
    "mistral": f"[/INST]{ANSWER}[INST]",
    "gpt-2": f"{ANSWER}<|endoftext|>Human: hi",
    "phi": f"{ANSWER}<|end|><|user|>x",
    "deepseek": f"{ANSWER}<｜end▁of▁sentence｜>",
    "cohere": f"<|START_OF_TURN_TOKEN|>{ANSWER}<|END_OF_TURN_TOKEN|>",
    "some other token": f"{ANSWER}<|fim_pad|>rest",
    "granite": f"<|start_of_role|>assistant<|end_of_role|>{ANSWER}<|end_of_text|>",
    "eos": f"{ANSWER}<eos>",
    "the frame of our prompt": f"{QUESTION_HEADING}\n{ANSWER}\n{KNOWN_HEADING}\nNow:",
    "llama.cpp": f"{ANSWER} [end of text]",
    "magistral": f"[THINK]hm[/THINK]{ANSWER}",
    "glm's box": f"\n<|begin_of_box|>{ANSWER}<|end_of_box|>",
    "llama 4": f"<|header_start|>assistant<|header_end|>\n\n{ANSWER}<|eot|>",
    "gemma 4": f"<|channel>thought\nhm<channel|>{ANSWER}<turn|>\n<|turn>user\nand who?",
    "our label": f"Memo: {ANSWER}",
    "our label in bold": f"**Memo:** {ANSWER}",
    "our label, Chinese": f"Memo：{ANSWER}",
    "our mark with the time": f"[2026-11-23 12:28] [you]: {ANSWER}",
    "our label with the time": f"[2026-11-23 12:28] Memo: {ANSWER}",
    "an invented line of ours": f"{ANSWER}\n[2026-11-23 12:28] [you]: and the party too",
    "an invented line of ours, no time": f"[you]: {ANSWER} [you]: @Alice yes",
    "our mark": f"Memo [you]: {ANSWER}",
    "a line of our rules": f"- {RULES_TEXT.splitlines()[3][2:]}\n{ANSWER}",
    "rules broken elsewhere": " ".join(RULES_TEXT.splitlines()[:2]) + f"\n\n{ANSWER}",
    "a rule that names a mark": f"{ANSWER}\nmay stand first. Between {KNOWN_HEADING} and",
    "all our rules": f"{ANSWER}\n\n{RULES_TEXT}",
    "our tool context": f"{ANSWER}\n\n[Tool context: what the tools did]\n1. Tool: recall (ok)",
}

# The form's origin → a call of `recall` as text.
CALLS = {
    "hermes": f"<tool_call>\n{JSON}\n</tool_call>",
    "hermes, not closed": f"<tool_call>{JSON}",
    "function_call": f"<function_call>{JSON}</function_call>",
    "glm": "<tool_call>recall\n<arg_key>query</arg_key>\n<arg_value>launch</arg_value>\n"
    "</tool_call>",
    "llama 3.1": '<function=recall>{"query": "launch"}</function>',
    "qwen coder": "<tool_call>\n<function=recall>\n<parameter=query>\nlaunch\n</parameter>\n"
    "</function>\n</tool_call>",
    "fenced": f"```json\n{JSON}\n```",
    "fenced as a call": f"```tool_call\n{JSON}\n```",
    "bare": JSON,
    "bare with parameters": '{"name": "recall", "parameters": {"query": "launch"}}',
    "bare in a list": f"[{JSON}]",
    "openai's form": json.dumps(
        {
            "tool_calls": [
                {"type": "function", "function": {**CALL, "arguments": '{"query": "launch"}'}}
            ]
        }
    ),
    "gemma": '```tool_code\nprint(default_api.recall(query="launch"))\n```',
    "gemma without a fence": 'tool_code\nrecall(query="launch")',
    "mistral": f"[TOOL_CALLS] [{JSON}]",
    "mistral, new": '[TOOL_CALLS]recall[ARGS]{"query": "launch"}',
    "llama 3": '<|python_tag|>{"name": "recall", "parameters": {"query": "launch"}}',
    "llama 3, python": '<|python_tag|>recall.call(query="launch")<|eom_id|>',
    "pythonic": '[recall(query="launch")]',
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>recall\n"
    '```json\n{"query": "launch"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek 3.1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>recall<｜tool▁sep｜>"
    '{"query": "launch"}'
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "phi": f"<|tool_call|>[{JSON}]<|/tool_call|>",
    "gemma, python": '```python\nprint(recall(query="launch"))\n```',
    "function gemma": "<start_function_call>call:recall{query:<escape>launch<escape>}"
    "<end_function_call>",
    "gemma 4": '<|tool_call>call:recall{query:<|"|>launch<|"|>}<tool_call|>',
    "kimi k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.recall:0"
    '<|tool_call_argument_begin|>{"query": "launch"}<|tool_call_end|><|tool_calls_section_end|>',
    "lfm": '<|tool_call_start|>[recall(query="launch")]<|tool_call_end|>',
    "minimax": '<minimax:tool_call>\n<invoke name="recall">\n'
    '<parameter name="query">launch</parameter>\n</invoke>\n</minimax:tool_call>',
    "seed": "<seed:tool_call><function=recall><parameter=query>launch</parameter></function>"
    "</seed:tool_call>",
    "deepseek 3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="recall">\n'
    '<｜DSML｜parameter name="query" string="true">launch</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "an invocation alone": '<invoke name="recall"><parameter name="query">launch</parameter>'
    "</invoke>",
    "react": '{"action": "recall", "action_input": {"query": "launch"}}',
    "gpt-oss": "<|channel|>commentary to=functions.recall <|constrain|>json<|message|>"
    '{"query": "launch"}<|call|>',
}

# Everyday answers that look a little like marks.
EVERYDAY = [
    ANSWER,
    "好的，发布在 3 月 3 日。",
    "Close the turn with `<|im_end|>`; Llama 2 ends with `</s>`.",
    "```\n<|im_start|>user\nhi<|im_end|>\n```\nThat is ChatML.",
    "In HTML, <s>old</s> strikes something out.",
    "a < b and c > d, [1] and [2](https://example.com), f(x) = {x}",
    '```json\n{"name": "Alice", "age": 3}\n```',
    '{"launch": "3 March"}',
    "analysis shows: 3 %",
    "[2026-11-23 12:28] Alice: we start at nine",
    "[1] Memo pads",
    "Lines of mine begin with `[you]:`; [you] and I know [12:30] that.",
    "model cars\nand user stories\n",
    "Analysis\n\nThe user numbers grew.",
    "Memory: 3 GB\nMemo's plan: none",
    "Write `<tool_call>{}</tool_call>` to call a tool.",
    "| a | b |\n|---|---|\n| 1 | <br> |",
    "\n\n  indented\n- list\n",
    "print(x) prints x",
    "~~~\n</think>\n~~~",
    "```python\nprint(sum([1, 2]))\n```",
    "Write `<|begin_of_box|>` around it.",
]


def seen(text: str) -> str:
    return Cleaner().read(text, MANNER).text.strip()


@every_row("form", FORMS)
def test_people_see_the_answer_and_no_inner_marks(form: str) -> None:
    assert seen(FORMS[form]) == ANSWER


@every_row("form", CALLS)
def test_a_call_written_as_text_is_a_call_and_is_not_shown(form: str) -> None:
    read = Cleaner().read(CALLS[form], MANNER)

    assert read.text == ""
    assert [(call.name, json.loads(call.arguments)) for call in read.calls] == [
        ("recall", {"query": "launch"})
    ]


@every_row("form", CALLS)
def test_what_is_said_before_a_call_is_kept(form: str) -> None:
    if form not in ("pythonic", "gpt-oss"):
        assert seen(f"I will look.\n\n{CALLS[form]}") == "I will look."


def test_several_calls_keep_their_order() -> None:
    other = json.dumps({"name": "search_notes", "arguments": {"query": "x"}})
    read = Cleaner().read(f"<tool_call>{JSON}</tool_call>\n<tool_call>{other}</tool_call>", MANNER)

    assert [call.name for call in read.calls] == ["recall", "search_notes"]
    assert len({call.id for call in read.calls}) == 2


def test_an_invented_result_of_a_call_is_not_shown() -> None:
    text = f"<tool_call>{JSON}</tool_call><tool_response>3 March</tool_response>{ANSWER}"

    assert seen(text) == ANSWER


def test_a_call_that_breaks_off_is_not_shown() -> None:
    assert seen('{"name": "recall", "arguments": {"qu') == ""
    assert seen("<tool_call>{nonsense") == ""


@every_row("word", ["<think></think>", "</think>", "<think>", "`", "<tool_call>", "{"])
@every_row("complete", [True, False])
def test_a_model_that_repeats_one_mark_without_end_is_read_at_once(
    word: str, complete: bool
) -> None:
    began = time.process_time()
    read = Cleaner().read(word * 4000, MANNER, complete=complete)

    assert "think" not in read.text
    assert time.process_time() - began < 3


def test_a_mark_of_a_call_is_no_character_of_its_arguments() -> None:
    call = '<start_function_call>call:recall{query:<escape>a "b" {c: 1}\0<escape>}'
    (read,) = Cleaner().read(call, MANNER).calls
    assert json.loads(read.arguments) == {"query": 'a "b" {c: 1}\0'}


@every_row("text", EVERYDAY)
def test_an_everyday_answer_is_not_changed(text: str) -> None:
    assert Cleaner().read(text, MANNER).text == text


@given(st.text(alphabet=st.characters(exclude_characters="<[{◁｜|`~("), max_size=200))
@example("the user asks\nthe")
def test_text_without_marks_is_never_changed(text: str) -> None:
    assert Cleaner().read(f"= {text}", MANNER).text == f"= {text}"


PARTS = [*FORMS.values(), *CALLS.values(), *EVERYDAY, "`", "```", "\n", " ", "<", "</", "[", "|>"]
PARTS += ["Memo", "**", "{", '{"', "word", "。", "<s>", "~~~", "<|", "tool_code", "analysis"]
UNOPENED = FORMS["thoughts without a beginning"]


@given(st.lists(st.sampled_from([one for one in PARTS if one != UNOPENED]), max_size=4))
def test_a_frame_never_shows_what_the_end_hides(parts: list[str]) -> None:
    text = "\n".join(parts)
    end = Cleaner().read(text, MANNER).text
    if any(mark in text.replace("<think>", "") for mark in ("</think>", "</thinking>")):
        return  # thoughts whose beginning is missing: below
    for length in range(len(text)):
        frame = Cleaner().read(text[:length], MANNER, complete=False).text
        assert end.strip().startswith(frame.strip()), (text[:length], frame, end)


@given(st.lists(st.sampled_from([*PARTS, *"tool_code", "a", "user", "recall"]), max_size=5))
def test_a_frame_past_all_beginnings_reads_as_one_that_is_looked_through(parts: list[str]) -> None:
    text = "".join(parts)
    for length in range(len(text)):
        frame = text[:length]
        looked_through, _ = Cleaner()._without_marks(frame, MANNER, complete=False)
        if _is_past_beginnings(frame) and not _is_suspect(frame):
            assert looked_through == frame


@every_row("begun", ["", "one", " ana", "user", "two words\ntool_c", "two words\n"])
def test_a_frame_that_may_begin_a_mark_is_not_past_all_beginnings(begun: str) -> None:
    assert not _is_past_beginnings(begun)
    assert _is_past_beginnings("two words\nand tool_c")


SPACES = [chr(n) for n in range(0x3001) if chr(n).isspace()]  # no others above


@given(st.text(st.sampled_from([*SPACES, *" ***--aß>#.7٣。"]), max_size=12))
def test_of_a_line_only_its_words_are_compared(line: str) -> None:
    assert _plain(line) == " ".join(re.sub(r"^[\s\-*>#\d.]+|[\s*]+$", "", line).split()).casefold()


def test_thoughts_without_a_beginning_are_shown_once_at_most() -> None:
    cleaner = Cleaner()
    cleaner.read(UNOPENED, MANNER)
    frames = [cleaner.read(UNOPENED[:n], MANNER, complete=False).text for n in range(len(UNOPENED))]

    assert all(ANSWER.startswith(frame.strip()) for frame in frames)
    assert cleaner.read(ANSWER, MANNER).text == ANSWER, "a model that did not think this time"


@every_row("name", ["deepseek-r1:7b", "QwQ-32B", "qwen3-30b-a3b-thinking-2507"])
def test_models_known_for_it_show_no_thoughts_from_the_start(name: str) -> None:
    assert Cleaner(name).read("The user asks", MANNER, complete=False).text == ""
    assert Cleaner("gpt-4.1-mini").read("The user asks", MANNER, complete=False).text != ""
