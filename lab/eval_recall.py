"""How much of the evidence recall finds, and how fast.

Loads evaluation data into a throw-away embedded database, asks every question through the SQL
function as the person concerned (row-level security on) and prints the share of the annotated
evidence among the first k hits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

import psycopg

from bot.agents.llm.embedder import Embedder, build_embedder
from bot.settings import EXIT_STATUS, SettingsError, load
from lab.benchmark.processes import postmaster, stop_server
from lab.evaluation import bm25_baseline
from lab.evaluation.databases import fresh_database
from lab.evaluation.recall_corpora import (
    Corpus,
    CorpusTurn,
    Question,
    load_beam,
    load_locomo,
    load_memdaily,
    load_memory_bank,
    load_realtalk,
    load_xquad,
)
from lab.evaluation.recall_scale import RecallLatency, Scale, Stored, latency, measure_scale
from lab.evaluation.recall_vectors import WEIGHTS, embed_conversations, embed_questions, weighed
from memory.backends import embedded
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.models import Likeness
from memory.recall.ordinals import enough_for, in_order
from memory.recall.passages import Passage, passages, recall_params
from memory.recall.reading import words_told
from memory.recall.worth_telling import MOST_TOLD, worth_telling
from memory.rpc import call_as
from memory.scope import AgentMemoryContext, memory_context
from memory.tokens import estimate_tokens

_DEFAULT_BANK = Path(__file__).parents[2] / "shared" / "eval"
_EXAMPLES = """examples:
  scripts/eval_recall                          the Chinese questions, where present
  scripts/eval_recall --locomo locomo10.json   and the English ones
  scripts/eval_recall --realtalk data --beam chats/100K --half rest
  scripts/eval_recall --embeddings             also with EMBEDDING_MODEL, weight by weight
  scripts/eval_recall --xquad xquad --bm25     across languages; plain BM25 beside each
  scripts/eval_recall --scale                  ms at 1,000 and 1,000,000 messages
  scripts/eval_recall --scale 100000 --json
