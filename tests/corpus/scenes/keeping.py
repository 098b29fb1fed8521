"""Notes and “that note”, working memory, recall, reminders."""

from tests.corpus.scene import Scene, call

PROFILE = "model"


def notes(s: Scene) -> None:
    create = call(
        "create_note",
        title=s.t("groceries", "购物"),
        body=s.t("milk", "牛奶"),
        tags=[s.t("home", "家"), s.t("urgent", "紧急")],
    )
    root = s.ask(
        "Ann",
        s.t("create a note: groceries", "建一条笔记：购物"),
        model=[create, s.t("Saved.", "好了。")],
    )
    note = s.newest("agent_notes")
    s.ask(
        "Ann",
        s.t("remove the tag urgent from that note", "把那条笔记的紧急标签去掉"),
        under=root,
        model=[call("update_note", note_id=note, remove_tags=[s.t("urgent", "紧急")]), "OK."],
    )
    s.ask(
        "Ann",
        s.t("what is in the first note?", "第一条笔记里有什么？"),
        under=root,
        model=[call("get_note", note_id=note), s.t("Milk.", "牛奶。")],
    )
    s.ask(
        "Ann",
        s.t("another note: call the bank", "再建一条笔记：给银行打电话"),
        under=root,
        model=[
            call("create_note", title=s.t("bank", "银行"), body=s.t("call", "打电话"), tags=[]),
            "OK.",
        ],
    )
    s.ask(
        "Ann", s.t("list my notes", "列出我的笔记"), under=root, model=[call("list_notes"), "Two."]
    )
    s.ask(
        "Ann",
        s.t("search my notes for milk", "在笔记里搜索牛奶"),
        under=root,
        model=[call("search_notes", query=s.t("milk", "牛奶")), "One."],
    )
    s.ask(
        "Ann",
        s.t("share that note with the group", "把那条笔记分享给群里"),
        under=root,
        model=[call("share_note", note_id=note), s.t("Shared.", "已分享。")],
    )
    s.ask(
        "Bob",
        s.t("what note is there?", "有什么笔记？"),
        under=root,
        model=[call("search_notes", query=s.t("milk", "牛奶")), "One."],
    )
    s.ask(
        "Bob",
        s.t("delete that note", "删除那条笔记"),
        under=root,
        model=[call("delete_note", note_id=note), s.t("I cannot.", "我不能。")],
    )
    s.ask("Ann", "/notes" if s.language == "en" else "/笔记")
    s.ask(
        "Ann",
        s.t("delete the groceries note", "删除购物笔记"),
        under=root,
        model=[call("delete_note", note_id=note), s.t("Deleted.", "已删除。")],
    )
    s.ask(
        "Ann",
        s.t("what is in that note now?", "那条笔记现在怎么样？"),
        under=root,
        model=[call("get_note", note_id=note), s.t("It is gone.", "没有了。")],
    )
    s.ask(
        "Ann",
        s.t("a note without a title", "一条没有标题的笔记"),
        model=[call("create_note", title="", body="x", tags=[]), s.t("Sorry.", "抱歉。")],
    )


def memory(s: Scene) -> None:
    remember = call(
        "update_working_memory", scope="person", patch={"name": "Annie", "drink": s.t("tea", "茶")}
    )
    s.ask(
        "Ann",
        s.t("call me Annie, I drink tea", "叫我 Annie，我喝茶"),
        chat="p2p",
        model=[remember, s.t("Gladly.", "好的。")],
    )
    s.ask(
        "Ann",
        s.t("what do I drink?", "我喝什么？"),
        chat="p2p",
        model=[call("read_working_memory"), s.t("Tea.", "茶。")],
    )
    s.ask("Ann", s.t("what do I drink?", "我喝什么？"))
    s.ask(
        "Ann",
        s.t("no, I drink coffee now", "不，我现在喝咖啡"),
        chat="p2p",
        model=[
            call("update_working_memory", scope="person", patch={"drink": s.t("coffee", "咖啡")}),
            "OK.",
        ],
    )
    s.ask(
        "Ann",
        s.t("forget my name", "忘记我的名字"),
        chat="p2p",
        model=[call("forget_fact", key="name"), s.t("Forgotten.", "忘了。")],
    )
    s.ask("Ann", "/memory" if s.language == "en" else "/记忆", chat="p2p")
    s.press("Ann", s.t("Delete", "删除"))
    group = call(
        "update_working_memory", scope="thread", patch={"our_launch": s.t("gate 7", "7号门")}
    )
    root = s.ask(
        "Bob",
        s.t("remember that our launch is at gate 7", "记住我们的发布在7号门"),
        model=[group, "OK."],
    )
    s.ask("陈晨", s.t("where is our launch?", "我们的发布在哪里？"))
    moved = call(
        "update_working_memory", scope="thread", patch={"our_launch": s.t("gate 9", "9号门")}
    )
    s.ask("Bob", s.t("no, it is at gate 9", "不，在9号门"), under=root, model=[moved, "OK."])
    s.ask("Ann", s.t("where is our launch?", "我们的发布在哪里？"), under=root)
    s.ask("Ann", "/memory" if s.language == "en" else "/记忆")
    s.ask(
        "Ann",
        s.t("break it", "弄坏它"),
        model=[
            call("update_working_memory", scope="galaxy", patch={}),
            call("no_such_tool"),
            "Hm.",
        ],
    )


