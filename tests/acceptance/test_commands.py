"""Commands in the chat, through the real processes."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from lab.doubles.processes import eventually
from memory.receipts import parse_receipt
from tests.acceptance.conftest import World, markdown, prompt_of

OWN_PROCESSES = True

NO_ANSWER_IN_TIME = 200341


def card_of(world: World, question: str) -> dict[str, Any]:
    """The answer to a question as the platform shows it, once its turn is sent."""
    world.settled(question)
    return world.answers(question)[-1]


def click(world: World, who: str, message: dict[str, Any], **which: Any) -> dict[str, Any]:
    """Presses a button; returns toast, card and error code as the person sees them. Where a busy
    machine does not answer within Feishu's three seconds, the person presses again."""
    press = {"as": world.people[who], "message_id": message["message_id"], **which}
    for _ in range(5):
        shown: dict[str, Any] = world.platform.post("/click", **press)
        if shown["code"] != NO_ANSWER_IN_TIME:
            break
    return dict(shown)


def buttons(message: dict[str, Any]) -> list[str]:
    card = message["card"] or json.loads(message["content"])
    return [e["text"]["content"] for e in card["body"]["elements"] if e["tag"] == "button"]


def test_help_says_what_there_is_in_the_language_of_the_command(world: World) -> None:
    _, english = world.ask("Alice", "/help")
    question, chinese = world.ask("陈晨", "帮助")

    assert "`/forget`" in english
    assert "`/忘记`" in chinese
    assert buttons(card_of(world, question)) == ["/记忆", "/笔记", "/新对话"]
    assert world.model.requests() == []


def test_a_slash_word_that_is_no_command_is_said_to_be_none_and_no_model_is_asked(
    world: World,
) -> None:
    _, card = world.ask("Alice", "/reminder")
    assert (
        "There's no command `/reminder`. Did you mean `/reminders`? `/help` lists them all." in card
    )
    _, card = world.ask("Alice", "／帮住")
    assert "没有 `/帮住` 这个命令，你是想用 `/帮助` 吗？" in card
    assert not world.model.requests()
    world.ask("Alice", "/etc/hosts is gone")
    assert world.model.requests()


def test_a_commands_answer_is_stored_as_it_was_sent(world: World) -> None:
    question, card = world.ask("Alice", "/help")

    (row,) = world.settled(question)
    assert row["content"] == card
    assert row["status"] == "sent"


def test_a_command_that_is_not_for_the_bot_is_left_alone(world: World) -> None:
    world.say("Alice", "/quiet")
    world.say("Alice", "@Bob /forget all")
    world.ask("Bob", "hello")

    answered = world.rows("select user_id from agent_turns where chat_id = %s", world.group)
    assert {turn["user_id"] for turn in answered} == {world.people["Bob"]}


def test_quiet_keeps_the_bot_to_explicit_triggers_until_resume(world: World) -> None:
    question, _ = world.ask("Alice", "what is our plan?")
    world.settled(question)
    quiet, card = world.ask("Alice", "安静", root_id=question)
    assert "`/继续`" in card
    world.settled(quiet)
    silent = world.say("Alice", "and what about Friday?", root_id=question)
    decided = eventually(lambda: decision_on(world, silent), what="a decision")
    assert not decided["respond"]

    spoken_to, _ = world.ask("Alice", "are you there?", root_id=question)
    world.settled(spoken_to)
    still = world.say("Alice", "and what about Monday?", root_id=question)
    assert not eventually(lambda: decision_on(world, still), what="a decision")["respond"]

    for command in ("/settings", "/mode"):
        card = world.ask_alone("Alice", command)
        assert "only mentions, because I'm muted" in markdown(card)

    resumed, card = world.ask("Alice", "继续", root_id=question)
    assert "已取消静音" in card
    world.settled(resumed)
    asked, _ = world.ask("Alice", "what did I ask?", root_id=question)
    world.settled(asked)
    followed = world.say("Alice", "and what about Sunday?", root_id=question)
    decided = eventually(lambda: decision_on(world, followed), what="a decision")
    assert decided["respond"], decided
    assert decided["reason"] == "recent_followup"
    world.settled(followed)


