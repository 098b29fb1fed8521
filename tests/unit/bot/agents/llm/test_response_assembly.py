"""Responses put together from what endpoints really send. Written after their streams."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agents.llm.model import Declined, ModelFailed, Response
from bot.agents.llm.responses import MOST_TEXT, ResponseAssembly
from bot.agents.tools.tool_calls import response_message
from bot.text.json_text import load_json
from tests.support.raw_endpoint import delta
from tests.support.rows import every_row


def gathered(*sent: Any) -> Response:
    assembly = ResponseAssembly()
    for one in sent:
        assembly.add(one)
    return assembly.response()


def called(*pieces: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Ids, names and arguments of calls that come in these pieces, one a chunk."""
    response = gathered(*(delta(tool_calls=[piece]) for piece in pieces))
    return [(call.id, call.name, call.arguments) for call in response.calls]


def piece(index: int | None = None, id: str | None = None, **function: Any) -> dict[str, Any]:
    given = {"index": index, "id": id, "function": function or None}
    return {key: value for key, value in given.items() if value is not None}


# Text


def test_text_comes_in_pieces_or_whole() -> None:
    in_pieces = gathered(
        delta(role="assistant", content=""), delta(content="a"), delta(content="b")
    )
    at_once = gathered({"choices": [{"message": {"role": "assistant", "content": "ab"}}]})
    assert in_pieces == at_once == Response("ab")


@pytest.mark.parametrize(
    "empty",
    [
        {"choices": []},
        {"choices": None},
        {},
        {"choices": [{}]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {}}]},
        {"choices": [{"delta": {"content": None, "tool_calls": None}}]},
        {"choices": [{"delta": {"content": 7, "tool_calls": "x", "refusal": []}}]},
        {"choices": [None], "usage": None, "error": None},
    ],
    ids=json.dumps,
)
def test_what_says_nothing_changes_nothing(empty: Any) -> None:
    assert gathered(empty) == Response()
    assert gathered(delta(content="a"), empty, delta(content="b")) == Response("ab")


def test_text_as_a_list_of_parts_is_put_together_without_the_thoughts() -> None:
    parts = [
        {"type": "thinking", "text": "SECRET"},
        {"type": "text", "text": "a"},
        {"text": "b"},
        {"type": "image_url"},
    ]
    assert gathered(delta(content=parts)).text == "ab"
    assert gathered(delta(content={"type": "text", "text": "a"}), delta(content="b")).text == "ab"


@every_row("field", ["reasoning_content", "reasoning"])
def test_thoughts_stand_apart_and_go_back_as_they_came(field: str) -> None:
    response = gathered(
        delta(**{field: "first "}), delta(**{field: "that"}), delta(content="Answer.")
    )
    assert response.text == "Answer."
    assert response.thoughts == {field: "first that"}


@every_row("field", ["reasoning_content", "reasoning"])
@every_row(
    ("thoughts", "content"),
    [
        (["The user wants a city.\n</think>\n\nThe city is Turku."], None),
        (["<think>Well</think>", "The city ", "is Turku."], "\n\n"),
        (["a</think>b", "</thinking>\nThe city is Turku.\n"], ""),
        (["◁think▷A city.◁/think▷The city is Turku."], None),
        (["[THINK]A city.[/THINK]The city is Turku."], None),
        (["plan"], "The city is Turku."),
    ],
)
def test_an_answer_that_stands_behind_its_thoughts_is_found(
    thoughts: list[str], content: str | None, field: str
) -> None:
    stream = [*(delta(**{field: one}) for one in thoughts), delta(content=content), delta("stop")]
    assert gathered(*stream).text == "The city is Turku."


def test_thoughts_alone_are_no_answer() -> None:
    assert gathered(delta(reasoning="The city is Turku."), delta("stop")).text == ""


def test_a_character_whose_halves_come_apart_is_whole_again() -> None:
    halves = [load_json('{"choices":[{"delta":{"content":"\\ud83c"}}]}'),
              load_json('{"choices":[{"delta":{"content":"\\udf89"}}]}')]  # fmt: skip
    assert gathered(*halves).text == "🎉"
    assert gathered(halves[0]).text == "\ufffd"