"""


@dataclass(frozen=True, slots=True)
class RecallReport:
    """`found[k]` is the mean share of a question's evidence among the first k hits, 0 to 1.

    `weight` is that of the vectors; 0: words alone. `told` is the share that a prompt tells,
    `tokens` what that costs, `tokens_elsewhere` what it costs in a conversation without the answer.
    """

    corpus: str
    questions: int
    with_dates: bool
    found: dict[int, float]
    ms: RecallLatency
    weight: float = 0.0
    told: float = 0.0
    tokens: float = 0.0
    tokens_elsewhere: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    if options.bm25 and (missing := bm25_baseline.missing()):
        _progress(f"--bm25 needs .venv/bin/pip install {' '.join(missing)}")
        return EXIT_STATUS
    corpora = _corpora(options)
    try:
        embedder = _embedder() if options.embeddings else None
    except SettingsError as exc:
        _progress(str(exc))
        return EXIT_STATUS
    with tempfile.TemporaryDirectory(prefix="eval-recall-") as folder:
        server = embedded.start(Path(folder))
        try:
            reports = asyncio.run(_evaluate_all(server, corpora, options.k, embedder))
            scale, stored = _scale(server, options.scale) if options.scale else ([], [])
        finally:
            stop_server(postmaster(Path(folder)))
    plain = (
        {one.name: bm25_baseline.found_by_bm25(one, options.k) for one in corpora}
        if options.bm25
        else {}
    )
    if options.json:
        measured = {"scale": [*map(asdict, scale)], "stored": [*map(asdict, stored)]}
        print(json.dumps({"recall": [*map(asdict, reports)], "bm25": plain, **measured}))
    else:
        _print(reports, scale, stored)
        if plain:
            head = ["plain BM25", *(f"R@{k}" for k in options.k)]
            rows = [
                [name, *(f"{one:.1%}" for one in by_k.values())] for name, by_k in plain.items()
            ]
            print(f"\n{_table([head, *rows])}")
    return 0 if reports or scale else 1


def _embedder() -> Embedder:
    embedder = build_embedder(load())
    if embedder is None:
        raise SettingsError("EMBEDDING_MODEL is not set: --embeddings needs one. See .env.example.")
    return embedder


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="eval_recall",
        description=__doc__,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--memory-bank", type=Path, default=_DEFAULT_BANK, metavar="DIR")
    parser.add_argument("--locomo", type=Path, metavar="FILE", help="LoCoMo's JSON file")
    parser.add_argument("--realtalk", type=Path, metavar="DIR", help="REALTALK's folder data")
    parser.add_argument("--memdaily", type=Path, metavar="DIR", help="MemDaily's questions")
    parser.add_argument("--beam", type=Path, metavar="DIR", help="BEAM's folder chats/100K")
    parser.add_argument(
        "--xquad", type=Path, metavar="DIR", help="XQuAD: questions across languages"
    )
    parser.add_argument(
        "--bm25", action="store_true", help="also plain BM25 (bm25s, jieba), if they are installed"
    )
    parser.add_argument(
        "--half",
        choices=("tune", "rest"),
        help="every second conversation: what to tune on, or what is then reported",
    )
    parser.add_argument(
        "--embeddings", action="store_true", help="also with vectors, from EMBEDDING_MODEL"
    )
    parser.add_argument("--k", type=int, nargs="+", default=[1, 5, 10])
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--scale", type=int, nargs="?", const=1_000_000, metavar="MESSAGES", help="measure time too"
    )
    return parser.parse_args(arguments)


def _corpora(options: argparse.Namespace) -> list[Corpus]:
    corpora = []
    if (options.memory_bank / "memory_bank_cn_evidence.json").exists():
        corpora.append(load_memory_bank(options.memory_bank))
    else:
        _progress(
            f"no Chinese questions in {options.memory_bank}: name their folder, --memory-bank"
        )
    for load_corpus, path in (
        (load_locomo, options.locomo),
        (load_realtalk, options.realtalk),
        (load_memdaily, options.memdaily),
        (load_beam, options.beam),
        (load_xquad, options.xquad),
    ):
        if path:
            corpora.append(load_corpus(path))
    if options.half:
        kept_back = options.half == "rest"
        return [one.half(f"{one.name}, {options.half}", kept_back=kept_back) for one in corpora]
    return corpora


async def _evaluate_all(
    server: str, corpora: Sequence[Corpus], ks: Sequence[int], embedder: Embedder | None
) -> list[RecallReport]:
    reports: list[RecallReport] = []
    for corpus in corpora:
        _progress(f"{corpus.name}: {len(corpus.questions)} questions")
        url = fresh_database(server, "evaluation")
        store(url, corpus)
        reports += [await evaluate(url, corpus, ks, with_dates=dates) for dates in (False, True)]
        if embedder:
            reports += await _evaluate_weights(url, corpus, ks, embedder)
    if embedder:
        await embedder.close()
    return reports


async def _evaluate_weights(
    url: str, corpus: Corpus, ks: Sequence[int], embedder: Embedder
) -> list[RecallReport]:
    people = [_context(name) for name in corpus.conversations]
    await embed_conversations(url, embedder, people, _progress)
    likenesses = await embed_questions(embedder, [one.text for one in corpus.questions])
    return [
        await evaluate(url, corpus, ks, with_dates=True, likenesses=weighed(likenesses, weight))
        for weight in WEIGHTS
    ]


def store(url: str, corpus: Corpus) -> None:
    """Every turn as the bot would have stored it, each conversation as one person's thread."""
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        for name, turns in corpus.conversations.items():
            who = _context(name)
            cursor.execute(
                "insert into agent_chats (id, user_id, chat_id, root_id)"
                " values (%s, %s, %s, 'main')",
                (who.conversation_id, who.user_id, who.chat_id),
            )
            for turn in turns:
                _store_turn(cursor, who, turn)


def _store_turn(cursor: psycopg.Cursor, who: AgentMemoryContext, turn: CorpusTurn) -> None:
    turn_id = _turn_id(who, turn.id)
    cursor.execute(
        "insert into agent_turns (id, conversation_id, user_id, actor_id, chat_id, state)"
        " values (%s, %s, %s, %s, %s, 'sent')",
        (turn_id, who.conversation_id, who.user_id, who.user_id, who.chat_id),
    )
    place = (who.conversation_id, who.user_id, turn_id, who.chat_id)
    said = [("user", turn.question, turn.speaker), ("assistant", turn.answer, "")]
    cursor.executemany(
        "insert into agent_messages (conversation_id, user_id, turn_id, chat_id, role, content,"
        " actor_id, actor_name, status, created_at)"
        " values (%s, %s, %s, %s, %s, %s, %s, %s, 'sent', %s)",
        [
            (*place, role, text, who.user_id, speaker, turn.at)
            for role, text, speaker in said
            if text
        ],
    )


def _context(name: str) -> AgentMemoryContext:
    return memory_context(
        chat_id=f"oc_{name}", root="main", subject=f"ou_{name}", actor=f"ou_{name}"
    )