def decision_on(world: World, message: str) -> dict[str, Any]:
    found = world.rows("select * from agent_decisions where message_id = %s", message)
    return found[0] if found else {}


def test_the_plain_word_for_going_on_is_for_the_model_where_nobody_was_quiet(world: World) -> None:
    _, card = world.ask("陈晨", "继续")

    assert "echo:" in card
    assert len(world.model.requests()) == 1


def test_a_model_is_not_told_of_commands_and_their_answers(world: World) -> None:
    first, _ = world.ask("Alice", "my word is apricot")
    shown = world.ask("Alice", "/help", root_id=first)
    world.settled(shown[0])
    world.model.forget()
    world.ask("Alice", "what is my word?", root_id=first)

    (request,) = world.model.requests()
    told = [text for role, text in prompt_of(request) if role != "system"]
    assert "apricot" in told[0]
    assert not [text for text in told if "/help" in text or shown[1][:40] in text]


def test_new_starts_afresh_and_deletes_nothing(world: World) -> None:
    first, _ = world.ask("Alice", "my word is apricot")
    fresh, card = world.ask("Alice", "/new", root_id=first)
    assert "starting over" in card
    world.settled(fresh)
    world.model.forget()
    world.ask("Alice", "what is my word?", root_id=first)

    (request,) = world.model.requests()
    assert "apricot" not in json.dumps(request["body"])
    assert world.rows("select 1 from agent_messages where content like %s", "%apricot%")


def test_memory_of_another_person_is_not_shown(world: World) -> None:
    first, _ = world.ask("Bob", "my secret is plum")
    world.settled(first)
    _, card = world.ask("Alice", "/memory @Bob", root_id=first)

    assert "on your own memory" in card
    assert "plum" not in card


def test_notes_lists_the_persons_own(world: World) -> None:
    _, card = world.ask("陈晨", "/笔记")

    assert "你在这个群里还没有笔记" in card


def test_forget_asks_first_and_then_leaves_nothing_of_the_thread(world: World) -> None:
    first, _ = world.ask("Alice", "my sentinel word is quincefruit")
    other, _ = world.ask("Alice", "my other word is medlarfruit")
    asked, _ = world.ask("Alice", "/forget", root_id=first)
    card = card_of(world, asked)
    assert buttons(card) == ["This thread", "Everything about me", "Cancel"]
    assert found(world, "quincefruit"), "something was forgotten before it was confirmed"

    assert "Only the person who asked" in click(world, "Bob", card, index=0)["toast"]["content"]
    assert found(world, "quincefruit")
    assert "On it" in click(world, "Alice", card, index=0)["toast"]["content"]
    eventually(lambda: not found(world, "quincefruit"), what="it is forgotten")

    conversation = f"feishu:{world.group}:{first}"
    assert not world.rows("select 1 from agent_chats where id = %s", conversation)
    for table in ("agent_turns", "agent_messages", "agent_buttons"):
        assert not world.rows(f"select 1 from {table} where conversation_id = %s", conversation)
    assert found(world, "medlarfruit"), "another thread was forgotten too"
    eventually(
        lambda: [m for m in shown(world) if "Done. I no longer remember anything" in m],
        what="a word",
    )
    assert "no longer works" in click(world, "Alice", card, index=0)["toast"]["content"]
    world.settled(other)


# A worker writes what an answer used at the moment at which its person is forgotten.
COUNTED_MEANWHILE = """
    create function public.counted_meanwhile() returns trigger
    language plpgsql security definer as $$
    begin
      insert into feishu_bot.model_usage
        (day, tenant_key, chat_id, actor_id, turns, tokens_in, tokens_out)
      values (current_date, 't', 'oc', '{person}', 1, 1, 1);
      return null;
    end $$;
    create trigger counted_meanwhile after insert on public.forgotten_people
      for each row execute function public.counted_meanwhile();
"""