# Usage and ends


def test_usage_comes_at_the_end_without_a_choice() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    response = gathered(delta(content="a"), delta("stop"), {"choices": [], "usage": usage})
    assert (response.input_tokens, response.output_tokens) == (7, 2)


def test_usage_that_grows_with_every_chunk_counts_once() -> None:
    chunks = [
        {**delta(content="a"), "usage": {"prompt_tokens": 7, "completion_tokens": count}}
        for count in (1, 2, 3)
    ]
    assert gathered(*chunks).output_tokens == 3


@every_row("usage", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": "7"}, []])
def test_usage_that_is_left_out_is_not_made_up(usage: Any) -> None:
    response = gathered({**delta(content="a"), "usage": usage})
    assert (response.input_tokens, response.output_tokens) == (0, 0)


@every_row("reason", ["length", "MAX_TOKENS", "model_length", "repetition_truncation"])
def test_an_answer_at_the_models_length_limit_says_so(reason: str) -> None:
    assert gathered(delta(content="a"), delta(reason)).cut_off


@every_row("reason", ["stop", "STOP", "eos", "end_turn", "tool_calls", "function_call"])
def test_any_other_end_is_one(reason: str) -> None:
    assert gathered(delta(content="a"), delta(reason)) == Response("a")


# Refusals and errors


def test_a_refusal_is_no_answer() -> None:
    with pytest.raises(Declined, match="I cannot help with that"):
        gathered(delta(refusal="I cannot "), delta(refusal="help with that."), delta("stop"))


@every_row("reason", ["content_filter", "sensitive", "SAFETY", "prohibited_content"])
def test_what_a_filter_stopped_is_no_answer(reason: str) -> None:
    with pytest.raises(Declined):
        gathered(delta(content="Well, "), delta(reason))


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "SECRET upstream text", "code": 502}},
        {"choices": [{"delta": {"content": ""}, "finish_reason": "error"}]},
        {"choices": [{"delta": None, "finish_reason": "insufficient_system_resource"}]},
        {"choices": [{"delta": {}, "finish_reason": "network_error"}]},
        {"choices": [{"message": {"content": "b"}, "finish_reason": "abort"}]},
        {"choices": [{"error": {"code": 429}, "delta": {}}]},
    ],
    ids=json.dumps,
)
def test_an_error_inside_an_answer_is_a_failure_without_its_text(error: Any) -> None:
    with pytest.raises(ModelFailed) as failed:
        gathered(delta(content="a"), error)
    assert str(failed.value) == failed.value.reason == "provider_error"


@every_row("odd", ["text", 7, None, []])
def test_what_is_no_object_is_no_completion(odd: Any) -> None:
    with pytest.raises(ModelFailed, match="no_completion"):
        gathered(odd)


# Tool calls


def test_a_call_comes_in_pieces_with_its_id_in_the_first() -> None:
    assert called(
        piece(0, "c1", name="add", arguments=""),
        piece(0, arguments='{"a": '),
        piece(0, arguments="1}"),
    ) == [("c1", "add", '{"a": 1}')]


def test_a_call_is_counted_from_its_second_piece_on() -> None:
    first = piece(None, "c1", name="add", arguments='{"a": ')
    assert called(first, piece(0, arguments="1}")) == [("c1", "add", '{"a": 1}')]


def test_two_calls_come_interleaved() -> None:
    assert called(
        piece(0, "c1", name="add", arguments=""),
        piece(1, "c2", name="get", arguments=""),
        piece(1, arguments='{"b"'),
        piece(0, arguments='{"a"'),
        piece(1, arguments=": 2}"),
        piece(0, arguments=": 1}"),
    ) == [("c1", "add", '{"a": 1}'), ("c2", "get", '{"b": 2}')]


