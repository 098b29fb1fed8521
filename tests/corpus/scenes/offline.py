"""Without a model: the rule-based answers, in whole conversations; unasked answers."""

from tests.corpus.scene import Scene

PROFILE = "offline"


def facts(s: Scene) -> None:
    root = s.ask("Ann", s.t("my name is Annie", "我叫小安"))
    s.ask("Ann", s.t("what is my name?", "我叫什么？"), under=root)
    s.ask("Ann", s.t("remember that our launch is at gate 7", "记住我们的发布在7号门"), under=root)
    s.ask("Bob", s.t("where is our launch?", "我们的发布在哪里？"))
    s.ask("Ann", s.t("no, our launch is at gate 9", "不，我们的发布在9号门"), under=root)
    s.ask("陈晨", s.t("where is our launch?", "我们的发布在哪里？"), under=root)
    s.ask("Ann", s.t("forget our launch", "忘记我们的发布"), under=root)
    s.ask("Ann", s.t("where is our launch?", "我们的发布在哪里？"), under=root)
    s.ask("Ann", s.t("I like green tea", "我喜欢绿茶"), chat="p2p")
    s.ask("Ann", s.t("what do I like?", "我喜欢什么？"), chat="p2p")
    s.ask("Ann", s.t("what can you do?", "你能做什么？"))
    s.ask("Bob", s.t("what is the meaning of life?", "人生的意义是什么？"))


def notes(s: Scene) -> None:
    root = s.ask(
        "Ann",
        s.t(
            "create a note: pasta, tags dinner and italian",
            "建一条笔记，标题是意面，标签是意大利菜、晚餐",
        ),
    )
    s.ask(
        "Ann", s.t("remove the tag dinner from that note", "把那条笔记的晚餐标签去掉"), under=root
    )
    s.ask(
        "Ann",
        s.t("create a note: groceries, milk and eggs", "记一条笔记：买牛奶和鸡蛋"),
        under=root,
    )
    s.ask("Ann", s.t("add the tag home to the first note", "给第一条笔记加上标签家"), under=root)
    s.ask("Ann", s.t("list my notes", "列出我的笔记"), under=root)
    s.ask("Ann", s.t("search notes for milk", "搜索笔记 牛奶"), under=root)
    s.ask("Ann", s.t("delete the second note", "删除第二条笔记"), under=root)
    s.ask("Bob", s.t("list my notes", "列出我的笔记"), under=root)


def reminders(s: Scene) -> None:
    s.ask("Ann", s.t("remind us tomorrow at 3 pm to water the zinnia", "明天下午三点提醒我们浇花"))
    s.ask("Bob", s.t("every day at 18:00 remind me to log off", "每天18:00提醒我下班"))
    s.ask("Ann", s.t("list our reminders", "有哪些提醒？"))
    s.come_due()
    s.ask("Bob", s.t("cancel the reminder to log off", "取消下班的提醒"))
    s.ask("Bob", s.t("/reminders", "/提醒"))


def unasked(s: Scene) -> None:
    s.ask("Ann", s.t("remember that the quince launch is at gate 7", "记住榅桲发布在7号门"))
    s.ask("Ann", s.t("/proactive on", "/主动 开"))
    s.say("Bob", s.t("Where is the quince launch?", "榅桲发布在哪里？"))
    s.come_due()
    s.ask("Bob", s.t("/why", "/为什么"))
    s.press("Ann", s.t("Turn this off", "关闭主动回答"))
    s.say("Bob", s.t("Where is the quince launch again?", "榅桲发布到底在哪里？"))


def digests(s: Scene) -> None:
    s.ask("陈晨", s.t("/digest", "/摘要 今天"))
    s.ask("Ann", s.t("remember that the medlar budget is 400 euros", "记住枇杷预算是400欧元"))
    s.say("Bob", s.t("the pier is closed", "栈桥关闭了"))
    s.ask("陈晨", s.t("/digest", "/摘要"))
    s.ask("Ann", s.t("/digest weekdays 18:00", "/摘要 工作日 18:00"))
    s.come_due()
    s.ask("Ann", s.t("/digest off", "/摘要 关"))


def private(s: Scene) -> None:
    s.calm_s = 0.3
    s.ask(
        "Ann",
        s.t("The wifi password of the Berlin office is hunter2", "柏林办公室的wifi密码是 hunter2"),
        chat="p2p",
    )
    s.ask(
        "Ann",
        s.t("What is the wifi password of the Berlin office?", "柏林办公室的wifi密码是什么？"),
    )
    s.press("Ann", s.t("Show me", "查看"))
    s.ask(
        "Bob",
        s.t("What is the wifi password of the Berlin office?", "柏林办公室的wifi密码是什么？"),
    )


SCENES = {
    "facts": facts,
    "notes": notes,
    "reminders": reminders,
    "unasked": unasked,
    "digests": digests,
    "private": private,
}
