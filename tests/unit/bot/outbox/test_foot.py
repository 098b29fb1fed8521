"""What stands below an answer: told in the reader's language, folded; of words only those heard."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.feishu import cards, markup
from bot.outbox.foot import Foot, RecalledSource, card_foot

NOW = datetime(2026, 11, 22, 12, tzinfo=ZoneInfo("Asia/Shanghai"))
FOOT = Foot(
    "en",
    4.23,
    (("create_note", True), ("recall", True), ("recall", True), ("search", False)),
    (
        RecalledSource("2026-03-03T06:05:00+00:00", "thread"),
        RecalledSource("2025-12-31T16:00:00+00:00", "chat"),
        RecalledSource("2026-03-03T06:05:00+00:00", "elsewhere"),
    ),
)


def test_the_line_and_what_it_unfolds_to() -> None:
    shown = card_foot(FOOT, NOW)

    assert shown.line == "4 s · 4 tool calls · 3 earlier messages"
    assert list(shown.details) == [
        "Took 4.2 s",
        "Tools: create_note, recall ×2, search (failed)",
        "Sources: 3 Mar at 14:05 (this thread), 1 Jan at 00:00 (another thread here), "
        "3 Mar at 14:05 (another chat)",
    ]
    assert [button.text for button in shown.handles] == ["👍", "👎", "Again"]


def test_in_chinese_with_a_year_that_is_not_this_one() -> None:
    foot = Foot("zh", 0.2, (), (RecalledSource("2024-02-29T01:02:00+00:00", "chat"),))
    shown = card_foot(foot, NOW, again=False)

    assert shown.line == "不到 1 秒 · 参考了 1 处之前的对话"
    assert list(shown.details) == [
        "用时 0.2 秒",
        "来源：2024年2月29日 09:02（这里的其他话题）",
    ]
    assert [button.text for button in shown.handles] == ["👍", "👎"]


def test_it_is_kept_and_found_again() -> None:
    row = json.loads(json.dumps(FOOT.row()))

    kept = Foot.of_row(row)
    assert kept is not None
    assert card_foot(kept, NOW) == card_foot(FOOT, NOW)
    assert Foot.of_row(None) is None


def test_why_an_answer_came_no_further_stands_in_a_line_of_its_own() -> None:
    for ended in ("time", "connection", "length", "stopped"):
        kept = Foot.of_row(json.loads(json.dumps(replace(FOOT, ended=ended).row())))
        assert kept is not None
        said = [card_foot(replace(kept, language=one), NOW).notice for one in ("en", "zh")]
        assert all(said), ended
        card = cards.answer_card("As far as", foot=card_foot(kept, NOW))
        (line,) = [one for one in card["body"]["elements"] if one.get("element_id") == "notice"]
        assert line["text"]["content"] == said[0]
        assert card["body"]["elements"][0]["content"] == "As far as"


def test_where_nothing_can_be_pressed_the_line_stands_alone() -> None:
    kept = Foot.of_row(json.loads(json.dumps(replace(FOOT, ended="time", bare=True).row())))
    assert kept is not None
    elements = cards.answer_card("As far as", foot=card_foot(kept, NOW))["body"]["elements"]
    assert [one.get("element_id") for one in elements] == ["answer", "notice"]


def test_a_complete_answer_has_no_such_line() -> None:
    assert card_foot(FOOT, NOW).notice == ""
    assert "notice" not in json.dumps(cards.answer_card("All", foot=card_foot(FOOT, NOW)))


def test_many_tools_and_sources_stay_short() -> None:
    many = Foot(
        "en",
        1,
        tuple((f"tool_{n}", True) for n in range(500)),
        tuple(RecalledSource(f"2026-01-01T00:{n:02}:00+00:00", "chat") for n in range(60)),
    )
    assert len(json.dumps(many.row())) < 6000
    assert sum(map(len, card_foot(many, NOW).details)) < 800


IMPORTED = Foot(
    "en",
    2,
    (),
    (
        RecalledSource("2025-03-12T06:03:00+00:00", "chat", "Chen", "oc_group", 529),
        RecalledSource("2026-03-03T06:05:00+00:00", "thread"),
        RecalledSource(
            "2026-04-01T01:00:00+00:00", "elsewhere", "[x](http://e.il) <at id=all>", "oc_2"
        ),
    ),
)
LINK = "https://applink.feishu.cn/client/chat/open"


def test_an_imported_message_is_named_by_date_author_and_a_link_to_it() -> None:
    kept = Foot.of_row(json.loads(json.dumps(IMPORTED.row())))
    assert kept is not None
    shown = card_foot(kept, NOW, applink=LINK)

    assert shown.line == "2 s · 3 earlier messages"
    assert list(shown.details) == ["Took 2.0 s", "Sources: 3 Mar at 14:05 (this thread)"]
    heading, first, second = shown.sources
    assert heading == "From the imported history:"
    assert first == f"[12 Mar 2025 at 14:03]({LINK}?openChatId=oc_group&position=529) · Chen"
    assert f"({LINK}?openChatId=oc_2)" in second
    assert "<" not in second
    assert second.count("](") == 1
    assert markup.unescape(second.split(" · ")[1]) == "[x](http://e.il) <at id=all>"
    assert "] · unknown" not in json.dumps(cards.answer_card("All", foot=shown))


def test_a_message_in_a_chat_that_no_link_leads_to_is_named_without_one() -> None:
    zh = replace(IMPORTED, language="zh")
    assert card_foot(zh, NOW).sources[1] == "2025年3月12日 14:03 · Chen"
    nobody = replace(zh, recalled=(replace(zh.recalled[0], author=""),))
    assert card_foot(nobody, NOW).sources[1] == "2025年3月12日 14:03 · 未知发送人"


def test_at_most_eight_sources_are_named_and_kept_with_their_authors() -> None:
    long = RecalledSource("2026-01-01T00:00:00+00:00", "elsewhere", "字" * 500, "oc_" + "0" * 32)
    many = tuple(replace(long, at=f"2026-01-01T00:{n:02}:00+00:00") for n in range(40))
    kept = Foot.of_row(json.loads(json.dumps(Foot("en", 1, (), many).row())))
    assert kept is not None

    assert len(card_foot(kept, NOW, applink=LINK).sources) == 1 + 8 + 1
    assert card_foot(kept, NOW).sources[-1] == "and more"
    assert len(json.dumps(Foot("en", 1, (), many).row(), ensure_ascii=False)) < 4000


def test_what_was_heard_stands_in_the_foot_and_is_kept_with_it() -> None:
    foot = Foot("en", 2.0, heard="when do we launch?")
    kept = Foot.of_row(foot.row())

    assert kept is not None
    assert card_foot(kept, NOW).notice == "Heard: “when do we launch?”"
    assert "heard" not in Foot("en", 2.0).row()
    assert len(card_foot(Foot("zh", 2.0, heard="长" * 5000), NOW).notice) < 400


def test_an_answer_made_without_the_memory_says_so_and_offers_nothing_to_press() -> None:
    for language, words in (("en", "doesn't use earlier messages"), ("zh", "没有参考之前的消息")):
        foot = Foot(language, 1.0, bare=True, without_memory=True)
        kept = Foot.of_row(json.loads(json.dumps(foot.row())))

        assert kept == foot
        shown = card_foot(kept, NOW)
        assert words in shown.notice
        assert (shown.line, shown.handles) == ("", ())
