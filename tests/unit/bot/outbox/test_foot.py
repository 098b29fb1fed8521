"""What stands below an answer: told in the reader's language, folded; of words only those heard."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.feishu import cards
from bot.outbox.foot import AnswerFooter, RecalledSource, card_footer

NOW = datetime(2026, 11, 22, 12, tzinfo=ZoneInfo("Asia/Shanghai"))
LINK = "https://applink.feishu.cn/client/chat/open"
HANDOVER = RecalledSource(
    "2026-11-21T21:37:00+00:00",
    "thread",
    "om_new",
    "om_old",
    author="Alice",
    words="the handover moved to 10 March",
    replaced_words="3 March",
    chat_id="oc_group",
)
FOOT = AnswerFooter(
    "en",
    4.23,
    (
        RecalledSource(
            "2025-12-31T16:00:00+00:00", "elsewhere", "om_1", author="Bob", words="lunch is at noon"
        ),
        HANDOVER,
    ),
)
QUOTES = {
    "om_1": {"words": "lunch is at noon", "author": "Bob", "chat_id": "", "position": 0},
    "om_new": {"words": HANDOVER.words, "author": "Alice", "chat_id": "oc_group", "position": 0},
    "om_old": {"words": "3 March", "author": "Alice", "chat_id": "oc_group", "position": 0},
}


def read_again(foot: AnswerFooter, quotes: dict[str, dict[str, object]]) -> AnswerFooter:
    """As it is stored, and read again with the words that are still there."""
    kept = AnswerFooter.of_row(json.loads(json.dumps(foot.row())) | {"quotes": quotes})
    assert kept is not None
    return kept


def test_a_source_names_who_said_what_and_when_with_a_link_newest_first() -> None:
    shown = card_footer(FOOT, NOW, applink=LINK)

    assert shown.line == "4 s · 2 sources"
    assert list(shown.details) == ["Took 4.2 s"]
    assert list(shown.sources) == [
        f"Alice, [22 Nov at 05:37]({LINK}?openChatId=oc_group): “the handover moved to 10 March”"
        " (replaces “3 March”)",
        "Bob, 1 Jan at 00:00: “lunch is at noon” · another chat",
    ]
    assert [button.text for button in shown.handles] == ["👍", "👎", "Again"]


def test_below_an_apology_nobody_is_asked_whether_it_helped() -> None:
    apology = AnswerFooter.of_row(replace(FOOT, apology=True).row())
    assert apology

    assert [button.text for button in card_footer(apology, NOW).handles] == ["Again"]


def test_in_chinese_with_a_year_that_is_not_this_one() -> None:
    said = replace(HANDOVER, at="2024-02-29T01:02:00+00:00", words="交接改到3月10号了", author="")
    shown = card_footer(AnswerFooter("zh", 0.2, (said,)), NOW, again=False)

    assert shown.line == "不到 1 秒 · 1 个来源"
    assert list(shown.sources) == [
        "未知发送人，2024年2月29日 09:02：“交接改到3月10号了”（取代“3 March”）"
    ]


def test_no_word_of_a_source_is_stored() -> None:
    stored = json.dumps(FOOT.row())
    for word in ("handover", "March", "noon", "Alice", "Bob", "oc_group"):
        assert word not in stored
    assert card_footer(read_again(FOOT, QUOTES), NOW) == card_footer(FOOT, NOW)
    assert AnswerFooter.of_row(None) is None


def test_a_foot_as_the_table_has_it_needs_no_list_of_sources() -> None:
    bare = replace(FOOT, recalled=(), seconds=1.0)
    stored = {key: value for key, value in bare.row().items() if key != "recalled"}
    assert AnswerFooter.of_row(stored) == bare


def test_a_source_that_is_gone_is_not_named() -> None:
    left = {id: said for id, said in QUOTES.items() if id != "om_old"}
    assert "replaces" not in str(card_footer(read_again(FOOT, left), NOW).sources)
    none = card_footer(read_again(FOOT, {}), NOW)
    assert (none.line, list(none.sources)) == ("4 s", [])


def test_words_of_people_are_no_markup_in_a_source() -> None:
    hostile = "[x](http://e.il) <at id=all></at> **b** `c`\n# h"
    said = replace(HANDOVER, author=hostile, words=hostile, replaced_words=hostile)
    (line,) = card_footer(AnswerFooter("en", 1, (said,)), NOW, applink=LINK).sources
    assert "<" not in line
    assert "\n" not in line
    assert line.count("](") == 1
    assert "**" not in line
    assert "`" not in line


def test_long_and_many_sources_stay_short() -> None:
    long = replace(HANDOVER, words="字" * 5000, author="名" * 500, replaced_words="旧" * 500)
    many = tuple(replace(long, at=f"2026-01-01T00:{n:02}:00+00:00") for n in range(60))
    foot = AnswerFooter("en", 1, many)
    assert len(json.dumps(foot.row())) < 1000
    sources = card_footer(foot, NOW, applink=LINK).sources
    assert len(sources) == 8
    assert max(map(len, sources)) < 320


def test_why_an_answer_came_no_further_stands_in_a_line_of_its_own() -> None:
    for ended in ("time", "connection", "length", "stopped"):
        kept = AnswerFooter.of_row(json.loads(json.dumps(replace(FOOT, ended=ended).row())))
        assert kept is not None
        said = [card_footer(replace(kept, language=one), NOW).notice for one in ("en", "zh")]
        assert all(said), ended
        card = cards.answer_card("As far as", foot=card_footer(kept, NOW))
        (line,) = [one for one in card["body"]["elements"] if one.get("element_id") == "notice"]
        assert line["text"]["content"] == said[0]
        assert card["body"]["elements"][0]["content"] == "As far as"


def test_where_nothing_can_be_pressed_the_line_stands_alone() -> None:
    kept = AnswerFooter.of_row(json.loads(json.dumps(replace(FOOT, ended="time", bare=True).row())))
    assert kept is not None
    elements = cards.answer_card("As far as", foot=card_footer(kept, NOW))["body"]["elements"]
    assert [one.get("element_id") for one in elements] == ["answer", "notice"]


def test_a_complete_answer_has_no_such_line() -> None:
    assert card_footer(FOOT, NOW).notice == ""
    assert "notice" not in json.dumps(cards.answer_card("All", foot=card_footer(FOOT, NOW)))


def test_what_was_heard_stands_in_the_foot_and_is_kept_with_it() -> None:
    foot = AnswerFooter("en", 2.0, heard="when do we launch?")
    kept = AnswerFooter.of_row(foot.row())

    assert kept is not None
    assert card_footer(kept, NOW).notice == "Heard: “when do we launch?”"
    assert "heard" not in AnswerFooter("en", 2.0).row()
    assert len(card_footer(AnswerFooter("zh", 2.0, heard="长" * 5000), NOW).notice) < 400


def test_an_answer_made_without_the_memory_says_so_and_offers_nothing_to_press() -> None:
    for language, words in (("en", "doesn't use earlier messages"), ("zh", "没有参考之前的消息")):
        foot = AnswerFooter(language, 1.0, bare=True, without_memory=True)
        kept = AnswerFooter.of_row(json.loads(json.dumps(foot.row())))

        assert kept == foot
        shown = card_footer(kept, NOW)
        assert words in shown.notice
        assert (shown.line, shown.handles) == ("", ())
