"""Welcome, menu, guests and late joiners, leaving, the import of a group's past."""

from tests.corpus.scene import Scene, call

PROFILE = "second"


def welcome(s: Scene) -> None:
    s.group(s.t("Garden", "花园"))
    s.ask("Bob", s.t("remember the rake", "记住耙子"), chat=s.t("Garden", "花园"), model="OK.")
    s.enter("Ann")
    s.enter("Ann")
    s.menu("Ann", "help")
    s.menu("Bob", "memory")
    s.menu("Bob", "nonsense")
    s.leave("Memo", s.t("Garden", "花园"))
    s.join("Memo", s.t("Garden", "花园"))


def late(s: Scene) -> None:
    s.ask("Ann", s.t("the quince launch is at gate 7", "榅桲发布在7号门"), model="OK.")
    s.newcomer("Dora")
    s.join("Dora")
    asked = s.t("where is the quince launch?", "榅桲发布在哪里？")
    s.ask("Dora", asked)
    s.ask(
        "Dora",
        asked,
        chat="p2p",
        model=[call("recall", query=s.t("quince", "榅桲"), scope="everywhere"), "?"],
    )
    s.ask("Ann", s.t("/settings history hidden", "/设置 历史 隐藏"))
    s.ask("Ann", s.t("/settings", "/设置"))
    s.press("Ann", s.t("Save settings", "保存设置"), form={"history": "hidden"})
    s.leave("Dora")
    s.join("Dora")
    s.ask("Dora", asked)
    s.ask("Ann", asked)
    s.leave("Bob")
    s.ask(
        "Bob",
        asked,
        chat="p2p",
        model=[call("recall", query=s.t("quince", "榅桲"), scope="everywhere"), "?"],
    )


def guests(s: Scene) -> None:
    s.newcomer("Gus", tenant_key="guests0tenant")
    s.join("Gus")
    root = s.ask("Ann", s.t("our word is apricot", "我们的词是杏子"), model="OK.")
    s.ask(
        "Gus",
        s.t("my word is plum", "我的词是李子"),
        under=root,
        model=[call("update_working_memory", scope="person", patch={"word": "plum"}), "OK."],
    )
    s.ask("Gus", s.t("what is my word?", "我的词是什么？"), under=root)
    s.ask("Ann", s.t("what is his word?", "他的词是什么？"), under=root)
    s.ask("Gus", s.t("/memory", "/记忆"))
    s.newcomer("Robo", kind="bot")
    s.join("Robo")
    s.say("Robo", s.t("the build is green", "构建通过"))
    s.ask("Ann", s.t("what did the robot say?", "机器人说了什么？"))


def history(s: Scene) -> None:
    s.group("Old", with_bot=False)
    s.say("Ann", s.t("the quince launch is at gate 7", "榅桲发布在7号门"), chat="Old")
    said = s.say("Bob", s.t("the medlar budget is 400 crowns", "枇杷预算是400克朗"), chat="Old")
    s.say("陈晨", s.t("I bring the rope", "我带绳子"), chat="Old", under=said)
    s.join("Memo", "Old")
    s.ask("Bob", s.t("/import", "/导入"), chat="Old")
    s.ask("Ann", s.t("/import", "/导入"), chat="Old")
    s.press("Ann", s.t("Preview", "预览"), form={"span": "all"})
    s.press("Ann", s.t("Import", "导入"))
    s.ask(
        "陈晨",
        s.t("where is the quince launch?", "榅桲发布在哪里？"),
        chat="Old",
        model=[
            call("recall", query=s.t("quince", "榅桲"), scope="chat"),
            s.t("Gate 7.", "7号门。"),
        ],
    )
    s.ask("Ann", s.t("/import", "/导入"), chat="Old")
    s.press("Ann", s.t("Remove", "移除"))
    s.ask("陈晨", s.t("where is the quince launch?", "榅桲发布在哪里？"), chat="Old")


def between(s: Scene) -> None:
    """What is known in one group is not told in another."""
    s.group("Other", members=["Ann", "陈晨"])
    keep = call("update_working_memory", scope="person", patch={"desk": s.t("oak", "橡木")})
    s.ask("Ann", s.t("my desk is of oak", "我的桌子是橡木的"), chat="Other", model=[keep, "OK."])
    s.ask("Ann", s.t("what is my desk made of?", "我的桌子是什么做的？"))
    s.ask("Ann", s.t("what is my desk made of?", "我的桌子是什么做的？"), chat="p2p")
    s.ask("陈晨", s.t("what is Ann's desk made of?", "Ann 的桌子是什么做的？"), chat="Other")
    s.ask("Bob", s.t("@Ann what is her desk made of?", "@Ann 她的桌子是什么做的？"))


SCENES = {
    "welcome": welcome,
    "late": late,
    "guests": guests,
    "history": history,
    "between": between,
}