@pytest.mark.parametrize(
    "names",
    [
        ["add_note", "add_note", "add_note"],
        ["add", "_", "note"],
        ["add", "add_note", "add_note"],
        ["add_note", "", None],
    ],
    ids=str,
)
def test_a_name_comes_again_in_pieces_or_growing(names: list[str | None]) -> None:
    pieces = [piece(0, "c1", name=name, arguments="") for name in names]
    assert called(*pieces, piece(0, "c1", name="add_note", arguments="{}")) == [
        ("c1", "add_note", "{}")
    ]


def test_without_an_index_the_id_tells_calls_apart() -> None:
    assert called(
        piece(id="c1", name="add", arguments='{"a"'),
        piece(id="c2", name="get", arguments='{"b"'),
        piece(id="c1", arguments=": 1}"),
        piece(id="c2", arguments=": 2}"),
    ) == [("c1", "add", '{"a": 1}'), ("c2", "get", '{"b": 2}')]


def test_without_index_and_id_a_piece_goes_on_with_the_last_call() -> None:
    calls = called(
        piece(name="add", arguments='{"a"'),
        piece(arguments=": 1}"),
        piece(name="get", arguments="{}"),
    )
    assert [call[1:] for call in calls] == [("add", '{"a": 1}'), ("get", "{}")]


def test_the_same_index_for_calls_of_different_ids_means_different_calls() -> None:
    assert called(
        piece(0, "c1", name="add", arguments="{}"), piece(0, "c2", name="add", arguments="{}")
    ) == [("c1", "add", "{}"), ("c2", "add", "{}")]


def test_an_id_that_changes_with_every_piece_does_not_divide_a_call() -> None:
    assert called(
        piece(0, "c1", name="add", arguments='{"a"'), piece(0, "c9", arguments=": 1}")
    ) == [("c1", "add", '{"a": 1}')]


def test_calls_of_one_message_stand_apart_without_index_and_id() -> None:
    calls = [{"function": {"name": "now"}}, {"function": {"name": "list", "arguments": {"a": 1}}}]
    for sent in ({"choices": [{"message": {"tool_calls": calls}}]}, delta(tool_calls=calls)):
        now, listed = gathered(sent).calls
        assert (now.name, now.arguments) == ("now", "")
        assert (listed.name, listed.arguments) == ("list", '{"a":1}')


