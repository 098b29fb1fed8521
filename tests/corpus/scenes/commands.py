"""Commands of every kind, settings and rules, forgetting, digests."""

from tests.corpus.scene import Scene, call

PROFILE = "model"


def words(s: Scene) -> None:
    s.ask("Ann", s.t("/help", "/帮助"))
    s.ask("Ann", s.t("help", "帮助"), chat="p2p")
    s.ask("Bob", s.t("/reminder", "／帮住"))
    s.ask("Bob", "/etc/hosts is gone")
    s.say("Bob", s.t("/quiet", "/安静"))
    s.ask("Ann", s.t("/notes", "/笔记"))
    s.ask("Ann", s.t("/memory", "/记忆"))
    s.ask("Ann", s.t("/memory @Bob", "/记忆 @Bob"))
    s.ask("Ann", s.t("/reminders", "/提醒"))
    s.ask("Ann", s.t("/stop", "/停止"))
    s.ask("Ann", s.t("stop", "停"))
    s.ask("Ann", s.t("resume", "继续"))
    s.ask("Ann", s.t("/connect", "/连接"))


def quiet(s: Scene) -> None:
    root = s.ask("Ann", s.t("what is our plan?", "我们的计划是什么？"), model="Plan.")
    s.ask("Ann", s.t("/quiet", "安静"), under=root)
    s.say("Ann", s.t("and what about Norway?", "那挪威呢？"), under=root)
    s.ask("Ann", s.t("are you there?", "你在吗？"), under=root, model="Yes.")
    s.say("Ann", s.t("and Sweden?", "瑞典呢？"), under=root)
    s.ask("Ann", s.t("resume", "继续"), under=root)
    s.ask("Ann", s.t("what did I ask?", "我问了什么？"), under=root, model="Norway.")
    s.say("Ann", s.t("and what about Finland?", "那芬兰呢？"), under=root)


def fresh(s: Scene) -> None:
    root = s.ask("Ann", s.t("my word is apricot", "我的词是杏子"), model="OK.")
    s.ask("Ann", s.t("/new", "/新对话"), under=root)
    s.ask("Ann", s.t("what is my word?", "我的词是什么？"), under=root)
    s.ask("Bob", s.t("what was said here?", "这里说了什么？"), under=root)


def why(s: Scene) -> None:
    answered = s.ask("Ann", s.t("is the pier open?", "栈桥开放吗？"), model=s.t("Yes.", "是的。"))
    silent = s.say("Bob", s.t("nice weather today", "今天天气不错"))
    s.ask("Bob", s.t("/why", "/为什么"))
    s.ask("Bob", s.t("/why", "/为何"), quote=silent)
    s.ask("Bob", s.t("/why", "/为什么"), quote=answered)
    s.ask("Ann", s.t("/why", "/为什么"), chat="p2p")


def settings(s: Scene) -> None:
    s.ask("Bob", s.t("/settings", "/设置"))
    s.ask("Bob", s.t("/mode mention", "/模式 mention"))
    s.ask("Ann", s.t("/settings", "/设置"))
    s.press("Ann", s.t("Save settings", "保存设置"), form={"mode": "mention", "language": "zh"})
    s.ask("Ann", s.t("/mode all", "/模式 all"))
    s.say(
        "Bob", s.t("where is the ladder?", "梯子在哪里？"), model=s.t("In the shed.", "在棚子里。")
    )
    s.ask("Ann", s.t("/mode threads", "/模式 threads"))
    s.say("Bob", s.t("and the rope?", "绳子呢？"))
    s.ask("Ann", s.t("/language en", "/语言 zh"))
    s.ask("Bob", s.t("好吗？", "is it good?"))
    s.ask("Ann", s.t("/instructions Answer in one word.", "/要求 只用一个词回答。"))
    s.ask("Bob", s.t("how is the weather?", "天气怎么样？"))
    s.ask("Ann", s.t("/instructions", "/要求"))
    s.ask("Ann", s.t("/mode nonsense", "/模式 胡说"))
    s.ask("Ann", s.t("/settings", "/设置"), chat="p2p")
    s.ask("Ann", s.t("/proactive on", "/主动 开"))
    s.ask("Ann", s.t("/proactive off", "/主动 关"))


def forgetting(s: Scene) -> None:
    keep = call("update_working_memory", scope="person", patch={"word": "quince"})
    root = s.ask("Ann", s.t("my word is quince", "我的词是榅桲"), model=[keep, "OK."])
    s.ask("Ann", s.t("my other word is medlar", "我的另一个词是枇杷"), model="OK.")
    s.ask("Bob", s.t("and mine is fig", "我的是无花果"), under=root, model="OK.")
    s.ask("Ann", s.t("/forget", "/忘记"), under=root)
    s.press("Bob", s.t("This thread", "忘记这个话题"))
    s.press("Ann", s.t("This thread", "忘记这个话题"))
    s.ask("Ann", s.t("/forget this thread", "/忘记 这个话题"), under=root)
    s.press("Ann", s.t("Cancel", "取消"))
    s.ask("Bob", s.t("what was Ann's word?", "Ann 的词是什么？"), under=root)
    s.ask("Ann", s.t("/forget all", "/忘记 全部"))
    s.press("Ann", s.t("Confirm", "确认"))
    s.ask("Ann", s.t("what is my other word?", "我的另一个词是什么？"))


def digests(s: Scene) -> None:
    s.ask("Ann", s.t("/digest", "/摘要"))
    root = s.ask("Ann", s.t("the quince launch is at gate 7", "榅桲发布在7号门"), model="OK.")
    s.say("Bob", s.t("the medlar budget is 400 crowns", "枇杷预算是400克朗"))
    digest = s.t("- Launch: gate 7\n- Budget: 400 crowns", "- 发布：7号门\n- 预算：400克朗")
    s.ask("陈晨", s.t("/digest", "/摘要"), model=digest)
    s.ask("Ann", s.t("/digest", "/摘要"), under=root, model=digest)
    s.ask("Bob", s.t("/digest daily 18:00", "/摘要 每天 18:00"))
    s.ask("Ann", s.t("/digest daily 18:00", "/摘要 每天 18:00"))
    s.ask("Ann", s.t("/digest sometimes", "/摘要 有时"))
    s.script(digest)
    s.come_due()
    s.ask("Ann", s.t("/digest off", "/摘要 关"))


SCENES = {
    "words": words,
    "quiet": quiet,
    "fresh": fresh,
    "why": why,
    "settings": settings,
    "forgetting": forgetting,
    "digests": digests,
}
