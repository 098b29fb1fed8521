"""The larger commands of `scripts/memory`: show, summarise, embed, and users of Supabase Auth.

Models and clients are loaded when they are needed: they are half of what the script would load.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from bot.settings import Settings, SettingsError
from bot.text.languages import Sentence
from memory.scope import AgentMemoryContext, FeishuPerson
from memory.tables.derived import EmbeddingBacklog, EmbeddingStore, Summaries, SummaryFold
from scripts.operating.arguments import in_language, language
from scripts.operating.console import FINDINGS, Screen, print_json, progress
from scripts.operating.desk import OperatorDesk
from scripts.operating.words import counted

if TYPE_CHECKING:
    from bot.agents.embeddings import Embedder
    from memory.accounts import AuthUsers, LinkResult

_TENANTS = 1000


async def show_person(desk: OperatorDesk, given: argparse.Namespace) -> int:
    """Working memory with, on request, its changes; of a person how much is stored besides."""
    filters = {"user_id": given.person, "conversation_id": given.conversation}
    memories = await desk.operations.working_memory(**filters)
    changes = await desk.operations.working_memory_changes(**filters) if given.history else ()
    counts = await desk.operations.count_person(given.person, given.tenant) if given.person else {}
    if given.json:
        print_json({"working_memory": memories, "changes": changes, "rows": counts})
        return 0
    screen = Screen(language(given.lang), desk.names_of)
    if given.person:
        _say_whom(screen, given.person, counts)
    screen.table(
        "Working memory",
        ("scope", "person", "conversation", "changed", "content"),
        [
            (row["scope"], row["user_id"], row["conversation_id"], desk.shown(row["updated_at"]),
             _json(row["content"]))
            for row in memories
        ],
    )  # fmt: skip
    if given.history:
        screen.table(
            "Changes",
            ("time", "by", "scope", "was", "became"),
            [
                (desk.shown(row["at"], timespec="seconds"), row["actor_id"], row["scope"],
                 _json(row["was"]), _json(row["became"]))
                for row in reversed(changes)
            ],
        )  # fmt: skip
    if given.person:
        screen.table("Rows stored", ("table", "rows"), rows_there(counts))
    return 0


def _say_whom(screen: Screen, open_id: str, counts: Mapping[str, int]) -> None:
    """Who it is and how much is kept, before the tables."""
    total, name = sum(counts.values()), screen.named(open_id)
    rows = Sentence(f"{counted(total, 'row')} of {name}", f"{name} 的 {total} 行数据")
    screen.verdict("memory", rows, good=True)


def rows_there(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Tables that hold something; zeros say nothing."""
    return [(table, rows) for table, rows in counts.items() if rows]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


class NothingToFold(Exception):
    """The conversation has no messages but those that are given to the model as they are; `zh` says
    so in Chinese."""

    def __init__(self, en: str, zh: str) -> None:
        super().__init__(en)
        self.zh = zh


async def summarise(
    desk: OperatorDesk, given: argparse.Namespace, context: AgentMemoryContext
) -> int:
    """Folds what the window no longer shows, and prints the summary. Raises `NothingToFold`."""
    from bot.agents.configured_models import Models  # all bring the model's client with them
    from bot.agents.summaries import build_summariser
    from bot.answering.between_turns import fold_messages, window_size

    async def names(open_ids: Sequence[str]) -> Mapping[str, str]:
        known = await desk.people.named(context.tenant_key, open_ids)
        return {one.open_id: one.name for one in known if one.name}

    models = Models(desk.settings)
    summaries, shown = Summaries(desk.rpc), window_size(desk.settings.history_messages)
    writer = build_summariser(desk.settings, models)
    fold_once = partial(
        fold_messages,
        summaries,
        writer,
        context,
        window=shown,
        names=names,
        zone=desk.settings.zone,
        most=1,
    )
    folded = 0
    try:
        with progress("versions") as step:
            while now := await fold_once():
                folded += now
                step()
    finally:
        await models.close()
    stored = await summaries.open_fold(context, window=shown)
    if not stored.content:
        nothing = f"{context.user_id} has no messages in {context.conversation_id}"
        raise NothingToFold(
            f"nothing to fold: {desk.named(nothing)} before the last {shown}, which the model is "
            "given as they are",
            f"没有可以折叠的内容：除最近 {shown} 条（原样提供给模型）以外，"
            f"{desk.named(context.user_id)} 在 {desk.named(context.conversation_id)} 中没有消息",
        )
    _show_summary(stored, context, folded, as_json=given.json)
    return 0


