"""Whatever a signed-in user sends costs the database little: limits come before work."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import jwt
import psycopg
import pytest

from lab.doubles.lite import SupabaseLite
from tests.support import costs
from tests.support.patience import limit_s

MOST_MS = 100
ACCEPTED = 65_536  # bytes that a turn's token may cost no more with, where that many are taken
CHAT, CONVERSATION, PERSON = "oc_limits", "feishu:oc_limits:main", "ou_limits"

HOSTILE: dict[str, Callable[[int], str]] = {
    "deep arrays": lambda size: "[" * size,
    "deep objects": lambda size: '{"a":' * (size // 6) + "1" + "}" * (size // 6),
    "many keys": lambda size: "{" + ",".join(f'"{n:x}":1' for n in range(size // 12)) + "}",
    "many elements": lambda size: "[" + ",".join(f'"t{n:x}"' for n in range(size // 12)) + "]",
    "many records": lambda size: (
        "[" + ",".join(['{"message_id":"m","shown":["a"]}'] * (size // 33)) + "]"
    ),
    "one long word": lambda size: "a" * size,
    "many words": lambda size: "ab 你好 " * (size // 10),
}
# What says who asks, and where: with these the call gets past the first check.
IDENTITY = {
    "p_user_id": PERSON,
    "p_actor_id": PERSON,
    "p_operator_id": PERSON,
    "p_conversation_id": CONVERSATION,
    "p_chat_id": CHAT,
    "p_root_id": "main",
    "p_tenant_key": "",
    "p_turn_id": "om_limits",
    "p_note_id": "note_limits",
    "p_scope": "thread",
    "name": "sub",
}
TOKENS = {
    "signed in": {"sub": "6f1d2c5e-0b6a-5f0e-9a53-0d7f5b1c4e88", "role": "authenticated"},
    "of a turn": {"sub": PERSON, "actor": PERSON, "chat_id": CHAT, "chat_type": "p2p"},
}


@pytest.fixture(scope="module")
def connection(module_database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(
        module_database_url,
        autocommit=True,
        cursor_factory=psycopg.ClientCursor,
        prepare_threshold=None,
    ) as opened:
        yield opened


@pytest.fixture(scope="module")
def functions(connection: psycopg.Connection) -> list[costs.Function]:
    """What may be called, in a chat that has begun a conversation and a turn."""
    connection.execute(costs.TRY_CALL)
    connection.execute(
        "select open_turn('om_limits', %s, %s, 'main', %s, %s, 'A', '', 'hello', 10)",
        [CONVERSATION, CHAT, PERSON, PERSON],
    )
    connection.execute("select begin_conversation(%s, '', 1, '[]')", [CHAT])
    return costs.callable_functions(connection)


def too_slow(
    connection: psycopg.Connection, token: str, calls: dict[str, str], most_ms: float = MOST_MS
) -> tuple[set[str], str]:
    """The functions whose call costs more than it may, each time of three; and the slowest. What
    costs ten times as much is not tried again."""
    claims = TOKENS[token]
    nothing = costs.time_call(connection, claims, "select")
    times = {}
    for name, call in calls.items():
        for _ in range(3):
            spent = costs.time_call(connection, claims, call) - nothing
            times[name] = min(spent, times.get(name, spent))
            if not most_ms < times[name] < 10 * most_ms:
                break
    slowest = max(times, key=lambda name: times[name])
    return (
        {name for name, spent in times.items() if spent > most_ms},
        f"{slowest} {times[slowest]:.0f} ms",
    )


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        *(("signed in", kind) for kind in ("deep objects", "many keys", "many words")),
        *(("of a turn", kind) for kind in HOSTILE),
    ],
)
def test_the_largest_argument_of_anybody_costs_little(
    connection: psycopg.Connection,
    functions: list[costs.Function],
    token: str,
    kind: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    accepted = {min(n, ACCEPTED) for f in functions for n in f.limits.values()}
    sizes = [costs.LARGEST] if token == "signed in" else sorted(accepted)
    costs.give_texts(connection, [HOSTILE[kind](size) for size in sizes])
    slow, slowest = too_slow(
        connection, token, {f.name: f.call(IDENTITY, sizes) for f in functions}
    )
    with capsys.disabled():
        print(f"\n{token}, {kind}, {sizes[-1]} bytes: at most {slowest}")

    assert slow == set()


@pytest.mark.parametrize("kind", ["deep objects", "many keys", "many records", "many words"])
def test_the_largest_argument_of_a_turn_costs_little_more_than_to_be_read(
    connection: psycopg.Connection,
    functions: list[costs.Function],
    kind: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where more than `ACCEPTED` is taken: two such texts may be read, and a tenth of a second."""
    large = [f for f in functions if max(f.limits.values(), default=0) > ACCEPTED]
    sizes = sorted({limit for f in large for limit in f.limits.values()})
    costs.give_texts(connection, [HOSTILE[kind](size) for size in sizes])
    last = len(sizes)
    reading = costs.time_call(
        connection, TOKENS["of a turn"], f"select ${last}::text::jsonb is null"
    )
    reading -= costs.time_call(connection, TOKENS["of a turn"], "select")
    calls = {f.name: f.call(IDENTITY, sizes) for f in large}
    slow, slowest = too_slow(connection, "of a turn", calls, MOST_MS + 2 * max(reading, 0))
    with capsys.disabled():
        print(f"\n{len(large)} functions, {kind}, {sizes[-1]} bytes (read in {reading:.0f} ms):"
              f" at most {slowest}")  # fmt: skip

    assert len(large) > 5
    assert sizes[-1] <= 2**22
    assert slow == set()


