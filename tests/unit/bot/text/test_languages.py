"""In which language a text is, by what is said in it."""

from __future__ import annotations

import time

from bot.text.languages import Language, language_of, last_own_language, own_language
from tests.support.rows import every_row

NAMES = ("Memo", "Bob", "陈晨", "王芳", "Ada Lovelace", "An")
ENGLISH = [
    "@Memo @Bob @陈晨 when is our launch?",
    "remind 陈晨 tomorrow at 9 to call the bank",
    "what did 陈晨 and 王芳 decide?",
    "ask 王芳",
    "@陈晨 thanks!",
    "what does “你好吗” mean?",
    'translate "我们明天见" please',
    "what is 加油 in English?",
    "how do I say 谢谢 to her?",
    "when is the 产品发布会?",
    "who wrote 《三体》?",
    "see https://example.com/中文/文档",
    "open https://zh.wikipedia.org/wiki/北京 and summarise it",
    "what does `打印(值)` do?",
    "fix this:\n```\n# 计算总和并返回结果\nprint('结果')\n```",
    "> 我们什么时候发布？\nwhat does this mean?",
    "[file: 价格表.csv] what is in it?",
    "where is the 会议室?",
    "is 李四 coming to the party?",
    "please book 海底捞 for us",
    "/HELP",
    "/digest daily 18:00",
    "/memory @陈晨",
    "An 陈晨 ok",
    "remember that our launch is on 3 March",
    "Ünal, où est le 文档?",
]
CHINESE = [
    "@Memo @Bob 我们什么时候发布？",
    "我们的 launch 是什么时候？",
    "Kubernetes deployment 怎么做",
    "帮我 review 一下 PR",
    "提醒 Bob 明天九点开会",
    "提醒Ada Lovelace明天九点给银行打电话",
    "OpenAI API key 在哪里配置？",
    "这个 bug fix 了吗",
    "“thank you very much” 是什么意思？",
    '翻译一下："see you tomorrow at the office"',
    "看看 https://example.com/a/very/long/path/of/english/words",
    "预算是多少？https://acme.feishu.cn/docx/AbCdEfGhIjKlMnOpQrStUvWxYz1",
    "`docker compose up -d` 报错了",
    "下面的代码有什么问题：\n```\nprint('hello world, this is the end')\n```",
    "> when is our launch?\n这是什么意思？",
    "[file: quarterly report of the sales team.csv] 里面有什么？",
    "Q3 OKR 怎么写？",
    "iPhone 15 Pro Max 多少钱",
    "好的",
    "ok 好",
    "hello 你好",
    "/帮助",
    "/要求 Answer briefly 就好",
    "/记忆 all",
    "陈晨的电话是多少",
    "把 README 里的 install 部分改成 pip",
    "@王芳在吗",
]
NOTHING = [
    "", "@Memo", "3", "👍", "?!", "https://example.com/a", "[image]", "[file: plan.pdf]", "@王芳",
    "@Memo @陈晨", "陈晨", "Bob 陈晨!", "@Ada Lovelace", "“你好”", "`print()`", "```\nx = 1\n```",
    "www.example.com", "> 引用", "9:00 – 10:30",
]  # fmt: skip


@every_row("text", ENGLISH)
def test_english_is_what_is_said_in_english(text: str) -> None:
    assert own_language(text, NAMES) == "en"


@every_row("text", CHINESE)
def test_chinese_is_what_is_said_in_chinese(text: str) -> None:
    assert own_language(text, NAMES) == "zh"


@every_row("text", NOTHING)
def test_names_numbers_links_quotations_and_code_tell_no_language(text: str) -> None:
    assert own_language(text, NAMES) is None


@every_row(
    ("text", "language"),
    [
        ("remind 陈晨 tomorrow at 9 to call the bank", "en"),
        ("what did 陈晨 say?", "en"),
        ("提醒 Alexander 明天九点开会", "zh"),
        ("Bob 说了什么？", "zh"),
    ],
)
def test_a_name_that_nobody_knows_does_not_decide(text: str, language: Language) -> None:
    assert language_of([text]) == language


@every_row(
    ("texts", "language"),
    [
        (["你好", "3"], "zh"),
        (["你好", "when is it?", "@陈晨"], "en"),
        (["我们什么时候发布？", "/HELP"], "zh"),
        (["when does 陈晨 come?", "/HELP"], "en"),
        (["你好", "/help", "👍"], "zh"),
        (["hello", "/帮助"], "zh"),
        (["/help"], None),
        ([], None),
    ],
)
def test_without_words_it_is_the_last_language(texts: list[str], language: Language | None) -> None:
    assert last_own_language(texts, NAMES) == language


def test_of_several_texts_it_is_that_of_most_words() -> None:
    assert language_of(["好", "we meet on Monday", "see you there"]) == "en"
    assert language_of(["ok", "我们周一开会", "到时候见"]) == "zh"
    assert language_of([]) == "en"


@every_row(
    "piece",
    ["@", "中", "a", "[a", "[a:", "[a: ", "://", "a://", "x ", "`", "```", "“", '"', "「", ">",
     "> ", "@a ", "陈晨", "www."],
)  # fmt: skip
def test_the_longest_message_holds_nobody_else_up(piece: str) -> None:
    """Feishu takes 150 KB of text."""
    text = piece * (150_000 // len(piece.encode()))
    begun = time.process_time()
    own_language(text, NAMES)

    assert time.process_time() - begun < 2
