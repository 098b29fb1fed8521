"""After which messages somebody is offered what they said elsewhere."""

from __future__ import annotations

from bot.features.private_answers.questions import asks_for_information
from tests.support.rows import every_row

ASKED = [
    "When is our launch?",
    "the wifi password of the Berlin office",
    "Remember when we met?",
    "发布日是哪天",
    "记得发布日是哪天吗",
    "柏林办公室的密码",
    "Thanks. And what is the door code",
    "tell me the door code",
    "Please tell me Bob's birthday",
    "I forgot the wifi password",
    "Can you find the contract number",
    "帮我查一下发布日期",
    "告诉我门禁码",
    "我忘了无线密码",
    "Which hotel did we book",
    "wifi password please",
    "I need the wifi password",
    "list the open tasks of the launch",
    "请问发布日期",
    "remind me what the budget is",
    "summarize what I told you about the launch",
    "What's the plan for Berlin",
    "who owns the launch",
    "Do you know when the launch is",
    "谁负责发布",
    "Wie lautet das WLAN-Passwort?",
    "help me find the invoice number",
    "晨会链接",
    "demo 环境的地址发一下",
]
SAID = [
    "",
    "  ",
    "/forget all",
    "/help",
    "帮助",
    "remember that our launch is on 3 March",
    "记住发布日",
    "Our launch is on 3 March.",
    "The wifi password of the Berlin office is hunter2",
    "I moved to Hamburg last week.",
    "我们的发布日是三月三号",
    "发布日改到周五了",
    "Thanks!",
    "谢谢",
    "ok",
    "Create a note about the launch budget",
    "add the tag 'recipe' to that note",
    "帮我创建一条关于发布的笔记",
    "把发布日改成周五",
    "Good morning",
    "We shipped the release yesterday",
    "Remind me tomorrow to call Bob",
    "My favourite colour is blue.",
    "Bob now owns the launch",
    "translate this: the launch budget",
    "Hello",
    "我喜欢咖啡",
    "launch budget: 400k",
    "Forget that I like tea.",
    "FYI the door code changed to 4711",
    "No, it is now Tuesday",
    "Alice likes tea",
    "明天下午三点开会",
    "I love the Berlin office wifi",
]


@every_row("message", ASKED)
def test_a_question_or_a_request_to_be_told_asks(message: str) -> None:
    assert asks_for_information(message)


@every_row("message", SAID)
def test_statements_orders_and_what_is_to_be_kept_do_not(message: str) -> None:
    assert not asks_for_information(message)
