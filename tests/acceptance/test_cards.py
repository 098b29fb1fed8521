"""Every kind of block as a card, through the real processes: what the model wrote, what was sent.

In what was sent `{at}` is the asker's tag. The stored row is byte for byte the same text.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.conftest import World, is_from_bot, markdown

TABLE = "| Who | What |\n| --- | --- |\n| Bob | tests & docs |\n| 陈晨 | a < b |"
CODE = "```python\nfor name in names:\n@Bob\n    print(name)  # <at id=all></at>\n```"
SENT_CODE = CODE.replace("<at", "<\u200bat").replace("</at", "<\u200b/at")

# name → (what the model answers, what is sent)
CASES: dict[str, tuple[str, str]] = {
    "sentence": ("On **3 March**, as agreed.", "{at} On **3 March**, as agreed."),
    "中文": ("三月三日上线，**陈晨**负责测试。", "{at} 三月三日上线，**陈晨**负责测试。"),
    "heading": ("# Plan\n\n## First\ntext", "{at}\n\n# Plan\n\n## First\ntext"),
    "underlined heading": ("Plan\n====\ntext", "{at}\n\nPlan\n====\ntext"),
    "bullets": ("- one\n- two\n- three", "{at}\n\n- one\n- two\n- three"),
    "numbers": ("1. one\n2. two", "{at}\n\n1. one\n2. two"),
    "numbers with brackets": ("1) one\n2) two", "{at}\n\n1) one\n2) two"),
    "tasks": ("- [ ] open\n- [x] done", "{at}\n\n- [ ] open\n- [x] done"),
    "nested lists": (
        "1. one\n   - a\n   - b\n     - deep\n2. two",
        "{at}\n\n1. one\n    - a\n    - b\n        - deep\n2. two",
    ),
    "code in a list": (
        "1. run\n   ```sh\n   ls | wc\n   ```\n2. look",
        "{at}\n\n1. run\n```sh\nls | wc\n```\n2. look",
    ),
    "quote": ("> said\n> so\n\nBob", "{at}\n\n> said\n> so\n\nBob"),
    "quote with code": ("> see\n> ```\n> x = 1\n> ```", "{at}\n\n> see\n> ```\n> x = 1\n> ```"),
    "fence": (CODE, "{at}\n\n" + SENT_CODE),
    "tildes": ("~~~js\nlet a = `x`\n~~~", "{at}\n\n```js\nlet a = `x`\n```"),
    "indented code": ("    ls -l\n    cd /", "{at}\n\n    ls -l\n    cd /"),
    "inline code": ("`f[0](x)` calls it", "{at} `f[0](x)` calls it"),
    "table": (TABLE, "{at}\n\n" + TABLE),
    "rule": ("---\n\nafter the rule", "{at}\n\n---\n\nafter the rule"),
    "image": ("![a chart](https://x.example/c.png)", "{at}\n\n[a chart](https://x.example/c.png)"),
    "links": (
        "[docs](https://x.example/a?b=1), [mail](mailto:a@x.example), [no](javascript:x)",
        "{at} [docs](https://x.example/a?b=1), mail (mailto:a@x.example), no (javascript:x)",
    ),
    "card tags": (
        "<font color='red'>red</font> <at id=all></at> <button>b</button>",
        "{at}\n\n&#60;font color='red'>red&#60;/font> &#60;at id=all>&#60;/at>"
        " &#60;button>b&#60;/button>",
    ),
    "entities": ("a &lt;at id=all&gt; &amp; b", "{at} a &#38;lt;at id=all&#38;gt; &#38;amp; b"),
    "old line ends": ("# Plan\r\n- one\r\n- two", "{at}\n\n# Plan\n- one\n- two"),
    "address and block": ("@Alice\n# Plan\n- one", "{at}\n\n# Plan\n- one"),
    "own name and block": ("@Memo # Plan\n- one", "{at}\n\n# Plan\n- one"),
    "nothing": (
        "@Memo \u200b",
        "{at} I couldn't come up with an answer this time. Please rephrase your question.",
    ),
}
QUESTION = "please show the case [{}]"


def script() -> dict[str, Any]:
    """The model's rules: the answer of each case to the question that names it."""
    return {
        "rules": [
            {"when": {"contains": f"[{name}]"}, "reply": {"text": answer}}
            for name, (answer, _) in CASES.items()
        ]
    }


def test_every_kind_of_block_is_sent_as_feishu_draws_it(world: World) -> None:
    world.model.control("script", script())
    asked = {
        name: world.say("Alice", f"@{world.bot_name} {QUESTION.format(name)}") for name in CASES
    }
    tag = f"<at id={world.people['Alice']}></at>"
    sent, stored = {}, {}
    for name, question in asked.items():
        (row,) = world.settled(question, within_s=90)
        (message,) = world.answers(question)
        sent[name], stored[name] = markdown(message), row["content"]
    assert sent == {name: shown.replace("{at}", tag) for name, (_, shown) in CASES.items()}
    assert {name: text.encode() for name, text in stored.items()} == {
        name: text.encode() for name, text in sent.items()
    }


