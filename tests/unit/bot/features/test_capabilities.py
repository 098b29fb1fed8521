"""What the help and the first words say depends on what is there."""

from __future__ import annotations

from bot.features.feature import SetUp
from bot.features.help import CAPABILITIES, available_commands, help_text, say
from bot.features.registry import COMMANDS
from bot.features.welcome import welcome_text
from bot.listening.chat_rules import RULES, languages_of
from bot.text.languages import Language, Sentence
from bot.text.slash_commands import parse_command
from memory.scope import ChatType
from tests.support.rows import every_row


@every_row("language", ["zh", "en"])
def test_the_help_tells_only_what_works_here(language: Language) -> None:
    def told(**more: object) -> str:
        return help_text(COMMANDS, SetUp(**{"chat_type": "group", **more}), language)  # type: ignore[arg-type]

    modes = RULES["mode"].choices
    quiet = "/安静" if language == "zh" else "/quiet"
    assert quiet in told()
    assert quiet not in told(mode="mention")
    assert quiet not in told(chat_type="p2p")
    assert quiet not in told(shares=False)
    assert len({told(mode=mode) for mode in modes}) == len(modes)
    assert told(offline=True) != told()


def test_a_line_says_the_same_in_both_languages() -> None:
    capabilities = [Sentence(say(one.key, "en"), say(one.key, "zh")) for one in CAPABILITIES]
    for one in (*capabilities, *(line.text for spec in COMMANDS for line in spec.help)):
        english, chinese = one.en, one.zh
        assert english.count("“") == chinese.count("“"), english
        commands = [word for word in english.split("`") if word.startswith("/")]
        assert [parse_command(c) for c in commands].count(None) == 0


@every_row("language", ["zh", "en"])
@every_row("chat_type", ["group", "p2p"])
@every_row("shares", [True, False])
def test_first_words_are_whole_everywhere(language: Language, chat_type: str, shares: bool) -> None:
    for mode in RULES["mode"].choices:
        here = SetUp(chat_type, mode, shares)  # type: ignore[arg-type]
        shown = welcome_text("Memo", here, language)
        assert "{" not in shown
        assert ("/帮助" if language == "zh" else "/help") in shown


def test_people_are_met_in_the_language_of_their_chat() -> None:
    assert languages_of("en", "发布小组", lark=False) == ("en",)
    assert languages_of("auto", "发布小组", lark=True) == ("zh",)
    assert languages_of("auto", "Launch", lark=True) == ("en",)
    assert languages_of("auto", "", lark=False) == ("zh", "en")


@every_row("chat_type", ["group", "p2p"])
def test_what_is_offered_after_a_slash_is_a_command_in_both_languages(
    chat_type: ChatType,
) -> None:
    found = available_commands(COMMANDS, SetUp(chat_type))

    for word, about in found:
        english, chinese = parse_command(word.en), parse_command(word.zh)
        assert english
        assert chinese
        assert english.name == chinese.name
        assert about.en
        assert about.zh
        assert "`" not in about.en + about.zh
    words = [word.en for word, _ in found]
    assert len(set(words)) == len(words)
    assert {"/memory", "/forget", "/help"} <= set(words)
    assert ("/why" in words) is (chat_type == "group")


@every_row("language", ["zh", "en"])
def test_where_only_mentions_arrive_help_and_first_words_say_so_and_promise_no_more(
    language: Language,
) -> None:
    deaf = SetUp("group", "follow", hears=False)
    for shown in (help_text(COMMANDS, deaf, language), welcome_text("Memo", deaf, language)):
        assert shown.endswith(say("mentions-only", language))
        assert not any(word in shown for word in ("/import", "/导入"))
    quiet = "/安静" if language == "zh" else "/quiet"
    assert quiet not in help_text(COMMANDS, deaf, language)
    mentioned = welcome_text("Memo", SetUp("group", "mention"), language)
    mentioned = mentioned[: mentioned.rindex("\n- ")]  # the line about the import
    assert welcome_text("Memo", deaf, language).startswith(mentioned)
    assert say("mentions-only", language) not in help_text(COMMANDS, SetUp("p2p"), language)
