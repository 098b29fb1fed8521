"""What kind of answer a question of the bot wants: a 👍 is one to what yes or no answers."""

from bot.listening.requests import asks_for_consent, last_question
from tests.support.rows import every_row

# fmt: off
YES_OR_NO = [
    "@Alice I can set it up. Want me to?",
    "Would that work for you?",
    "Done so far. Shall I go on?",
    "The room is free. Should I book it?",
    "Is that what you meant?",
    "Do you want a reminder as well?",
    "I found two notes. Delete both?",
    "OK to send it?",
    "Ready to publish?",
    "May I share this with Bob?",
    "Did you mean the Berlin office?",
    "Mind if I move it to Friday?",
    "Need anything changed before I send it?",
    "Can I close the ticket?",
    "So you want it on Friday, right?",
    "已经写好了，需要我发出去吗？",
    "要不要我顺便提醒大家？",
    "可以发了吗？",
    "这样行吗？",
    "是否需要保留原文？",
    "您是说上海那场，对吗？",
    "我帮您预订，好吗？",
    "要订这家吗",
    "删掉这两条，可以么？",
    "你要的是这个版本吧？",
    "需要的话我可以拆成三段，要拆吗？",
    "发给客户没问题吧？",
    "确认提交？",
    "要继续吗？（大约一分钟）",
    "是不是周五那场？",
]
SOMETHING_ELSE = [
    "Which one do you mean?",
    "When should I remind you?",
    "Red or blue?",
    "Who should I invite, and when?",
    "How many people?",
    "What's your budget?",
    "Should I sort it by price or by date?",
    "Where shall we meet?",
    "几点提醒？",
    "要哪一份？",
    "红的还是蓝的？",
    "发给谁？",
    "您想订几个人的位子？",
    "要我发给张三还是李四？",
    "预算大概多少？",
    "您看怎么安排？",
    "It is done.",
    "好的。",
    "Anything else?",
    "还有别的吗？",
    "你要什么？",
    "怎么样？",
    "这么多？",
]
# fmt: on


@every_row("said", YES_OR_NO)
def test_yes_or_no_answers_it(said: str) -> None:
    assert asks_for_consent(last_question(said))


@every_row("said", SOMETHING_ELSE)
def test_yes_or_no_does_not_answer_it(said: str) -> None:
    assert not asks_for_consent(last_question(said))
