"""A reply that is seen while it is written: what is shown, in which order, and what goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.agents.model_text.cleaner import AnswerReader
from bot.agents.running_turns import Progress
from bot.feishu import cards, markup
from bot.feishu.errors import Denials, FeishuError, Unreachable
from bot.mentions import ALL_NAMES, Person, Roster, to_card
from bot.outbox.delivery import Delivered, Target, Undeliverable
from bot.outbox.live_card import LiveCard
from bot.outbox.streaming import (
    DENIAL,
    CardStream,
    Opening,
    OpeningTimes,
    Working,
    frame_gap_s,
    line_gap_s,
    showable_text,
    stage_gap_s,
    stage_line,
)
from bot.outbox.texts import say_both
from memory.scope import memory_context
from memory.tables.cards import OpenCard
from tests.support.card_platform import CardPlatform, KeptCards

pytestmark = pytest.mark.anyio

ALICE = memory_context(chat_id="oc_1", root="om_1", subject="ou_alice", actor="ou_alice")
OPENING = Opening(ALICE, "om_question", Target("om_question", "oc_1", in_thread=True))
AT_ONCE = OpeningTimes(opens_after_s=0, words_last_s=0)
NEVER = OpeningTimes(opens_after_s=60, words_last_s=60)
PEOPLE = Roster((Person("ou_a", "Ann"), Person("ou_l", "Ann Lee"), Person("ou_w", "王小明")))
FRAMES = ["The", "The launch\nis on", "The launch\nis on\n3 March"]
NAMES = [*PEOPLE.names().values(), *ALL_NAMES]


def left_card(message_id: str | None = "om_card") -> OpenCard:
    """A card that an earlier attempt has used the first thousand numbers on."""
    numbers = range(1001, 2001)
    return OpenCard("om_question", ALICE, "card_1", "om_question", True, numbers, message_id)


DONE = Delivered("done", "om_card")


def render(progress: Progress) -> str:
    return showable_text(progress, NAMES, "en")


def refused(code: int, sub_code: int | None = None) -> FeishuError:
    return FeishuError(code, sub_code=sub_code)


class Scene:
    """A stream over a platform and a memory that remember what they were asked."""

    def __init__(self, pace: OpeningTimes = AT_ONCE, kept: OpenCard | None = None) -> None:
        self.platform = CardPlatform()
        self.memory = KeptCards(kept)
        self.denials = Denials()
        self.stream = CardStream(
            self.platform,
            self.memory,
            OPENING,
            render,
            denials=self.denials,
            open_card=kept,
            pace=pace,
        )

    async def write(self, *texts: str) -> None:
        """Writes the texts, each after the one before has been shown."""
        async with self.stream.running():
            await self.platform.until(lambda: "reply" in self.platform.names)
            for text in texts:
                await self.stream.progress(Progress(text))
                await self.platform.until(self._shows(text))

    def _shows(self, text: str) -> Callable[[], bool]:
        return lambda: any(c["content"] == text for c in self.platform.named("stream_text"))

    def live(self) -> LiveCard:
        return LiveCard(self.platform, self.memory, self.memory.kept or left_card())


class TestWhatIsShown:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("Dear @A", "Dear"),
            ("@Ann", "Thinking…"),
            ("@Ann Le", "Thinking…"),
            ("@Ann, ", "@Ann,"),
            ("@Ann Lee: yes", "@Ann Lee: yes"),
            ("@Ann-", "Thinking…"),
            ("@Ann-b", "@Ann-b"),
            ("@al", "Thinking…"),
            ("@王小", "Thinking…"),
            ("@王小明你好", "@王小明你好"),
            ("mail ann@example.org", "mail ann@example.org"),
        ],
    )
    async def test_half_a_name_waits_for_its_other_half(self, text: str, shown: str) -> None:
        assert showable_text(Progress(text), NAMES, "en") == shown

    @given(st.lists(st.sampled_from("@ Ann -Lee Anna Lea ' . , \n 王小明 all x".split(" "))))
    async def test_nobody_is_addressed_on_the_way_who_is_not_addressed_at_the_end(
        self, pieces: list[str]
    ) -> None:
        text = " ".join(pieces).replace("@ ", "@").replace("- ", "-")
        final = set(markup.AT_TAG.findall(composed(text)))
        for length in range(len(text)):
            shown = showable_text(Progress(text[:length]), NAMES, "en")
            assert set(markup.AT_TAG.findall(composed(shown))) <= final

    async def test_an_open_code_fence_is_closed_so_that_code_stays_code(self) -> None:
        shown = showable_text(Progress("see\n```python\nif a < b"), NAMES, "en")

        assert shown == "see\n```python\nif a < b\n```"
        assert "a < b" in markup.card_markdown(shown)

    async def test_before_there_is_text_it_says_what_goes_on(self) -> None:
        assert showable_text(Progress(), NAMES, "zh") == "正在思考…"
        assert showable_text(Progress(tool="recall"), NAMES, "en") == "Using recall…"

    async def test_thoughts_are_never_shown_even_when_the_tag_comes_in_pieces(self) -> None:
        written = "<think>secret</think>Hello"
        shown = [
            AnswerReader().read(written[:length], complete=False).text
            for length in range(len(written) + 1)
        ]

        assert set(shown[:-5]) == {""}
        assert shown[-5:] == ["H", "He", "Hel", "Hell", "Hello"]
        assert AnswerReader().read("a <think> b").text == "a <think> b"

    async def test_frames_come_slower_for_long_texts_and_when_many_cards_stream(self) -> None:
        assert frame_gap_s(0, 1) >= 0.6
        assert frame_gap_s(20_000, 1) > frame_gap_s(100, 1)
        assert frame_gap_s(100, 30) * 1000 / 60 >= 30, "1000 a minute on all cards of the app"

    @pytest.mark.parametrize(
        ("shown", "text", "waits"),
        [
            ("Thinking…", "The", False),
            ("The", "The launch", True),
            ("The", "The launch is on 3 March,\n", True),
            ("The", "The launch is on 3 March,\nand", False),
            ("The", "The " + "x" * 58, True),
            ("The", "The " + "x" * 59, False),
            ("发布", "发布" + "日" * 29, True),
            ("发布", "发布" + "日" * 30, False),
            ("see\n```\nif a\n```", "see\n```\nif a < b\n```", False),
        ],
    )
    async def test_a_frame_waits_for_a_line(self, shown: str, text: str, waits: bool) -> None:
        assert (line_gap_s(shown, text) > 0) == waits


class TestOneCard:
    async def test_a_quick_answer_calls_nothing(self) -> None:
        scene = Scene(NEVER)
        async with scene.stream.running():
            await scene.stream.progress(Progress("Hello."))

        assert scene.platform.calls == []
        assert scene.stream.card is None
        assert not scene.stream.may_be_kept
        assert await scene.stream.finish("Hello.", buttons=(), names={}) is None

    async def test_a_card_of_which_nobody_knows_whether_it_is_kept_may_be(self) -> None:
        scene = Scene()
        scene.memory.away = True
        async with scene.stream.running():
            await scene.stream.progress(Progress("Hello"))
            await scene.memory.failed.wait()

        assert scene.stream.card is None
        assert scene.stream.may_be_kept

    @pytest.mark.parametrize(("seconds", "calls"), [(0.45, []), (0.55, ["create_card", "reply"])])
    async def test_an_answer_that_is_whole_half_a_second_after_its_first_word_needs_no_card(
        self, monkeypatch: pytest.MonkeyPatch, seconds: float, calls: list[str]
    ) -> None:
        scene, loop = Scene(OpeningTimes()), asyncio.get_running_loop()
        clock = [loop.time()]
        monkeypatch.setattr(loop, "time", lambda: clock[0])
        async with scene.stream.running():
            await scene.stream.progress(Progress("Hello"))
            for step in (0.0, seconds):
                clock[0] += step
                await turns_of_the_loop()

        assert scene.platform.names == calls

    async def test_it_is_kept_before_it_is_sent_and_every_frame_is_the_whole_text(self) -> None:
        scene = Scene()
        await scene.write(*FRAMES)

        assert scene.platform.names[:2] == ["create_card", "reply"]
        assert scene.memory.notes == ["kept", "sent om_card"]
        (created,) = scene.platform.named("create_card")
        assert created["card"]["config"]["streaming_mode"] is True
        assert created["card"]["body"]["elements"][0]["content"] == "Thinking…"
        (reply,) = scene.platform.named("reply")
        assert reply["uuid"] == cards.reply_uuid("om_question", 0)
        assert reply["content"] == cards.entity_content("card_1")
        frames = scene.platform.named("stream_text")
        assert [f["content"] for f in frames] == FRAMES
        assert [f["sequence"] for f in frames] == [1, 2, 3]
        assert len({f["uuid"] for f in frames}) == 3

    async def test_between_two_frames_there_is_a_pause(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scene, loop = Scene(), asyncio.get_running_loop()
        clock = [loop.time()]
        monkeypatch.setattr(loop, "time", lambda: clock[0])
        counts = []
        async with scene.stream.running():
            await scene.platform.until(lambda: "reply" in scene.platform.names)
            for text in FRAMES[:2]:
                await scene.stream.progress(Progress(text))
                await turns_of_the_loop()
                counts.append(len(scene.platform.named("stream_text")))
            clock[0] += frame_gap_s(len(FRAMES[0]), 1)
            await turns_of_the_loop()
            counts.append(len(scene.platform.named("stream_text")))

        assert counts == [1, 1, 2]

    async def test_the_final_text_ends_the_streaming_and_brings_the_buttons(self) -> None:
        scene = Scene()
        await scene.write("Hello")
        button = cards.Button("More", {"b": "id"})
        sent = await scene.stream.finish("Hello **you**", buttons=[button], names={})

        assert sent == Delivered("Hello **you**", "om_card")
        (created,) = scene.platform.named("create_card")
        (batch,) = scene.platform.named("batch_update_card")
        final = cards.answer_card(
            "Hello **you**", element_id=cards.answer_id("om_question", 0), buttons=[button]
        )
        assert batch["actions"] == cards.closing_actions(created["card"], final)
        assert scene.platform.names[-1] == "batch_update_card"
        assert batch["sequence"] > scene.platform.named("stream_text")[-1]["sequence"]

    async def test_an_earlier_attempts_card_is_gone_on_with_and_not_sent_again(self) -> None:
        scene = Scene(kept=left_card())
        async with scene.stream.running():
            await scene.stream.progress(Progress("again"))
            await scene.platform.until(lambda: bool(scene.platform.named("stream_text")))

        assert scene.platform.names == ["stream_text"]
        assert scene.platform.named("stream_text")[0]["sequence"] == 1001

    async def test_a_card_that_may_not_have_been_sent_is_sent_with_the_same_uuid(self) -> None:
        scene = Scene(kept=left_card(message_id=None))
        sent = await scene.stream.finish("done", buttons=(), names={})

        assert sent == DONE
        (reply,) = scene.platform.named("reply")
        assert reply["uuid"] == cards.reply_uuid("om_question", 0)


class TestWhatGoesWrong:
    async def test_without_the_scope_there_is_no_card_and_cardkit_is_left_alone(self) -> None:
        scene = Scene()
        scene.platform.refuse("create_card", refused(99991672))
        async with scene.stream.running():
            await scene.platform.until(lambda: bool(scene.platform.calls))

        assert scene.stream.card is None
        assert scene.denials.stands(DENIAL)

    async def test_an_answer_does_not_wait_for_a_card_that_is_being_created(self) -> None:
        scene = Scene()
        scene.platform.gates["create_card"] = asyncio.Event()
        async with scene.stream.running():
            await scene.platform.until(lambda: bool(scene.platform.calls))
        scene.platform.gates["create_card"].set()
        await turns_of_the_loop()

        assert scene.stream.card is None
        assert scene.platform.names == ["create_card"], "nor is it sent afterwards"

    async def test_a_card_that_the_memory_does_not_keep_is_not_sent(self) -> None:
        scene = Scene()
        scene.memory.away = True
        async with scene.stream.running():
            await scene.memory.failed.wait()

        assert scene.stream.card is None
        assert "reply" not in scene.platform.names

    async def test_when_it_is_unknown_whether_the_card_was_sent_it_is_sent_again(self) -> None:
        scene = Scene()
        scene.platform.refuse("reply", Unreachable("cut"))
        async with scene.stream.running():
            await scene.platform.until(lambda: "reply" in scene.platform.names)
        await scene.stream.finish("done", buttons=(), names={})

        assert len({call["uuid"] for call in scene.platform.named("reply")}) == 1
        assert scene.platform.names[-1] == "batch_update_card"

    async def test_a_card_that_was_never_shown_gives_way_to_an_ordinary_one(self) -> None:
        scene = Scene()
        scene.platform.refuse("reply", refused(230099), refused(230099))
        async with scene.stream.running():
            await scene.platform.until(lambda: "reply" in scene.platform.names)

        assert await scene.stream.finish("done", buttons=(), names={}) is None
        assert scene.denials.stands(DENIAL)

    @pytest.mark.parametrize("call", ["create_card", "reply"])
    @pytest.mark.parametrize("code", [99991400, 230020, 99991663, 230011, 230002])
    async def test_what_fails_for_one_moment_or_one_chat_does_not_end_streaming_for_all(
        self, call: str, code: int
    ) -> None:
        scene = Scene()
        scene.platform.refuse(call, refused(code), refused(code))
        async with scene.stream.running():
            await scene.platform.until(lambda: call in scene.platform.names)
        with contextlib.suppress(FeishuError):  # worth another attempt
            await scene.stream.finish("done", buttons=(), names={})

        assert not scene.denials.stands(DENIAL)

    async def test_feishu_away_for_a_moment_does_not_end_streaming(self) -> None:
        scene = Scene()
        scene.platform.refuse("create_card", Unreachable("HTTP 502"))
        async with scene.stream.running():
            await scene.platform.until(lambda: bool(scene.platform.calls))

        assert not scene.denials.stands(DENIAL)

    async def test_a_reply_that_cannot_go_into_a_thread_goes_without(self) -> None:
        scene = Scene()
        scene.platform.refuse("reply", refused(230071))
        async with scene.stream.running():
            await scene.platform.until(lambda: len(scene.platform.named("reply")) == 2)

        assert [c["reply_in_thread"] for c in scene.platform.named("reply")] == [True, False]

    async def test_a_frame_too_many_is_left_out_and_the_next_one_brings_it(self) -> None:
        scene = Scene()
        scene.platform.refuse("stream_text", refused(99991400))
        await scene.write(*FRAMES[:2])

        assert [c["content"] for c in scene.platform.named("stream_text")] == FRAMES[:2]

    async def test_when_somebody_else_writes_the_frames_end_and_the_end_takes_new_numbers(
        self,
    ) -> None:
        scene = Scene()
        scene.platform.refuse("stream_text", refused(300317))
        scene.platform.refuse("batch_update_card", refused(300317))
        await scene.write("one")
        sent = await scene.stream.finish("done", buttons=(), names={})

        assert sent == DONE
        assert scene.platform.named("update_card")[0]["sequence"] > 1000

    @pytest.mark.parametrize(
        ("refusal", "shown"),
        [
            (refused(230099, 100290), "@Ann hello"),
            (refused(230022), say_both("neutral")),
        ],
    )
    async def test_what_is_refused_is_made_simpler_and_that_is_what_was_sent(
        self, refusal: FeishuError, shown: str
    ) -> None:
        scene = Scene(kept=left_card())
        scene.platform.refuse("update_card", refusal)
        sent = await scene.stream.finish(
            "<at id=ou_a></at> hello", buttons=(), names={"ou_a": "Ann"}
        )

        assert sent == Delivered(shown, "om_card")

    @pytest.mark.parametrize("code", [300301, 300314, 200220, 200860])
    async def test_a_card_that_cannot_be_finished_in_one_call_is_replaced(self, code: int) -> None:
        scene = Scene()
        scene.platform.refuse("batch_update_card", refused(code))
        await scene.write("one")
        sent = await scene.stream.finish("done", buttons=(), names={})

        assert sent == DONE
        assert scene.platform.names[-3:] == ["batch_update_card", "card_settings", "update_card"]
        numbers = [call["sequence"] for _, call in scene.platform.calls[-3:]]
        assert numbers == sorted(set(numbers))

    async def test_nothing_is_added_twice_where_nobody_knows_what_became_of_it(self) -> None:
        scene = Scene()
        scene.platform.refuse("batch_update_card", Unreachable("cut"))
        await scene.write("one")
        with pytest.raises(Unreachable):
            await scene.stream.finish("done", buttons=(), names={})
        await scene.stream.finish("done", buttons=(), names={})

        assert scene.platform.names[-2:] == ["card_settings", "update_card"]

    @pytest.mark.parametrize(
        ("refusals", "outcome", "last"),
        [
            ({"card_settings": refused(300309)}, DONE, "update_card"),
            ({"card_settings": refused(200740)}, DONE, "patch_card"),
            ({"card_settings": refused(200740), "patch_card": refused(230054)}, None,
             "delete_message"),
            ({"card_settings": refused(200740), "patch_card": refused(230002)}, Undeliverable,
             "patch_card"),
            ({"update_card": Unreachable("HTTP 502")}, Unreachable, "update_card"),
        ],
        ids=["Feishu has ended the streaming", "CardKit breaks", "nothing helps",
             "the chat is gone", "Feishu is away"],
    )  # fmt: skip
    async def test_a_card_that_cannot_be_finished_is_patched_or_gives_way(
        self, refusals: dict[str, Exception], outcome: Any, last: str
    ) -> None:
        scene = Scene(kept=left_card())
        for call, refusal in refusals.items():
            scene.platform.refuse(call, refusal)
        raises = pytest.raises(outcome) if isinstance(outcome, type) else contextlib.nullcontext()
        with raises:
            assert await scene.stream.finish("done", buttons=(), names={}) == outcome

        assert scene.platform.names[-1] == last

    async def test_a_memory_that_is_away_does_not_keep_a_sent_card_from_being_finished(
        self,
    ) -> None:
        scene = Scene()
        await scene.write("one")
        scene.memory.away = True

        assert await scene.stream.finish("done", buttons=(), names={})
        await scene.stream.closed()

    async def test_the_card_of_a_question_that_was_taken_back_is_withdrawn(self) -> None:
        scene = Scene(kept=left_card())
        await scene.stream.withdraw()

        assert scene.platform.names == ["delete_message"]
        assert scene.memory.notes == ["closed"]

    async def test_a_card_that_may_not_be_withdrawn_says_why_nothing_comes(self) -> None:
        scene = Scene(kept=left_card())
        scene.platform.refuse("delete_message", refused(230026))
        with capture_logs() as lines:
            await scene.stream.withdraw()

        assert [(line["event"], line["code"]) for line in lines] == [("live_card.refused", 230026)]
        shown = cards.answer_card(
            say_both("taken-back"), element_id=cards.answer_id("om_question", 0)
        )
        assert scene.platform.named("update_card")[0]["card"] == shown

    async def test_a_turn_that_fails_ends_the_frames_at_once(self) -> None:
        scene = Scene()
        scene.platform.gates["reply"] = asyncio.Event()

        async def turn() -> None:
            async with scene.stream.running():
                await scene.platform.until(lambda: "reply" in scene.platform.names)
                raise RuntimeError("the turn fails")

        with pytest.raises(RuntimeError):
            await asyncio.wait_for(turn(), 60)


async def turns_of_the_loop() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def composed(text: str) -> str:
    return to_card(text, PEOPLE, escape=markup.card_markdown, allow_all=True)


class TestHandles:
    async def test_the_stage_and_the_stop_button_stand_below_while_it_is_written(self) -> None:
        scene = Scene()
        seconds = iter(range(100))
        stop = cards.Button("Stop", {"b": "x" * 22})
        working = Working(lambda progress: f"{next(seconds)} s", stop, "x" * 22)
        scene.stream._working = working
        async with scene.stream.running():
            await scene.platform.until(lambda: len(scene.platform.named("stage")) > 1)
            await scene.stream.progress(Progress("words"))
            await scene.platform.until(scene._shows("words"))
        await scene.stream.finish("words", buttons=(), names={})

        (created,) = scene.platform.named("create_card")
        tags = [element["tag"] for element in created["card"]["body"]["elements"]]
        assert tags == ["markdown", "div", "button"]
        assert scene.memory.stop_id == "x" * 22
        (finished,) = scene.platform.named("batch_update_card")
        deleted = next(one for one in finished["actions"] if one["action"] == "delete_elements")
        ids = [element["element_id"] for element in created["card"]["body"]["elements"]]
        assert deleted["params"]["element_ids"] == ids[1:]

    async def test_no_seconds_stand_beside_words_that_have_just_come(self) -> None:
        # The line is written again seconds later: until then it would say “0 s”.
        assert stage_line(Progress("The launch"), 0.4, "en") == "Answering"
        assert stage_line(Progress("The launch"), 6.2, "en") == "Answering · 6 s"
        assert stage_line(Progress(), 0.4, "en") == "0 s"

    async def test_the_seconds_of_many_cards_leave_room_for_their_words(self) -> None:
        assert stage_gap_s(1) == 1.0
        assert stage_gap_s(1, with_text=True) == 5.0
        assert stage_gap_s(60) > 5 * 60 / (1000 / 60)
