"""The table of error codes, over every stored error answer."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.feishu.caller import RetryPolicy, retry_delay
from bot.feishu.errors import ACTIONS, NEXT_STEP, Action, FeishuError, Unreachable, classify
from tests.support.rows import every_row

DATA = Path(__file__).parents[3] / "data" / "feishu"

EXPECTED = {
    "error_230001": Action.REJECTED,
    "error_230002": Action.TERMINAL_CHAT,
    "error_230006": Action.TERMINAL_CHAT,
    "error_230011": Action.TERMINAL_MESSAGE,
    "error_230013": Action.TERMINAL_USER,
    "error_230018": Action.TERMINAL_CHAT,
    "error_230019": Action.WITHOUT_THREAD,
    "error_230020": Action.RETRY,
    "error_230022": Action.NEUTRAL_TEXT,
    "error_230025": Action.SPLIT,
    "error_230028": Action.NEUTRAL_TEXT,
    "error_230031_patch_after_14_days": Action.TERMINAL_MESSAGE,
    "error_230035": Action.TERMINAL_CHAT,
    "error_230049": Action.IN_FLIGHT,
    "error_230050": Action.TERMINAL_MESSAGE,
    "error_230071": Action.WITHOUT_THREAD,
    "error_230072": Action.WITHOUT_THREAD,
    "error_230099_11310_elements": Action.DEGRADE,
    "error_230099_11310_tables": Action.DEGRADE,
    "error_230099_200570_image_key": Action.DEGRADE,
    "error_231203_confidential_chat": Action.UNSUPPORTED,
    "error_232009": Action.TERMINAL_CHAT,
    "error_234043_resource_unsupported_message": Action.UNSUPPORTED,
    "error_99991400_rate_limited": Action.RETRY,
    "error_99991400_rate_limited_legacy_http400": Action.RETRY,
    "error_99991403_monthly_quota": Action.ALERT,
    "error_99991661_token_missing": Action.ALERT,
    "error_99991663_token_invalid": Action.REFRESH_TOKEN,
    "error_99991672_scope_missing": Action.ALERT,
    "error_cardkit_200740": Action.CARD_GONE,
    "error_cardkit_200750": Action.CARD_GONE,
    "error_cardkit_200770": Action.DUPLICATE,
    "error_cardkit_200810": Action.RETRY,
    "error_cardkit_200850": Action.CARD_CLOSED,
    "error_cardkit_200860": Action.SPLIT,
    "error_cardkit_300301": Action.DEGRADE,
    "error_cardkit_300305": Action.DEGRADE,
    "error_cardkit_300309": Action.CARD_CLOSED,
    "error_cardkit_300311": Action.CARD_GONE,
    "error_cardkit_300317": Action.OUT_OF_SEQUENCE,
}


def answer(name: str) -> tuple[int, dict[str, str], bytes]:
    stored: Any = json.loads((DATA / f"{name}.json").read_text())
    return stored["http_status"], stored["headers"], json.dumps(stored["body"]).encode()


def classified(name: str) -> FeishuError:
    failure = classify(*answer(name))
    assert isinstance(failure, FeishuError)
    return failure


def body(code: int, msg: str = "m") -> bytes:
    return json.dumps({"code": code, "msg": msg}).encode()


def test_every_stored_error_has_an_expected_action():
    assert set(EXPECTED) == {path.stem for path in DATA.glob("error_*.json")}


@every_row(("name", "action"), EXPECTED.items())
def test_an_error_answer_asks_for_its_action_and_says_the_next_step(name, action):
    error = classified(name)
    assert error.action is action
    assert NEXT_STEP[action] in str(error)


def test_every_action_has_a_next_step():
    assert set(NEXT_STEP) == set(Action)
    assert set(ACTIONS.values()) <= set(Action)


@every_row("name", [name for name in EXPECTED if "rate_limited" in name])
def test_a_rate_limit_says_how_long_to_wait(name):
    assert classified(name).retry_after_s == 52


def test_the_log_id_is_kept_from_the_header_or_the_body():
    assert classified("error_230011").log_id == "202409131613579778D691D6E05516DE2D"
    in_body = json.dumps({"code": 1, "msg": "", "error": {"log_id": "L1"}}).encode()
    failure = classify(400, {}, in_body)
    assert isinstance(failure, FeishuError)
    assert failure.log_id == "L1"


@every_row(
    ("name", "sub_code"),
    [("error_230099_11310_tables", 11310), ("error_230099_200570_image_key", 200570)],
)
def test_a_refused_card_says_why(name, sub_code):
    assert classified(name).sub_code == sub_code


def test_the_part_of_a_card_that_feishu_quotes_is_not_repeated():
    error = classified("error_230099_200570_image_key")
    assert "http://x/y.png" not in str(error) + error.msg


def test_missing_scopes_and_the_page_that_grants_them_are_named():
    assert classified("error_99991672_scope_missing").scopes == ("im:message",)
    url = "https://open.feishu.cn/app/cli_x/auth?q=im:message"
    failure = classify(400, {}, body(99991672, f"Access denied. Open {url} to grant."))
    assert isinstance(failure, FeishuError)
    assert failure.permission_url == url


def test_ten_thousand_and_two_means_two_things():
    wrong = classify(400, {}, body(10002, "Your request contains an invalid request parameter."))
    outside = classify(400, {}, body(10002, "bot not in chat"))
    assert isinstance(wrong, FeishuError)
    assert isinstance(outside, FeishuError)
    assert (wrong.action, outside.action) == (Action.REJECTED, Action.TERMINAL_CHAT)


def test_success_is_no_failure():
    assert classify(200, {}, b'{"code":0,"msg":"ok"}') is None


@every_row(
    ("status", "raw"),
    [
        (502, b"<html>Bad gateway</html>"),
        (429, b""),
        (200, b""),
        (200, b"[]"),
        (200, b'{"data":{}}'),
        (500, b'{"code":5000,"msg":"internal"}'),
        (500, b'{"code":0}'),
        (302, b""),
        (200, b"[" * 100_000),
    ],
)
def test_an_answer_without_a_usable_code_leaves_the_outcome_unknown(status, raw):
    assert isinstance(classify(status, {}, raw), Unreachable)


def test_an_unknown_code_is_rejected_but_an_unknown_rate_limit_is_retried():
    rejected, limited = classify(400, {}, body(123456)), classify(429, {}, body(123456))
    assert isinstance(rejected, FeishuError)
    assert isinstance(limited, FeishuError)
    assert (rejected.action, limited.action) == (Action.REJECTED, Action.RETRY)


@given(st.integers(100, 599), st.dictionaries(st.text(), st.text()), st.binary(max_size=60))
def test_any_answer_is_classified(status, headers, raw):
    classify(status, headers, raw)


def test_delays_double_up_to_their_cap_and_end_with_the_attempts():
    policy = RetryPolicy(max_attempts=4, max_total_s=100, base_s=1, cap_s=3)
    delays = [retry_delay(policy, Unreachable("x"), attempt, 0, 0) for attempt in range(1, 6)]
    assert delays == [1, 2, 3, None, None]


def test_the_total_time_is_capped():
    policy = RetryPolicy(max_total_s=10, base_s=4)
    assert retry_delay(policy, Unreachable("x"), 1, 5.9, 0) == 4
    assert retry_delay(policy, Unreachable("x"), 1, 6.1, 0) is None


def test_feishus_wait_is_waited_in_full_or_left_to_the_queue():
    limited = FeishuError(99991400, retry_after_s=8)
    assert retry_delay(RetryPolicy(base_s=1), limited, 1, 0, 0.5) == 8.5
    assert retry_delay(RetryPolicy(max_total_s=5), limited, 1, 0, 0) is None


@every_row("action", sorted(set(Action) - {Action.RETRY, Action.IN_FLIGHT}))
def test_no_other_action_is_retried(action):
    assert retry_delay(RetryPolicy(), FeishuError(1, action=action), 1, 0, 0) is None


@every_row(
    ("text", "scopes"),
    [
        ("Lack of necessary permissions, ext=need scope: im:message.group_msg",
         ("im:message.group_msg",)),
        ("Lack of necessary permissions, ext=requires im:message.send_as_user scope.",
         ("im:message.send_as_user",)),
        ("Access denied. One of the following scopes is required: [im:chat, im:chat:read]."
         "应用尚未开通所需的应用身份权限：[im:chat, im:chat:read]，点击链接："
         "https://open.feishu.cn/app/cli_1/auth?q=im:chat,im:chat:read&token_type=tenant",
         ("im:chat", "im:chat:read")),
        ("Lack of necessary permissions.", ()),
        ("Lack of necessary permissions, ext=log: 2025 at 10:30 code:11", ()),
    ],
)  # fmt: skip
def test_a_scope_that_only_the_text_names_is_found(text: str, scopes: tuple[str, ...]) -> None:
    for code in (230027, 99991672):
        failure = classify(400, {}, body(code, text))
        assert isinstance(failure, FeishuError)
        assert failure.scopes == scopes
    other = classify(400, {}, body(230001, text))
    assert isinstance(other, FeishuError)
    assert other.scopes == ()