def test_whoever_names_nobody_costs_little(
    connection: psycopg.Connection, functions: list[costs.Function]
) -> None:
    """The texts that say who asks and where may be as large as the others."""
    costs.give_texts(connection, ["a" * costs.LARGEST])
    calls = {f.name: f.call({}, [costs.LARGEST]) for f in functions}
    slow, _ = too_slow(connection, "of a turn", calls, limit_s(MOST_MS))

    assert slow == set()


def test_nothing_is_read_of_an_argument_before_its_function_can_look_at_its_size(
    functions: list[costs.Function],
) -> None:
    """JSON, arrays and rows are taken apart before the first statement."""
    types = {type_ for function in functions for type_ in function.arguments.values()}

    assert types <= {"text", *costs.SCALARS}


@pytest.mark.parametrize(
    "body", ["select pg_sleep(60)", "select count(*) from jsonb_each(p_text::jsonb)"]
)
def test_a_function_without_a_limit_is_noticed(
    connection: psycopg.Connection, functions: list[costs.Function], body: str
) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute(
            f"create function public.slow(p_text text) returns void language sql as '{body}';"
            " grant execute on function public.slow to authenticated"
        )
        costs.give_texts(connection, [HOSTILE["many keys"](costs.LARGEST)])
        [slow] = [f for f in costs.callable_functions(connection) if f.name == "slow"]
        found, _ = too_slow(connection, "signed in", {"slow": slow.call({}, [costs.LARGEST])})

    assert found == {"slow"}


def test_the_largest_patch_that_is_taken_costs_little(connection: psycopg.Connection) -> None:
    small = "{" + ",".join(f'"k{n}":{{}}' for n in range(3000)) + "}"
    deep = "{" + ",".join(f'"{n}":' + '{"a":' * 30 + "1" + "}" * 30 for n in range(173)) + "}"
    for patch in (small, deep):
        assert 30_000 < len(patch) <= 32_768
        call = {
            "p_conversation_id": CONVERSATION, "p_chat_id": CHAT, "p_user_id": PERSON,
            "p_actor_id": PERSON, "p_tenant_key": "", "p_scope": "chat", "p_patch": patch,
        }  # fmt: skip
        values = ", ".join(f"{name} => '{value}'" for name, value in call.items())
        statement = f"select public.merge_working_memory({values})"
        assert costs.time_call(connection, TOKENS["of a turn"], statement) < 10 * MOST_MS


@pytest.mark.parametrize("schema", ["public", "bot_private"])
def test_what_functions_are_made_of_cannot_be_called_over_the_api(
    supabase_lite: SupabaseLite, schema: str
) -> None:
    claims = {"sub": PERSON, "role": "authenticated", "aud": "authenticated", "exp": 4102444800}
    token = jwt.encode(claims, supabase_lite.jwt_secret, algorithm="HS256")
    patch = {f"k{n}": {} for n in range(40_000)}

    answer = httpx.post(
        f"{supabase_lite.url}/rest/v1/rpc/merge_patch",
        json={"p_target": {}, "p_patch": patch},
        headers={
            "apikey": supabase_lite.publishable_key,
            "Authorization": f"Bearer {token}",
            "Content-Profile": schema,
        },
    )

    assert answer.status_code in (404, 406), answer.text
    assert answer.json()["code"] in ("PGRST202", "PGRST106")