def test_a_long_answer_is_several_cards_cut_between_blocks(world: World) -> None:
    rows = "".join(f"| {number} | {'x' * 90} |\n" for number in range(420))
    code = "".join(f"print({number})  # {'y' * 60}\n" for number in range(420))
    answer = f"# Long\n\n| n | v |\n|---|---|\n{rows}\n```python\n{code}```"
    world.model.control("script", {"rules": [{"reply": {"text": answer}}]})
    question = world.say("Alice", f"@{world.bot_name} everything, please")
    stored = [row["content"] for row in world.settled(question, within_s=90)]
    sent = [markdown(m) for m in world.platform.messages(world.group) if is_from_bot(m)]

    assert sorted(sent) == sorted(stored)
    assert len(stored) > 3
    assert stored[0].startswith(f"<at id={world.people['Alice']}></at>\n\n# Long\n\n| n | v |")
    assert all(text.count("```") in (0, 2) for text in stored)
    assert all(text.startswith("| n | v |\n|---|---|\n") for text in stored[1:] if "|" in text)


FEATURES = "| a |\n|---|\n| 1 |\n\n[b](https://x)"
AS_CODE = "```\n| a |\n|---|\n| 1 |\n```"


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("ErrCode: 11310; ErrMsg: card table number over limit", f"{{at}}\n\n{AS_CODE}\n\n[b](https://x)"),
        ("ErrCode: 100290; ErrMsg: invalid user resource", f"@Alice\n\n{FEATURES}"),
    ],
)  # fmt: skip
def test_a_refused_card_loses_one_feature(world: World, error: str, shown: str) -> None:
    question = ask_refused(world, error, times=1)
    (row,) = world.settled(question)
    (sent,) = world.answers(question)
    tag = f"<at id={world.people['Alice']}></at>"
    assert markdown(sent) == row["content"] == shown.replace("{at}", tag)


def test_a_card_refused_again_and_again_loses_them_all_and_ends_as_text(world: World) -> None:
    question = ask_refused(world, "ErrCode: 200621; ErrMsg: parse card json err", times=5)
    (row,) = world.settled(question)
    (sent,) = world.answers(question)
    assert sent["msg_type"] == "text"
    assert row["content"] == f"@Alice\n\n{AS_CODE}\n\nb (https://x)"


def test_a_card_that_is_refused_for_its_form_loses_what_stands_around_the_words_first(
    world: World,
) -> None:
    question = ask_refused(world, "ErrCode: 200621; ErrMsg: parse card json err", times=1)
    (row,) = world.settled(question)
    (sent,) = world.answers(question)
    assert markdown(sent) == row["content"]
    assert row["content"].endswith(FEATURES)
    assert [one["tag"] for one in sent["card"]["body"]["elements"]] == ["markdown"]


def ask_refused(world: World, error: str, *, times: int) -> str:
    """Asks a question whose answer is refused that often with a 230099 that says `error`."""
    world.model.control("script", {"rules": [{"reply": {"text": FEATURES}}]})
    body = {"code": 230099, "msg": f"Failed to create card content, ext={error}; "}
    world.platform.disturb_replies(status=400, body=body, times=times)
    return world.say("Alice", f"@{world.bot_name} a table")


def test_questions_that_were_listed_too_stand_on_buttons_only(world: World) -> None:
    asked = ["Who comes?", "Where is it?"]
    call = {"name": "suggest_follow_ups", "arguments": {"questions": [*asked, "/forget all"]}}
    listed = "All set.\n\nYou might also ask:\n- Who comes?\n- Where is it?"
    rules = [
        {"when": {"contains": "plan"}, "reply": {"tool_calls": [call]}, "after_tool": False},
        {"when": {"contains": "plan"}, "reply": {"text": listed}},
        {"reply": {"text": "好的。\n\n你还可以问：\n1. 谁来？\n2. 在哪里？"}},
    ]
    world.model.control("script", {"rules": rules})
    question, card = world.ask("Alice", "the plan")
    (message,) = world.answers(question)
    tag = f"<at id={world.people['Alice']}></at>"
    assert (card, labels(message)) == (f"{tag} All set.", asked)

    question, card = world.ask("Alice", "还有呢")
    (message,) = world.answers(question)
    assert (card, labels(message)) == (f"{tag} 好的。", ["谁来？", "在哪里？"])


def labels(message: dict[str, Any]) -> list[str]:
    elements = message["card"]["body"]["elements"]
    return [one["text"]["content"] for one in elements if one["tag"] == "button"]
