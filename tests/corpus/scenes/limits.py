"""Limits, and a bot that keeps people apart, answers without threads and streams."""

from tests.corpus.scene import Scene, call

PROFILE = "strict"


def rate(s: Scene) -> None:
    for number in range(1, 6):
        s.ask("Ann", s.t(f"question {number}", f"问题{number}"), model=f"Answer {number}.")
    s.ask("Bob", s.t("and me?", "我呢？"), model=s.t("Fine.", "好。"))
    s.ask("Ann", s.t("/help", "/帮助"))


def usage(s: Scene) -> None:
    s.ask("Ann", s.t("tell me something long ", "讲点长的") * 60, model="word " * 300)
    s.ask("Ann", s.t("and now?", "现在呢？"))
    s.ask("Ann", s.t("/notes", "/笔记"))
    s.ask("Bob", s.t("and me?", "我呢？"), model=s.t("Fine.", "好。"))


def apart(s: Scene) -> None:
    s.ask("Ann", s.t("the pier is closed", "栈桥关闭了"), model="OK.")
    s.say("Bob", s.t("the pier is open", "栈桥开放"))
    s.ask("Bob", s.t("what did Ann say?", "Ann 说了什么？"))
    s.ask("Ann", s.t("what did I say?", "我说了什么？"))
    s.ask("Bob", s.t("@Ann what did she say?", "@Ann 她说了什么？"))
    s.say("Ann", s.t("and what about the boat?", "那船呢？"))
    s.ask("陈晨", s.t("/settings", "/设置"))


def streamed(s: Scene) -> None:
    s.ask(
        "Ann",
        s.t("write a poem", "写一首诗"),
        model={
            "text": s.t("The sea, the sea, the open sea. " * 8, "大海，大海，开阔的大海。" * 8),
            "chunk_delay_s": 0.02,
        },
    )
    s.ask(
        "Bob",
        s.t("create a note: poem", "建一条笔记：诗"),
        model=[
            call("create_note", title=s.t("poem", "诗"), body="x", tags=[]),
            s.t("Saved.", "好了。"),
        ],
    )
    s.ask(
        "陈晨",
        s.t("think first", "先想一想"),
        model={"text": s.t("Done.", "好了。"), "reasoning": "hmm " * 20},
    )


SCENES = {"rate": rate, "usage": usage, "apart": apart, "streamed": streamed}
