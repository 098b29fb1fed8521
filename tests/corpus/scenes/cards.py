"""Buttons, reactions, MCP tools that ask first, private answers."""

from tests.corpus.scene import Scene, call

PROFILE = "model"


def suggestions(s: Scene) -> None:
    when, where = s.t("When is it?", "什么时候？"), s.t("Where is it?", "在哪里？")
    suggest = call("suggest_follow_ups", questions=[when, where])
    root = s.ask(
        "Ann",
        s.t("tell me about the regatta", "讲讲帆船赛"),
        model=[suggest, s.t("It is big.", "很大。")],
    )
    s.press("Ann", when, model=[suggest, s.t("Soon.", "很快。")])
    s.press("Bob", where, model=s.t("At sea.", "在海上。"))
    s.ask("Ann", s.t("what did we ask?", "我们问了什么？"), under=root)


def handles(s: Scene) -> None:
    s.ask("Ann", s.t("is the pier open?", "栈桥开放吗？"), model=s.t("No.", "不。"))
    s.press("Ann", "👍")
    s.press("Bob", "👎")
    s.press("Ann", s.t("Again", "重新生成"), model=s.t("Yes.", "是。"))
    s.press("Ann", "👎")


def reactions(s: Scene) -> None:
    question = s.ask("Ann", s.t("is the pier open?", "栈桥开放吗？"), model=s.t("No.", "不。"))
    answer = s.answer()
    s.react("Ann", answer, "THUMBSUP")
    s.react("Bob", answer, "ThumbsDown")
    s.react("Ann", answer, "THUMBSUP")
    s.react("陈晨", question, "OK")
    said = s.say("Bob", s.t("the pier is closed on Mondays", "栈桥周一关闭"))
    s.react("Ann", said, "HEART")
    s.ask("Ann", s.t("is the pier open?", "栈桥开放吗？"))


def confirming(s: Scene) -> None:
    s.ask(
        "Ann",
        s.t("add 20 and 3 at the desk", "在前台把20和3相加"),
        model=[call("desk__add", a=20, b=3), "23"],
    )
    s.ask(
        "Ann",
        s.t("publish lilac", "发布 lilac"),
        model=[call("desk__publish", text="lilac"), s.t("Please confirm.", "请确认。")],
    )
    s.press("Bob", s.t("Confirm", "确认"))
    s.press("Ann", s.t("Confirm", "确认"), model=s.t("It is published.", "已发布。"))
    s.ask(
        "Ann",
        s.t("publish rose", "发布 rose"),
        model=[call("desk__publish", text="rose"), s.t("Please confirm.", "请确认。")],
    )
    s.press("Ann", s.t("Cancel", "取消"))
    s.ask(
        "Ann",
        s.t("ask the desk to refuse", "让前台拒绝"),
        model=[call("desk__refuse"), s.t("The desk is closed.", "前台关了。")],
    )
    s.ask(
        "Ann",
        s.t("add nonsense", "胡乱相加"),
        model=[call("desk__add", a="x"), s.t("It does not add up.", "加不起来。")],
    )


def private(s: Scene) -> None:
    """What was told in private is offered, shown and shared; the group's answer knows nothing."""
    s.calm_s = 0.3
    asked = s.t("What is the wifi password of the Berlin office?", "柏林办公室的wifi密码是什么？")
    s.ask(
        "Ann",
        s.t("The wifi password of the Berlin office is hunter2", "柏林办公室的wifi密码是 hunter2"),
        chat="p2p",
        model="OK.",
    )
    s.ask("Bob", asked, model=s.t("I don't know.", "我不知道。"))
    s.ask("Ann", asked, model=s.t("I don't know.", "我不知道。"))
    s.press("Ann", s.t("Show me", "查看"), model="hunter2")
    s.press("Ann", s.t("Share here", "分享到这里"))
    s.ask("陈晨", asked)


def private_notes(s: Scene) -> None:
    s.calm_s = 0.3
    note = call("create_note", title=s.t("Berlin wifi", "柏林wifi"), body="hunter2", tags=[])
    said = s.ask(
        "Ann",
        s.t("note the Berlin wifi: hunter2", "记一条笔记：柏林wifi hunter2"),
        chat="p2p",
        model=[note, "OK."],
    )
    s.ask("Ann", s.t("what is the Berlin wifi?", "柏林wifi是什么？"), model="?")
    s.press("Ann", s.t("Show me", "查看"), model="hunter2")
    s.recall("Ann", said)
    s.ask("Ann", s.t("what is the Berlin wifi?", "柏林wifi是什么？"), model="?")


SCENES = {
    "suggestions": suggestions,
    "handles": handles,
    "reactions": reactions,
    "confirming": confirming,
    "private": private,
    "private_notes": private_notes,
}