def test_calls_with_the_same_id_get_different_ones() -> None:
    calls = [{"id": "c", "function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    response = gathered({"choices": [{"message": {"tool_calls": calls}}]})
    first, second = (call.id for call in response.calls)
    assert first == "c" != second


@every_row("odd", [None, "x", {"function": None}, {"function": "x"}, {}])
def test_a_call_without_anything_in_it_is_one_that_cannot_be_made(odd: Any) -> None:
    response = gathered(delta(tool_calls=[odd]))
    assert [(call.name, call.arguments) for call in response.calls] in ([], [("", "")])


# Streams that repeat or replace

PIECE = "chat.completion.chunk"
ARGS = '{"text": "call the bank", "at": "2026-11-28T09:00"}'
SAID = "The city is Turku."
CALLED = {"id": "c1", "type": "function", "function": {"name": "set", "arguments": ARGS}}


def completion(finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A whole completion, as some endpoints send it at the end of a stream."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"object": "chat.completion", "choices": [choice]}


def with_delta(sent: dict[str, Any]) -> dict[str, Any]:
    """Some send an empty delta beside the message."""
    [choice] = sent["choices"]
    return {**sent, "choices": [{**choice, "delta": {"role": "assistant", "content": ""}}]}


@every_row(
    "stream",
    [
        [delta(content="The city "), delta(content="is Turku."), completion(content=SAID)],
        [delta(content=SAID), delta("stop"), completion(content=SAID)],
        [delta(content="The city "), with_delta(completion(content=SAID))],
        [delta(content="The city "), {**delta("stop", content="is Turku."), "object": PIECE}],
        [{**delta(content=one), "object": PIECE} for one in ("The city ", "is Turku.")],
        [delta(content="The town"), completion(content=SAID)],
        [delta(content="The city "), delta(content="is Turku."), delta("stop", content=SAID)],
        [*(delta(content=one) for one in ("The city ", "is Turku.", SAID)), delta("stop")],
        [delta(content=SAID), delta("stop"), delta(content=SAID)],
        [*(delta(content=one) for one in ("The city ", "is Turku.")), delta("stop")] * 2,
        [delta("null", content=one) for one in ("The ", "city ", "is Turku.")],
        [delta(content=SAID[:end]) for end in (3, 8, 12, 18, 18)],
        [completion(content=SAID), delta("stop")],
        [delta(content=SAID), completion(content=None)],
    ],
)  # fmt: skip
def test_a_text_that_comes_again_or_grows_is_said_once(stream: list[Any]) -> None:
    assert gathered(*stream).text == SAID


@every_row(
    "pieces", [["no ", "no "], ["1", "1", "1"], ["ha", "haha"], ["Turku ", "Turku"], ["a", "", "b"]]
)
def test_short_pieces_that_are_alike_are_not_repetitions(pieces: list[str]) -> None:
    assert gathered(*(delta(content=one) for one in pieces)).text == "".join(pieces)


def test_thoughts_that_come_again_are_thought_once() -> None:
    thought = {"reasoning_content": "The user wants a city."}
    assert gathered(delta(**thought), completion(content=SAID, **thought)).thoughts == thought


@every_row(
    "pieces",
    [
        ["{}", ARGS],
        ["null", ARGS],
        ['""', " {}", ARGS],
        [ARGS, ARGS],
        [ARGS, "{}"],
        [ARGS[:20], ARGS[20:], ARGS],
        [ARGS[:20], ARGS],
        ["{}", ARGS[:20], ARGS[20:]],
        [ARGS[:9], ARGS[:20], ARGS],
        ["undefined", ARGS[:20], ARGS[20:]],
        ["{", ARGS],
        ['{"text": "call the bank"}', ARGS],
        ["{}{}" + ARGS],
        [{}, json.loads(ARGS)],
        [json.loads(ARGS), ARGS],
        ["[]", ARGS],
        ["None", ARGS],
        ["[object Object]", ARGS],
        ['{"text": "", "at": null}', ARGS],
        [ARGS, '{"text": "", "at": ""}'],
    ],
)
@every_row("index", [0, None])
def test_arguments_with_placeholders_or_repetitions_are_read(
    pieces: list[Any], index: int | None
) -> None:
    first, *rest = pieces
    [call] = called(
        piece(index, "c1", name="set", arguments=first),
        *(piece(index, arguments=one) for one in rest),
    )
    assert (call[0], call[1], json.loads(call[2])) == ("c1", "set", json.loads(ARGS))


def test_different_arguments_in_one_call_stay_for_the_model_to_mend() -> None:
    [(_, _, arguments)] = called(piece(0, "c1", name="set", arguments='{"a": 1}{"a": 2}'))
    assert arguments == '{"a": 1}{"a": 2}'


@every_row(
    "stream",
    [
        [delta(tool_calls=[{"index": 0, **CALLED}]), completion("tool_calls", tool_calls=[CALLED])],
        [delta(tool_calls=[{"index": 0, **CALLED}])] * 2,
        [delta(tool_calls=[CALLED])] * 2,
        [delta(tool_calls=[{"function": CALLED["function"]}])] * 2,
        [completion("tool_calls", tool_calls=[CALLED, CALLED])],
    ],
)
def test_a_call_that_comes_again_is_made_once(stream: list[Any]) -> None:
    [call] = gathered(*stream).calls
    assert (call.name, json.loads(call.arguments)) == ("set", json.loads(ARGS))


# What belongs to a call and is sent back with it

SIGNED = {"google": {"thought_signature": "c2ln"}}


@pytest.mark.parametrize(
    ("own", "extra"),
    [
        ({"extra_content": SIGNED}, {"extra_content": SIGNED}),
        ({"thought_signature": "c2ln"}, {"thought_signature": "c2ln"}),
        ({"function": {"signature": "c2ln"}}, {"function": {"signature": "c2ln"}}),
        ({"custom": None, "function": {"output": ""}}, {}),
    ],
    ids=str,
)
def test_fields_of_a_call_are_kept_wherever_its_pieces_carry_them(own: Any, extra: Any) -> None:
    function = own.pop("function", {})
    first = piece(0, "c1", name="set", arguments="")
    last = {**piece(0, arguments="{}", **function), **own}
    whole = {**piece(0, "c1", name="set", arguments="{}", **function), **own}
    for stream in (
        [delta(tool_calls=[first]), delta(tool_calls=[last])],
        [delta(tool_calls=[whole]), delta(tool_calls=[piece(0, arguments="{}")])],
        [completion("tool_calls", tool_calls=[whole])],
    ):
        response = gathered(*stream)
        assert [call.extra for call in response.calls] == [extra]
        [sent] = response_message(response)["tool_calls"]
        told = {"name": "set", "arguments": "{}", **extra.get("function", {})}
        assert sent == {**extra, "id": "c1", "type": "function", "function": told}


def test_fields_of_a_message_go_back_with_its_calls_and_no_others_do() -> None:
    blocks = [{"type": "thinking", "signature": "c2ln"}]
    response = gathered(
        delta(reasoning_details=blocks, annotations=[{"type": "url"}], role="assistant"),
        delta(reasoning_details=[{"type": "more"}], extra_content=SIGNED),
        delta(tool_calls=[CALLED], audio={"id": "a"}),
    )
    assert response.thoughts == {
        "reasoning_details": [*blocks, {"type": "more"}],
        "extra_content": SIGNED,
    }


def mistral_thought(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], **fields}


THOUGHT = "The day is asked for; the reminder tool takes it."


@pytest.mark.parametrize(
    "stream",
    [
        [
            delta(content=[mistral_thought(THOUGHT[:24])]),
            delta(content=[mistral_thought(THOUGHT[24:])]),
            delta(content="On it."),
            delta(content="", tool_calls=[CALLED]),
        ],
        [
            delta(content=[mistral_thought(THOUGHT), {"type": "text", "text": "On it."}]),
            delta(tool_calls=[CALLED]),
        ],
        [
            delta(content=[mistral_thought(THOUGHT)]),
            {
                "choices": [
                    {
                        "finish_reason": "tool_calls",
                        "message": {
                            "content": [
                                mistral_thought(THOUGHT),
                                {"type": "text", "text": "On it."},
                            ],
                            "tool_calls": [CALLED],
                        },
                    }
                ]
            },
        ],
    ],
    ids=["in pieces", "whole", "repeated"],
)
def test_thoughts_in_parts_of_the_content_go_back_before_its_text(
    stream: list[dict[str, Any]],
) -> None:
    response = gathered(*stream)
    assert response.text == "On it."
    message = response_message(response)
    assert message["content"] == [mistral_thought(THOUGHT), {"type": "text", "text": "On it."}]
    assert message["tool_calls"]


def test_a_thought_that_was_closed_is_not_gone_on_with() -> None:
    closed = mistral_thought(THOUGHT, closed=True)
    response = gathered(
        delta(content=[closed]),
        delta(content=[mistral_thought("Now the call.")]),
        delta(tool_calls=[CALLED]),
    )
    assert response_message(response)["content"] == [closed, mistral_thought("Now the call.")]


def thought(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


@every_row(
    ("field", "pieces", "sent_back"),
    [
        (
            "thinking_blocks",
            [
                [thought("thinking", thinking="ha")],
                [thought("thinking", thinking="ha")],
                [thought("thinking", thinking="", signature="s1")],
                [thought("thinking", thinking="So", signature="s2")],
            ],
            [
                thought("thinking", thinking="haha", signature="s1"),
                thought("thinking", thinking="So", signature="s2"),
            ],
        ),
        (
            "reasoning_details",
            [
                [thought("reasoning.text", text="I ", index=0)],
                [thought("reasoning.text", text="will.", index=0)],
                [thought("reasoning.text", signature="s", index=0)],
                [thought("reasoning.encrypted", data="e", id="rs_1", index=1)],
            ],
            [
                thought("reasoning.text", text="I will.", signature="s", index=0),
                thought("reasoning.encrypted", data="e", id="rs_1", index=1),
            ],
        ),
        (
            "thinking_blocks",
            [[thought("redacted_thinking", data="a")], [thought("redacted_thinking", data="b")]],
            [thought("redacted_thinking", data="a"), thought("redacted_thinking", data="b")],
        ),
        (
            "provider_specific_fields",
            [{"thought_signatures": ["s"]}, {"citations": [1], "thought_signatures": None}],
            {"thought_signatures": ["s"], "citations": [1]},
        ),
        ("encrypted_content", ["e"], "e"),
    ],
)
def test_a_thought_that_comes_in_pieces_goes_back_whole(
    field: str, pieces: list[Any], sent_back: Any
) -> None:
    stream = [delta(**{field: one}) for one in pieces]
    assert gathered(*stream, delta(tool_calls=[CALLED])).thoughts == {field: sent_back}


@every_row("id", ["c1", "c2", None])
def test_a_repetition_of_calls_takes_no_signature_away(id: str | None) -> None:
    signed = {**piece(0, "c1", name="set", arguments="{}"), "extra_content": SIGNED}
    again = completion("tool_calls", tool_calls=[piece(None, id, name="set", arguments="{}")])
    empty = {**piece(0), "extra_content": {"google": {"thought_signature": ""}}}
    response = gathered(delta(tool_calls=[signed]), delta(tool_calls=[empty]), again)
    assert [call.extra for call in response.calls] == [{"extra_content": SIGNED}]


@every_row("beside", [True, False])
@every_row("second", ['{"title": "Tea"}', "{}"])
def test_calls_that_all_have_the_index_0_and_no_id_are_not_one(beside: bool, second: str) -> None:
    first = {**piece(0, name="look", arguments='{"day": 3}'), "extra_content": SIGNED}
    calls = [first, piece(0, name="set", arguments=second)]
    stream = [delta(tool_calls=calls)] if beside else [delta(tool_calls=[one]) for one in calls]
    response = gathered(*stream)
    assert [(call.name, call.arguments) for call in response.calls] == [
        ("look", '{"day": 3}'),
        ("set", second),
    ]
    assert [bool(call.extra) for call in response.calls] == [True, False]


def test_a_call_without_an_id_gets_one_that_every_endpoint_takes() -> None:
    calls = [{"function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    ids = [
        call.id
        for _ in range(2)
        for call in gathered({"choices": [{"message": {"tool_calls": calls}}]}).calls
    ]
    assert all(re.fullmatch("[A-Za-z0-9]{9}", id) for id in ids)
    assert len(set(ids)) == 4


_ARGUMENTS = st.dictionaries(st.text(max_size=5), st.text(max_size=10), max_size=3)


@given(st.lists(st.tuples(st.from_regex(r"[a-z]{3,8}", fullmatch=True), _ARGUMENTS), max_size=3),
       st.randoms(use_true_random=False))  # fmt: skip
def test_calls_are_the_same_however_they_are_divided(calls, dice) -> None:
    streams = []
    for index, (name, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        at = dice.randrange(len(text) + 1)
        first = piece(index, f"c{index}", name=name, arguments=text[:at])
        streams.append([first, piece(index, arguments=text[at:])])
    pieces = [stream.pop(0) for stream in streams]  # all begin in their order
    while any(streams):
        pieces.append(dice.choice([stream for stream in streams if stream]).pop(0))

    found = called(*pieces)

    assert [(name, json.loads(text)) for _, name, text in found] == calls


@every_row("sizes", [[MOST_TEXT + 1], [1000] * 200])
def test_an_answer_without_end_is_cut_and_says_so(sizes: list[int]) -> None:
    assembly, read = ResponseAssembly(), 0
    for number, size in enumerate(sizes):
        piece = {"content": f"{number} " + "[" * size}
        assembly.add({"object": "chat.completion.chunk", "choices": [{"delta": piece}]})
        read += 1
        if assembly.complete:
            break
    response = assembly.response()
    assert len(response.text) == MOST_TEXT
    assert response.cut_off
    assert read * sizes[0] < MOST_TEXT + 3 * sizes[0]