def _show_summary(
    stored: SummaryFold, context: AgentMemoryContext, folded: int, *, as_json: bool
) -> None:
    if as_json:
        print_json(
            {
                "conversation_id": context.conversation_id,
                "user_id": context.user_id,
                "version": stored.version,
                "messages": stored.folded,
                "folded_now": folded,
                "content": stored.content,
            }
        )
        return
    title = f"Version {stored.version}: {counted(stored.folded, 'message')}, {folded} folded now"
    Screen().table(title, ("summary",), [[line] for line in stored.content.splitlines()])


class NothingToEmbedWith(Exception):
    """There is no embedding model, or no place for vectors; the message says what to do, `zh` the
    same in Chinese."""

    def __init__(self, en: str, zh: str) -> None:
        super().__init__(en)
        self.zh = zh


async def embed_everything(desk: OperatorDesk, given: argparse.Namespace) -> int:
    """Embeds every message without an embedding of the configured model, and then drops those of
    other models; with `--model` of that one, beside the others.

    Can be broken off and run again. Status 1 when the model refused messages or stopped answering.
    """
    from bot.agents.embeddings import build_embedder

    settings, dropped = desk.settings, 0
    if given.model:
        address = given.base_url or settings.embedding_base_url
        settings = replace(settings, embedding_model=given.model, embedding_base_url=address)
    embedder = build_embedder(settings)
    if embedder is None:
        raise NothingToEmbedWith(
            "set EMBEDDING_MODEL first: without it recall goes by words alone",
            "请先设置 EMBEDDING_MODEL：没有它，只能按词语查找",
        )
    try:
        backlog = await EmbeddingStore(desk.rpc).backlog(embedder.name)
        if backlog is None:
            raise NothingToEmbedWith(
                "the database has no vectors: scripts/migrate says why",
                "数据库不支持向量：scripts/migrate 会说明原因",
            )
        done, failure = await _embed(desk, embedder, backlog)
        left = sum(one.messages for one in backlog) - done
        if not left and not given.model:
            dropped = await EmbeddingStore(desk.rpc).drop_others(embedder.name)
    finally:
        await embedder.close()
    if given.json:
        counts = {"embedded": done, "left": left, "dropped": dropped}
        print_json({"model": embedder.name, **counts, "failure": failure})
    else:
        en = f"{counted(done, 'message')} embedded by {embedder.name}, {left} left"
        print(in_language(en, f"{embedder.name} 已生成 {done} 条消息的向量，还剩 {left} 条"))
        if dropped:
            en = f"{counted(dropped, 'embedding')} of other models dropped"
            print(in_language(en, f"已删除其他模型的 {dropped} 个向量"))
        if given.model and not left:
            steps = in_language(
                f"Set EMBEDDING_MODEL={given.model}, start the bot again, "
                "and run this without --model.",
                f"请设置 EMBEDDING_MODEL={given.model}，重新启动机器人，再不带 --model 运行一次。",
            )
            print(steps)
    if failure:
        en, zh = f"stopped: {failure}. Run this again later.", f"已中断：{failure}。请稍后再运行。"
        print(in_language(en, zh), file=sys.stderr)
    return FINDINGS if left > 0 else 0


