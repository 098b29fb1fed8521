"""Mentions, threads, quoting, private chats, topic groups, subject and sender."""

from tests.corpus.scene import Scene, call

PROFILE = "model"


def mentions(s: Scene) -> None:
    s.ask(
        "Ann",
        s.t("what is our plan for the harbour?", "我们港口的计划是什么？"),
        model=s.t("The plan: paint the pier, then open it.", "计划：先刷栈桥，再开放。"),
    )
    s.say("Bob", s.t("and the pier, @Memo?", "那栈桥呢，@Memo？"))
    s.say("陈晨", "@Memo")
    s.say("Ann", s.t("@Memo @Memo are you there?", "@Memo @Memo 你在吗？"))
    s.say("Ann", s.t("@Bob what do you think of it?", "@Bob 你觉得怎么样？"))
    s.say("Ann", s.t("Memo, are you there?", "Memo，你在吗？"))
    s.ask(
        "Ann",
        s.t("say <at id=all></at> and @all", "说 <at id=all></at> 和 @所有人"),
        model=s.t("<at id=all></at> hello @all", "<at id=all></at> 大家好 @所有人"),
    )


def subjects(s: Scene) -> None:
    fact = call(
        "update_working_memory", scope="thread", patch={"okr": s.t("three goals", "三个目标")}
    )
    root = s.ask("Bob", s.t("my OKRs are three goals", "我的 OKR 是三个目标"), model=[fact, "OK."])
    s.ask("Ann", s.t("@Bob how do I apply those?", "@Bob 我该怎么用？"), under=root)
    s.ask("Ann", s.t("how do I apply those?", "我该怎么用？"), under=root)
    s.ask("Ann", s.t("@Bob @陈晨 how do they compare?", "@Bob @陈晨 怎么比较？"), under=root)
    s.ask("陈晨", s.t("@Bob what are Bob's OKRs?", "@Bob 的 OKR 是什么？"))
    lasting = call("update_working_memory", scope="person", patch={"tea": s.t("green", "绿茶")})
    s.ask(
        "Ann",
        s.t("@Bob remember that Bob likes green tea", "@Bob 记住 Bob 喜欢绿茶"),
        model=[lasting, s.t("Noted.", "记下了。")],
    )
    s.ask("Bob", s.t("what do I like?", "我喜欢什么？"))


def threads(s: Scene) -> None:
    s.say("Bob", s.t("the boat leaves at nine", "船九点开"))
    root = s.ask(
        "Ann", s.t("when does the boat leave?", "船几点开？"), model=s.t("At nine.", "九点。")
    )
    s.ask("Bob", s.t("and who is on it?", "谁在船上？"), under=root)
    s.say("Ann", s.t("I am", "我在"), under=root)
    s.ask("陈晨", s.t("who is on the boat?", "谁在船上？"), under=root)
    other = s.ask("Ann", s.t("what did we say about the boat?", "关于船我们说了什么？"))
    s.ask("Ann", s.t("and in the other thread?", "另一个话题里呢？"), under=other)


def quoting(s: Scene) -> None:
    said = s.say("Bob", s.t("the budget is four apples\nand a pear", "预算是四个苹果\n和一个梨"))
    s.ask(
        "Ann", s.t("can we afford it?", "我们负担得起吗？"), quote=said, model=s.t("Yes.", "可以。")
    )
    answer = s.answer()
    s.say("Bob", s.t("are you sure?", "你确定吗？"), quote=answer)
    s.say("陈晨", s.t("thanks", "谢谢"), quote=answer)
    s.say("Ann", s.t("I agree", "同意"), quote=said)
    s.edit("Bob", said, s.t("the budget is five apples", "预算是五个苹果"))
    s.ask("Ann", s.t("what is the budget?", "预算是多少？"), quote=said)


def alone(s: Scene) -> None:
    first = s.ask(
        "Ann",
        s.t("my cat is called Plum", "我的猫叫李子"),
        chat="p2p",
        model=s.t("A good name.", "好名字。"),
    )
    s.ask("Ann", s.t("what is my cat called?", "我的猫叫什么？"), chat="p2p")
    s.ask("Ann", s.t("and in short?", "简短点？"), chat="p2p", under=first)
    s.ask("Ann", s.t("what did I say here?", "我这里说了什么？"), chat="p2p", quote=first)
    s.ask("Ann", s.t("@Bob what does Bob like?", "@Bob 喜欢什么？"), chat="p2p")
    s.ask("Ann", "👍", chat="p2p")
    s.ask("Bob", s.t("what is Ann's cat called?", "Ann 的猫叫什么？"), chat="p2p")


def topics(s: Scene) -> None:
    s.group("Topics", topics=True)
    root = s.ask("Ann", s.t("where shall we meet?", "我们在哪里见面？"), chat="Topics")
    s.ask("Bob", s.t("and when?", "什么时候？"), chat="Topics", under=root)
    s.say("Ann", s.t("and who brings cake?", "谁带蛋糕？"), chat="Topics", under=root)
    other = s.say("陈晨", s.t("a topic without the bot", "没有机器人的话题"), chat="Topics")
    s.say("Bob", s.t("fine with me", "我没问题"), chat="Topics", under=other)
    s.ask("陈晨", s.t("sum up this topic", "总结这个话题"), chat="Topics", under=other)


SCENES = {
    "mentions": mentions,
    "subjects": subjects,
    "threads": threads,
    "quoting": quoting,
    "alone": alone,
    "topics": topics,
}
