"""A server that gives its answer from the beginning again gives it once; one that goes on under
another id, and text that really repeats, stay whole."""

from __future__ import annotations

from typing import Any

from bot.agents.llm.model import Response
from bot.agents.llm.responses import ResponseAssembly
from tests.support.rows import every_row

ANSWER = ("The city ", "is Turku ", "and the ferry ", "leaves at nine.")
WHOLE = "".join(ANSWER)


def chunk(id: str = "a", finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": id, "object": "chat.completion.chunk", "choices": [choice]}


def told(*pieces: str, id: str = "a") -> list[dict[str, Any]]:
    return [chunk(id, content=piece) for piece in pieces]


def gathered(*events: dict[str, Any]) -> Response:
    assembly = ResponseAssembly()
    for event in (*events, chunk(finish="stop")):
        assembly.add(event)
    return assembly.response()


ROLE = chunk(role="assistant", content="")


@every_row(
    ("events", "text"),
    [
        ([ROLE, *told(*ANSWER[:1]), ROLE, *told(*ANSWER)], WHOLE),
        ([ROLE, *told(*ANSWER[:3]), ROLE, *told(*ANSWER)], WHOLE),
        ([chunk(role="assistant", content=piece) for piece in (ANSWER[0], WHOLE)], WHOLE),
        ([*told(*ANSWER[:2]), *told(*ANSWER, id="b")], WHOLE),
        (
            [*told(*ANSWER[:2]), *told(*ANSWER[:3], id="b"), *told(WHOLE[:11], WHOLE[11:], id="c")],
            WHOLE,
        ),
        ([*told("The city ", "of Turku"), *told("The city is ", "Turku.", id="b")],
         "The city is Turku."),
        (told(*ANSWER[:2], *ANSWER), WHOLE),
        (told("渡轮九点从图尔库开，请提前", "到码头", "渡轮九点从图尔库开，请提前", "到码头", "。"),
         "渡轮九点从图尔库开，请提前到码头。"),
    ],
)  # fmt: skip
def test_an_answer_that_begins_again_is_what_it_is_the_last_time(
    events: list[dict[str, Any]], text: str
) -> None:
    assert gathered(*events).text == text


@every_row(
    "pieces",
    [
        ("I will not talk ", "in class.\n", "I will not talk ", "in class.\n", "Done."),
        ("Row, row, ", "row your boat, ", "row, row, ", "row your boat"),
        ("| a | b |\n", "| 1 | 2 |\n", "| 1 | 2 |\n", "| 3 | 4 |"),
        ("Yes. ", "Yes. ", "Yes. ", "That is right."),
        ("Turku, Helsinki, ", "Turku, Helsinki, ", "Oslo"),
        ("142857142857", "142857", "142857142857", "1428571", "42857"),
    ],
)
def test_text_that_repeats_itself_stays(pieces: tuple[str, ...]) -> None:
    assert gathered(*told(*pieces)).text == "".join(pieces)


def test_a_server_that_goes_on_elsewhere_and_ids_of_every_piece_change_nothing() -> None:
    elsewhere = [chunk("b", role="assistant", content=" nine "), chunk("b", content="sharp.")]
    text = gathered(*told("The ferry ", "leaves at"), *elsewhere).text
    assert text == "The ferry leaves at nine sharp."
    said = ("I think ", "so. ", "I think ", "we go.", "Oui, oui. ")
    roles = [chunk(role="assistant", content=piece) for piece in said]
    assert gathered(*roles).text == "".join(said)
    laughs = [chunk(str(number), role="assistant", content="ha") for number in range(3)]
    assert gathered(*laughs).text == "hahaha"


@every_row("id", ["call_2", None])
def test_a_call_that_begins_again_is_made_once(id: str | None) -> None:
    def piece(arguments: str, **more: Any) -> list[dict[str, Any]]:
        return [{"index": 0, **more, "function": {"name": "remind", "arguments": arguments}}]

    first = {"id": "call_1"} if id else {}
    again = {"id": id} if id else {}
    response = gathered(
        chunk(role="assistant", tool_calls=piece('{"when":', **first)),
        chunk(tool_calls=piece('"9', **first)),
        chunk("b", role="assistant", tool_calls=piece('{"when":', **again)),
        chunk("b", tool_calls=piece('"9"}', **again)),
    )
    assert [(call.name, call.arguments) for call in response.calls] == [("remind", '{"when":"9"}')]
