"""What is said in place of an answer has a text in both languages for each reason."""

from __future__ import annotations

from bot.agents.llm.model import NEXT_STEPS
from bot.answering.texts import apology, failure_cause
from tests.support.rows import every_row


@every_row(
    ("reason", "english", "chinese"),
    [
        ("wrong_key", "rejects the API key", "密钥无效"),
        ("not_allowed", "isn't allowed to use this model", "没有使用这个模型的权限"),
        ("no_such_model", "configured model doesn't exist", "配置的模型不存在"),
        ("quota_used_up", "out of credit", "额度已用完"),
        ("no_completion", "doesn't respond like a chat model", "不是对话结果"),
        ("only_thoughts", "returns its answers as reasoning text", "思考内容"),
    ],
)
def test_what_only_an_operator_can_mend_is_called_that(
    reason: str, english: str, chinese: str
) -> None:
    said, told = apology(reason, "en"), apology(reason, "zh")
    assert failure_cause("apologised", reason, "en") in said
    assert english in said
    assert "An administrator has to fix this" in said
    assert chinese in told
    assert "请联系管理员处理" in told


def test_each_failure_that_an_operator_mends_is_called_that() -> None:
    assert all("administrator" in apology(reason, "en") for reason in NEXT_STEPS)


@every_row("reason", ["timeout", "rate_limited", "status_500", "connection"])
def test_what_passes_by_itself_may_be_asked_again(reason: str) -> None:
    assert "couldn't answer just now" in apology(reason, "en")
    assert "administrator" not in apology(reason, "en")
