"""Failures and refusals of the model, faults of the platform."""

from tests.corpus.scene import Scene, call

PROFILE = "second"


def _choice(finish_reason: str, **message: str) -> dict[str, object]:
    choice = {"message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return {"body": {"choices": [choice]}}


def refusals(s: Scene) -> None:
    asked = s.t("what do you think?", "你怎么看？")
    s.ask("Ann", asked, model={"body": {"choices": []}})
    s.ask("Ann", asked, model=_choice("stop", content=" "))
    s.ask("Ann", asked, model=_choice("stop", refusal="Not that."))
    s.ask("Ann", asked, model=_choice("content_filter", content="Well, "))
    for code in ("content_filter", "context_length_exceeded"):
        body = {"error": {"code": code, "message": "secret"}}
        s.ask("Ann", asked, model={"reply": {"status": 400, "body": body}})
    root = s.ask("Ann", s.t("and now?", "现在呢？"), model=s.t("Fine.", "好。"))
    s.ask("Ann", s.t("what did I ask?", "我问了什么？"), under=root)
    s.ask("Ann", s.t("cut short", "截断"), model=_choice("length", content="Half of"))


def failures(s: Scene) -> None:
    asked = s.t("are you there?", "你在吗？")
    s.ask("Ann", asked, model=[{"status": 500, "body": "x"}, s.t("Yes.", "在。")])
    s.ask("Ann", asked, model={"reply": {"status": 500, "body": "x"}})
    s.ask("Ann", asked, model={"reply": {"status": 401, "body": {"error": {"message": "x"}}}})
    s.ask("Bob", asked, model=[{"fault": "malformed"}, s.t("Yes.", "在。")])
    s.ask("Bob", s.t("loop", "循环"), model={"reply": call("list_notes"), "after_tool": None})


def platform(s: Scene) -> None:
    s.fault("/open-apis/im/v1/messages", method="POST", status=500, times=1)
    s.ask("Ann", s.t("is the pier open?", "栈桥开放吗？"), model=s.t("Yes.", "是。"))
    s.fault("/open-apis/im/v1/messages", method="POST", code=230002, times=0)
    s.ask("Ann", s.t("and now?", "现在呢？"), model=s.t("Yes.", "是。"))
    s.platform.forget_faults()
    s.ask("Ann", s.t("and at last?", "最后呢？"), model=s.t("Yes.", "是。"))


SCENES = {"refusals": refusals, "failures": failures, "platform": platform}