async def _embed(
    desk: OperatorDesk, embedder: Embedder, backlog: tuple[EmbeddingBacklog, ...]
) -> tuple[int, str | None]:
    """How many, and why it stopped before the end."""
    from bot.agents.embeddings import EmbeddingFailed
    from bot.answering.between_turns import embed_new

    done = 0
    with progress("messages", sum(one.messages for one in backlog)) as step:
        for one in backlog:
            try:
                embedded = await embed_new(
                    desk.rpc, embedder, one.context, most=one.messages, recent=None
                )
            except EmbeddingFailed as exc:
                return done, str(exc)
            for _ in range(embedded):
                step()
            done += embedded
    return done, None


@dataclass(frozen=True, slots=True)
class AuthOutcome:
    """Whose users of Supabase Auth were deleted, and whose stay."""

    deleted: tuple[FeishuPerson, ...] = ()
    kept: tuple[FeishuPerson, ...] = ()

    def ids(self) -> dict[str, list[str]]:
        """For JSON: the ids of the users."""
        named = {"deleted": self.deleted, "kept": self.kept}
        return {name: [str(one.auth_user_id) for one in people] for name, people in named.items()}


async def link_users(desk: OperatorDesk, given: argparse.Namespace) -> int:
    """Gives everybody their Auth user; status 1 when somebody could not be linked."""
    from memory.accounts import AccountLinker

    total = await desk.people.count(only_unlinked=not given.all)
    async with _open_auth(desk.settings) as users:
        with progress("people", total) as step:
            linker = AccountLinker(desk.people, users)
            linked = await linker.link_everybody(again=given.all, on_person=step)
    _show_linked(desk, linked, as_json=given.json)
    return FINDINGS if linked.refused else 0


async def forget_auth_users(desk: OperatorDesk, given: argparse.Namespace) -> AuthOutcome:
    """Deletes the person's Auth users, before the memory forgets who they are; or names those
    that stay."""
    if not given.person or given.conversation:
        return AuthOutcome()
    stored = await desk.people.listed(open_id=given.person, tenant_key=given.tenant, limit=_TENANTS)
    if not given.auth_user:
        return AuthOutcome(kept=tuple(one.person for one in stored if one.auth_user_id))
    people = {one.person for one in stored}
    if given.tenant is not None:  # they may be forgotten already
        people.add(FeishuPerson(given.tenant, given.person))
    async with _open_auth(desk.settings) as users:
        return AuthOutcome(tuple([one for one in sorted(people) if await users.delete(one)]))


def tell_auth_users(outcome: AuthOutcome) -> None:
    """What became of the Auth users, and how those that stay could go."""
    for person in outcome.deleted:
        gone = in_language("deleted in Supabase Auth: ", "已从 Supabase Auth 删除：")
        print(f"{gone}{person.auth_user_id}")
    for person in outcome.kept:
        print(
            f"their user of Supabase Auth, {person.auth_user_id}, stays, for other apps share it; "
            f"to delete it: scripts/memory forget --person {shlex.quote(person.open_id)} "
            f"--tenant {shlex.quote(person.tenant_key)} --auth-user"
        )


def _show_linked(desk: OperatorDesk, linked: LinkResult, *, as_json: bool) -> None:
    refused: Sequence[tuple[str, str, str]] = [
        (person.tenant_key, person.open_id, reason) for person, reason in linked.refused
    ]
    if as_json:
        print_json({"linked": linked.people, "refused": refused})
        return
    screen = Screen(names_of=desk.names_of)
    screen.say(f"{linked.people} people linked")
    if refused:
        screen.table("Not linked", ("tenant", "person", "why"), refused)


@asynccontextmanager
async def _open_auth(settings: Settings) -> AsyncIterator[AuthUsers]:
    """Supabase Auth as configured. Raises `SettingsError`."""
    for name in ("SUPABASE_URL", "SUPABASE_SECRET_KEY"):
        if not getattr(settings, name.lower()):
            raise SettingsError(f"{name} is not set: without it there are no users of Auth.")
    from memory.accounts import AuthUsers  # 0.3 s that the other commands do not need

    users = AuthUsers(settings.supabase_url, settings.supabase_secret_key)
    try:
        yield users
    finally:
        await users.close()