def recall(s: Scene) -> None:
    s.ask("Ann", s.t("the kiosk costs 400 crowns", "售货亭花费400克朗"), model="OK.")
    s.ask("Bob", s.t("the kiosk is blue", "售货亭是蓝色的"), model="OK.")
    s.ask("Ann", s.t("the cellar has a leak", "地窖漏水"), chat="p2p", model="OK.")
    query = s.t("kiosk", "售货亭")
    s.ask(
        "陈晨",
        s.t("what did we say about the kiosk?", "关于售货亭我们说过什么？"),
        model=[call("recall", query=query, scope="chat"), s.t("400 crowns.", "400克朗。")],
    )
    s.ask(
        "Ann",
        s.t("what do you know of the kiosk?", "关于售货亭你知道什么？"),
        chat="p2p",
        model=[call("recall", query=query, scope="everywhere"), s.t("Blue.", "蓝色。")],
    )
    s.ask(
        "Bob",
        s.t("what about the cellar?", "地窖怎么了？"),
        model=[call("recall", query=s.t("cellar", "地窖"), scope="everywhere"), s.t("?", "？")],
    )
    s.ask("Ann", s.t("who said that the kiosk is blue?", "谁说售货亭是蓝色的？"))


def reminders(s: Scene) -> None:
    s.ask(
        "Ann",
        s.t("remind us tomorrow at nine to water the zinnia", "明天九点提醒我们给百日草浇水"),
        model=[
            call(
                "set_reminder",
                text=s.t("water the zinnia", "给百日草浇水"),
                at=f"{s.day(1)}T09:00",
                for_whom=["us"],
            ),
            s.t("I will.", "好的。"),
        ],
    )
    s.ask(
        "Bob",
        s.t("remind Ann every day at 18:00 to log off", "每天18:00提醒 Ann 下班"),
        model=[
            call(
                "set_reminder",
                text=s.t("log off", "下班"),
                at=f"{s.day(0)}T18:00",
                repeats="daily",
                for_whom=["Ann"],
            ),
            s.t("I will.", "好的。"),
        ],
    )
    timer = s.newest("agent_timers")
    s.ask("Bob", s.t("list the reminders", "列出提醒"), model=[call("list_reminders"), "Two."])
    s.ask(
        "Ann",
        s.t("move the reminder to 19:00", "把提醒改到19:00"),
        model=[call("change_reminder", reminder_id=timer, at=f"{s.day(0)}T19:00"), "OK."],
    )
    s.come_due()
    s.ask("陈晨", "/reminders" if s.language == "en" else "/提醒")
    s.press("Bob", s.t("Cancel", "取消"))
    s.ask(
        "Ann",
        s.t("cancel the reminder", "取消提醒"),
        model=[call("cancel_reminder", reminder_id=timer), "OK."],
    )
    s.ask(
        "Ann",
        s.t("remind me yesterday", "昨天提醒我"),
        model=[
            call("set_reminder", text="x", at=f"{s.day(-1)}T09:00"),
            s.t("Too late.", "太晚了。"),
        ],
    )


def reminders_alone(s: Scene) -> None:
    s.ask(
        "Ann",
        s.t("remind me tomorrow to sing", "明天提醒我唱歌"),
        chat="p2p",
        model=[call("set_reminder", text=s.t("sing", "唱歌"), at=f"{s.day(1)}T15:00"), "OK."],
    )
    s.come_due()


SCENES = {
    "notes": notes,
    "memory": memory,
    "recall": recall,
    "reminders": reminders,
    "reminders_alone": reminders_alone,
}