def test_forget_all_leaves_nothing_of_the_person(world: World) -> None:
    world.ask("Bob", "my other word is medlarfruit")
    world.ask("Alice", "my sentinel word is quincefruit")
    world.rows(  # of a guest, before turns belonged to the tenant that has the bot
        "insert into agent_notes (id, user_id, tenant_key, chat_id, conversation_id, title, body)"
        " values ('note_old', %s, 'her own', 'oc_old', 'feishu:oc_old:om', 'old', 'quincefruit')"
        " returning 1",
        world.people["Alice"],
    )
    with psycopg.connect(world.database_url) as connection:
        connection.execute(COUNTED_MEANWHILE.replace("{person}", world.people["Alice"]))
    asked, _ = world.ask("Alice", "/忘记 全部")
    card = card_of(world, asked)
    assert buttons(card) == ["确认", "取消"]

    click(world, "Alice", card, index=0)
    eventually(lambda: [m for m in shown(world) if "不再记得关于你" in m], what="it is done")
    [done] = [m for m in shown(world) if "不再记得关于你" in m]
    line = world.rows("select line from agent_receipts order by number desc limit 1")[0]["line"]
    assert f"回执 {parse_receipt(line).label}" in done
    assert "commitments" not in done, "with a copy the others could guess her words"
    assert not found(world, "quincefruit")
    # that she is in the group is Feishu's, and learned again; a card that only she saw is known
    # until Feishu has taken it back
    kept: set[str] = set()

    def only_membership() -> bool:
        kept.clear()
        kept.update(found(world, world.people["Alice"]))
        return kept <= {"chat_members"}

    try:
        eventually(only_membership, what="nothing names her")
    except AssertionError:
        pytest.fail(f"she is still named in {sorted(kept)}")
    assert found(world, "medlarfruit")


def test_forget_all_in_p2p_gives_the_receipt_with_a_salt_that_is_stored_nowhere(
    world: World,
) -> None:
    chat = world.platform.state()["chats"]
    alone = next(
        one["chat_id"]
        for one in chat
        if one["mode"] == "p2p" and world.people["Alice"] in one["members"]
    )
    world.ask("Alice", "my sentinel word is quincefruit", chat=alone)
    asked, _ = world.ask("Alice", "/forget all", chat=alone)
    world.settled(asked)

    click(world, "Alice", world.answers(asked, chat=alone)[-1], index=0)

    def told() -> list[str]:
        cards = map(markdown, filter(lambda m: m.get("card"), world.platform.messages(alone)))
        return [text for text in cards if "Receipt R" in text]

    [done] = eventually(told, what="a receipt")
    copy = json.loads(done.split("```json\n")[1].split("\n```")[0])
    receipt = parse_receipt(copy["receipt"])
    assert f"Receipt {receipt.label}" in done
    assert receipt.names_text(copy["salt"], "my sentinel word is quincefruit")
    assert not found(world, copy["salt"])
    assert not found(world, "quincefruit")


def test_forgetting_can_be_cancelled(world: World) -> None:
    first, _ = world.ask("Alice", "my sentinel word is quincefruit")
    asked, _ = world.ask("Alice", "/forget this thread", root_id=first)
    card = card_of(world, asked)

    assert "On it" in click(world, "Alice", card, index=1)["toast"]["content"]
    eventually(lambda: [m for m in shown(world) if "Cancelled" in m], what="it is cancelled")
    assert "already used" in click(world, "Alice", card, index=0)["toast"]["content"]
    assert found(world, "quincefruit")


def shown(world: World) -> list[str]:
    """The markdown of every card of the bot in the group."""
    cards = [m for m in world.platform.messages(world.group) if m.get("card")]
    return [markdown(card) for card in cards]


def found(world: World, text: str) -> list[str]:
    """The tables in which `text` stands."""
    tables = world.rows(
        "select n.nspname as schema, c.relname as name from pg_class c"
        " join pg_namespace n on n.oid = c.relnamespace"
        " where n.nspname in ('public', 'feishu_bot') and c.relkind = 'r'"
    )
    return [
        table["name"]
        for table in tables
        if world.rows(
            f"select 1 from {table['schema']}.{table['name']} r where to_jsonb(r)::text like %s",
            f"%{text}%",
        )
    ]