def _turn_id(who: AgentMemoryContext, turn: str) -> str:
    return f"{who.chat_id} {turn}"


async def evaluate(
    url: str,
    corpus: Corpus,
    ks: Sequence[int],
    *,
    with_dates: bool,
    likenesses: Mapping[str, Likeness] = MappingProxyType({}),
) -> RecallReport:
    """Asks every question of `corpus`, which `store` put into the database.

    `likenesses` are those of the questions, all of one weight.
    """
    pool = connection_pool(url, size=1)
    await pool.open()
    rpc = PostgresRpc(pool)
    found: dict[int, float] = dict.fromkeys(ks, 0.0)
    told = tokens = elsewhere = 0.0
    times: list[float] = []
    names = sorted(corpus.conversations)
    for question in corpus.questions:

        async def ask(conversation: str, question: Question = question) -> tuple[Passage, ...]:
            who, now = _context(conversation), corpus.asked_at(conversation)
            wanted = enough_for(question.text, max(*ks, MOST_TOLD))
            likeness = likenesses.get(question.text)
            params = recall_params(
                who, question.text, now=now, k=wanted, likeness=likeness, newest_too=True
            )
            if not with_dates:
                params |= {"p_spans": "[]"}
            started = time.perf_counter()
            rows = await call_as(rpc, "recall", who, **params)
            times.append((time.perf_counter() - started) * 1000)
            return in_order(passages(rows), question.text, max(*ks, MOST_TOLD))

        best = await ask(question.conversation)
        hits = [passage.turn_id for passage in best]
        in_prompt = worth_telling(best)
        evidence = {_turn_id(_context(question.conversation), turn) for turn in question.evidence}
        for k in ks:
            found[k] += len(evidence.intersection(hits[:k])) / len(evidence)
        told += len(evidence.intersection(one.turn_id for one in in_prompt)) / len(evidence)
        tokens += _tokens(in_prompt)
        # halfway round: with two halves of the conversations, one of the same half
        other = names[(names.index(question.conversation) + len(names) // 2) % len(names)]
        elsewhere += _tokens(worth_telling(await ask(other)))
    await rpc.close()
    asked = len(corpus.questions)
    shares = {k: total / asked for k, total in found.items()}
    weight = next((one.weight for one in likenesses.values()), 0.0)
    return RecallReport(
        corpus.name,
        asked,
        with_dates,
        shares,
        latency(times),
        weight,
        told / asked,
        tokens / asked,
        elsewhere / asked,
    )


def _tokens(passages_told: Sequence[Passage]) -> int:
    return sum(estimate_tokens(words_told(one)) for one in passages_told)


def _scale(server: str, messages: int) -> tuple[list[Scale], list[Stored]]:
    return measure_scale(lambda name: fresh_database(server, name), messages, _progress)


def _print(
    reports: Sequence[RecallReport], scale: Sequence[Scale], stored: Sequence[Stored]
) -> None:
    if reports:
        shares = [f"R@{k}" for k in reports[0].found]
        told = ["told", "tokens", "elsewhere"]
        head = ["data", "questions", "dates", "vectors", *shares, *told, "p50 ms", "p95 ms"]
        print(_table([head, *map(_report_row, reports)]))
    if scale:
        head = ["messages", "operation", "p50 ms", "p95 ms", "CPU ms"]
        print(_table([head, *map(_scale_row, scale)]))
    if stored:
        print(f"\nbytes a message of {stored[0].text:.0f} bytes")
        print(_table([["table", "rows", "indexes"], *map(_stored_row, stored)]))


def _report_row(report: RecallReport) -> list[str]:
    dates = "yes" if report.with_dates else "no"
    shares = [f"{share:.1%}" for share in report.found.values()]
    weight = f"{report.weight:g}" if report.weight else "no"
    told = [f"{report.told:.1%}", f"{report.tokens:.0f}", f"{report.tokens_elsewhere:.0f}"]
    return [report.corpus, str(report.questions), dates, weight, *shares, *told, *_ms(report.ms)]


def _scale_row(scale: Scale) -> list[str]:
    return [f"{scale.messages:,}", scale.operation, *_ms(scale.ms), f"{scale.cpu_ms:.1f}"]


def _stored_row(stored: Stored) -> list[str]:
    return [stored.table, f"{stored.rows:.0f}", f"{stored.indexes:.0f}"]


def _ms(ms: RecallLatency) -> list[str]:
    return [f"{ms.p50:.1f}", f"{ms.p95:.1f}"]


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
