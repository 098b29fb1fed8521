"""Several discussions in one chat are told apart; whatever is unsure stays together."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.listening.decisions import IncomingMessage, Reason, decide
from bot.listening.reply_links import Speakers
from bot.listening.topics import Discussion, answer_links, split_by_topic
from bot.listening.transcript import ChannelConversation, MessageRecord
from tests.support.rows import every_row

START = 1_790_000_000_000


def said(*lines: tuple[str, str], every_s: int = 15, begin: int = START) -> list[MessageRecord]:
    """Messages as author and text."""
    return [
        MessageRecord(who, f"ou_{who}", text, begin + 1000 * every_s * n, False, f"om_{n}")
        for n, (who, text) in enumerate(lines)
    ]


def asked(
    messages: list[MessageRecord], who: str, text: str, asks_bot: bool = True, **more: object
) -> Discussion:
    """The chat with one more message by `who`."""
    at = messages[-1].timestamp + 15_000
    newest = MessageRecord(who, f"ou_{who}", text, at, False, "om_newest", **more)  # type: ignore[arg-type]
    return split_by_topic(messages, newest, asks_bot=asks_bot)


THREE = said(
    ("王小明", "周五团建的场地定在哪里？"),
    ("李雷", "测试环境的数据库连不上了，有人遇到吗？"),
    ("陈晨", "团建场地我订了西山农家院，人均一百五"),
    ("赵敏", "新员工入职的电脑什么时候到货？"),
    ("韩梅", "数据库我这边也连不上，报错是连接超时"),
    ("孙强", "电脑供应商说下周三到货，一共八台"),
    ("王小明", "@陈晨 农家院能停几辆车？"),
    ("李雷", "@韩梅 那应该是防火墙规则昨晚改了"),
    ("陈晨", "停车场能停二十辆"),
    ("赵敏", "八台够吗？入职的有十个人"),
    ("韩梅", "防火墙规则我回滚一下试试"),
    ("孙强", "那我再加订两台电脑"),
)
PARTS = {"团建": (0, 2, 6, 8), "数据库": (1, 4, 7, 10), "电脑": (3, 5, 9, 11)}


def test_whoever_spoke_last_the_names_are_the_same():
    people = [*THREE, *said(("Ann Lee", "hi"), ("bob", "hello"), ("carla", "ok"))]
    forwards, backwards = Speakers.of(people), Speakers.of(people[::-1])
    read = [one.read(THREE[6]) for one in (forwards, backwards)]
    assert read[0] == read[1]
    assert forwards._names is backwards._names


@every_row(
    ("who", "question", "part"),
    [
        ("王小明", "农家院的场地一共要花多少钱？", "团建"),
        ("韩梅", "防火墙规则应该怎么回滚？", "数据库"),
        ("赵敏", "帮我算一下电脑还差几台", "电脑"),
    ],
)
def test_a_question_is_of_the_discussion_it_is_about(who: str, question: str, part: str):
    talk = asked(THREE, who, question)
    shown = [one.content for one in talk.of_topic(question) if one.message_id != "om_newest"]
    assert shown == [THREE[n].content for n in PARTS[part]]


@every_row(("who", "text"), [("钱七", "你好"), ("李雷", "现在怎么样了？")])
def test_what_is_of_none_or_in_doubt_is_shown_everything(who: str, text: str):
    talk = asked(THREE, who, text)
    assert talk.topic is None
    assert talk.of_topic(text) == talk.messages


@every_row(
    "question", ["总结一下大家刚才讨论的防火墙和数据库", "summarise everything", "所有话题都列一下"]
)
def test_who_asks_for_everything_gets_everything(question: str):
    assert asked(THREE, "韩梅", question).of_topic(question)[:-1] == tuple(
        asked(THREE, "韩梅", question).messages[:-1]
    )


def test_messages_answer_what_was_asked_in_chinese():
    assert answer_links(THREE) == (0, 1, 0, 3, 1, 3, 2, 4, 6, 5, 7, 5)


def test_messages_answer_what_was_asked_in_english():
    talk = said(
        ("ann", "does anyone know how to mount an ntfs disk?"),
        ("bob", "what time is the release meeting today?"),
        ("cyd", "ann: install ntfs-3g, then mount -t ntfs-3g"),
        ("dan", "bob: at three, in the blue room"),
        ("ann", "cyd: thanks, and at boot?"),
        ("bob", "great, thanks dan"),
        ("cyd", "ann: put it into fstab"),
    )
    assert answer_links(talk) == (0, 1, 0, 1, 2, 3, 4)


@every_row("every_s", [3, 40, 110])
def test_what_a_colleague_says_right_before_a_question_is_shown_however_slow_the_talk(every_s: int):
    talk = said(
        ("Alice", "the launch budget is 40k"),
        ("Bob", "the caterer called"),
        ("Alice", "@Memo write the launch budget down"),
        ("Bob", "our vendor moved everything to the 14th"),
        ("Cyd", "who wants coffee"),
        every_s=every_s,
    )
    told = asked(talk, "Alice", "@Memo put the launch budget into a table")
    assert told.topic == talk[0].timestamp
    shown = [one.content for one in told.of_topic("")]
    assert "our vendor moved everything to the 14th" in shown
    assert "who wants coffee" in shown


def test_a_quotation_and_a_thread_need_no_guess():
    talk = said(("ann", "the hall is booked"), ("bob", "lunch?"), ("cyd", "pizza"), ("dan", "yes"))
    talk[3] = replace(talk[3], quotes="om_0")
    talk.append(replace(talk[3], message_id="om_t", quotes="", root_id="om_1", content="noodles"))
    assert answer_links(talk)[3:] == (0, 1)

    newest = replace(talk[3], message_id="om_q", quotes="om_0", content="how many fit in?")
    told = split_by_topic(talk[:3], newest)
    assert told.topic == talk[0].timestamp
    assert told.of_topic("how many fit in?")[0].content == "the hall is booked"


def test_a_quotation_of_what_is_no_longer_known_is_no_topic():
    newest = replace(THREE[0], message_id="om_q", quotes="om_long_ago", content="and that?")
    told = split_by_topic(THREE, newest)
    assert told.topic is None
    assert told.of_topic("and that?") == told.messages


def test_a_thread_comes_with_the_message_it_hangs_under():
    thread = replace(THREE[5], message_id="om_t", root_id="om_2", content="门票另算")
    talk = asked([*THREE, thread], "王小明", "农家院的场地一共要花多少钱？")
    shown = [one.content for one in talk.of_topic("")]
    assert "门票另算" in shown
    assert THREE[1].content not in shown
    assert "门票另算" not in [
        one.content
        for one in asked([*THREE, thread], "韩梅", "防火墙规则应该怎么回滚？").of_topic("")
    ]


def test_what_is_known_already_stays_and_only_the_rest_is_found():
    first = asked(THREE, "韩梅", "防火墙规则应该怎么回滚？")
    assert set(first.new_topics) == {one.message_id for one in first.messages}
    known = list(first.messages)
    later = replace(THREE[0], message_id="om_later", timestamp=known[-1].timestamp + 1000)
    second = split_by_topic(known, later)
    assert set(second.new_topics) == {"om_later"}
    assert second.messages[:-1] == first.messages


WORDS = st.sampled_from(
    ["数据库", "团建", "@ann ", "bob: ", "hello", "吗？", "the disk", " ", "😀"]
)
RECORDS = st.lists(
    st.builds(
        lambda who, words, gap, root, ours: (who, "".join(words), gap, root, ours),
        st.sampled_from(["ann", "bob", "王小明", "", "Memo"]),
        st.lists(WORDS, max_size=5),
        st.integers(0, 4_000_000),
        st.sampled_from([None, None, None, "om_0", "om_elsewhere"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=70,
)


@given(RECORDS)
def test_every_message_answers_itself_or_an_earlier_one(
    rows: list[tuple[str, str, int, str, bool]],
):
    talk: list[MessageRecord] = []
    at = START
    for number, (who, text, gap, root, ours) in enumerate(rows):
        at += gap
        one = MessageRecord(who, f"ou_{who}", text, at, ours, f"om_{number}", root, ours)
        talk.append(one)
    assert all(0 <= answered <= number for number, answered in enumerate(answer_links(talk)))

    told = split_by_topic(talk, talk[-1])
    assert [one.message_id for one in told.messages] == [one.message_id for one in talk]
    assert not told.shares or sum(told.shares.values()) == pytest.approx(1)
    assert {one.message_id for one in told.messages if one.root_id} & set(told.new_topics) == set()
    shown = told.of_topic("")
    assert set(shown) <= set(told.messages)
    assert told.topic is None or talk[-1].message_id in {one.message_id for one in shown}


def test_a_message_is_placed_in_less_than_a_few_milliseconds_however_long():
    long = [replace(one, content=one.content * 500) for one in THREE * 4]
    talk = [replace(one, message_id=f"om_{n}", topic=1) for n, one in enumerate(long)]
    newest = replace(talk[0], message_id="om_newest", topic=None)
    started = time.process_time()
    for _ in range(20):
        split_by_topic(talk, newest, asks_bot=True)
    assert (time.process_time() - started) / 20 < 0.01


AFTER_TWO = (
    ("王小明", "测试环境的数据库连不上了"),
    ("李雷", "@王小明 报错是什么？"),
    ("王小明", "@李雷 数据库连接超时"),
    ("陈晨", "@Memo 发布会的场地定了吗？"),
    ("Memo", "@陈晨 场地定在蓝色大厅，三月三日。"),
)


@every_row(
    ("who", "text", "reason"),
    [
        ("陈晨", "大厅能坐多少人？", Reason.RECENT_FOLLOWUP),
        ("王小明", "蓝色大厅能停车吗？", Reason.RECENT_FOLLOWUP),
        ("李雷", "那数据库的连接数是多少？", Reason.OTHER_TOPIC),
        ("王小明", "这个超时怎么处理？", Reason.OTHER_TOPIC),
    ],
)
def test_who_goes_on_with_another_topic_does_not_follow_up(who: str, text: str, reason: Reason):
    talk = said(*AFTER_TWO, every_s=6)
    talk[-1] = replace(talk[-1], is_bot=True, ours=True, root_id="om_3")
    at = talk[-1].timestamp + 6000
    message = IncomingMessage("om_next", who, f"ou_{who}", text, at)
    conversation = ChannelConversation("oc", START, at, tuple(talk))
    assert decide(message, conversation, "ou_Memo", 60_000).reason is reason


@every_row("people", [3, 9])
def test_in_a_crowd_a_message_must_also_belong_to_what_the_bot_spoke_of(people: int):
    talk = said(
        *((f"P{n % (people - 1)}", f"line {n} about the invoices") for n in range(16)),
        ("Ann", "@Memo where is the spare projector?"),
        ("Memo", "@Ann It is in room four."),
        every_s=6,
    )
    talk[-1] = replace(talk[-1], is_bot=True, ours=True)
    at = talk[-1].timestamp + 6000
    conversation = ChannelConversation("oc", START, at, tuple(talk))

    def reason(who: str, text: str) -> Reason:
        message = IncomingMessage("om_next", who, f"ou_{who}", text, at)
        return decide(message, conversation, "ou_Memo", 60_000).reason

    assert reason("Ann", "and the projector screen?") is Reason.RECENT_FOLLOWUP
    in_crowd, alone = Reason.OTHER_TOPIC, Reason.RECENT_FOLLOWUP
    assert reason("P1", "and how many are there?") is (in_crowd if people > 6 else alone)
