"""What messages of the system say of joining and leaving: less may be read, never more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.features.history_import.reading import NAMELESS, membership_notices
from memory.tables.imports import MembershipNotice
from tests.support.rows import every_row

AT_MS = 1_700_000_000_000
F, T = "Fang", "Tian"

JOINED_TO = [
    "{from_user} invited {to_chatters} to this chat.",
    "{from_user} invited {to_chatters} to the group.",
    "{from_user} added {to_chatters} to the group.",
    "{to_chatters} joined this chat via the group link shared by {from_user}.",
    "{from_user} 邀请 {to_chatters} 加入了群聊",
    "{from_user}邀请了{to_chatters}加入此群",
    "{from_user} 将 {to_chatters} 拉入了群聊",
    "{to_chatters} 通过 {from_user} 分享的群链接加入了群聊",
    "{to_chatters} 通过扫描 {from_user} 分享的二维码加入了群聊",
]
JOINED_FROM = [
    "{from_user} started the group chat.",
    "{from_user} joined the group chat.",
    "{from_user} joined this group via a QR code.",
    "{from_user} 创建了群聊",
    "{from_user} 发起了群聊",
    "{from_user} 加入了群聊",
    "{from_user} 通过群链接加入了群聊",
]
LEFT_TO = [
    "{from_user} removed {to_chatters} from this chat.",
    "{from_user} removed {to_chatters} from the group.",
    "{from_user} revoked the invitation of {to_chatters}.",
    "{from_user} 将 {to_chatters} 移出了群聊",
    "{from_user} 移除了 {to_chatters}",
    "{from_user} 撤回了对 {to_chatters} 的邀请",
]
LEFT_FROM = [
    "{from_user} left this chat.",
    "{from_user} left the group",
    "{from_user} 退出了群聊",
    "{from_user} 离开了群聊",
]
NOTHING = [
    " ",
    "",
    "{divider_text}",
    '{from_user} updated the group name from "{old_group_name}" to "{group_name}".',
    '{from_user} renamed the group to "{group_name}".',
    "{from_user} 将群名称由“{old_group_name}”修改为“{group_name}”",
    "{from_user} 修改了群公告",
    "{from_user} changed the group announcement",
    "{from_user} pinned a message.",
    "{from_user} 置顶了一条消息",
    "{from_user} recalled a message",
    "{from_user} 撤回了一条消息",
    "{from_user} transferred ownership of the group to {to_chatters}",
    "{from_user} made {to_chatters} a group administrator",
    "{from_user} added {to_chatters} as group administrators",
    "{from_user} 将 {to_chatters} 设置为群管理员",
    "{from_user} 将群主转让给 {to_chatters}",
    "{from_user} is now the group owner.",
    "Welcome to {group_type}",
    "{} 同步了 {count} 条消息到本群组",
]
UNKNOWN = [
    "{from_user} beamed {to_chatters} up",
    "{from_user} and {to_chatters} are here",
    "{from_user} 通过扫描 {to_chatters} 分享的二维码加入群聊",
    "{to_chatters} entered, {from_user} shared the link",
    "{from_user} updated the list: {to_chatters} joined",
]


def said(template: str, **values: object) -> dict[tuple[str, bool], int]:
    content = {"template": template, "from_user": [F], "to_chatters": [T], **values}
    return {(one.name, one.joined): one.at_ms for one in membership_notices(content, AT_MS)}


@every_row(
    ("templates", "wanted"),
    [
        (JOINED_TO, {(T, True): AT_MS}),
        (JOINED_FROM, {(F, True): AT_MS}),
        (LEFT_TO, {(T, False): AT_MS}),
        (LEFT_FROM, {(F, False): AT_MS}),
        (NOTHING, {}),
        (UNKNOWN, {(F, True): AT_MS, (T, True): AT_MS}),
    ],
)
def test_a_template_says_who_joined_and_who_left(templates, wanted):
    assert {one: said(one) for one in templates} == dict.fromkeys(templates, wanted)


@every_row("template", [*JOINED_TO, *JOINED_FROM, "{somebody} materialised"])
def test_who_joined_without_being_named_is_somebody_whom_nobody_knows(template):
    assert said(template, from_user=[], to_chatters=[]) == {(NAMELESS, True): AT_MS}


def test_names_are_found_however_they_are_nested():
    content = {"template": "{guests} came", "guests": {"list": [{"name": "Ann"}, "Bo\x00b "]}}
    assert membership_notices(content, AT_MS) == (
        MembershipNotice("Ann", AT_MS, joined=True),
        MembershipNotice("Bob", AT_MS, joined=True),
    )


@given(st.text(max_size=40), st.text(min_size=1, max_size=20))
def test_a_template_that_nobody_knows_never_lets_somebody_read_more(words, name):
    """Whoever is named is said to have joined, to have left, or nothing: an unknown template does
    not say that they left."""
    content = {"template": f"{{from_user}} xq {words}", "from_user": [name]}
    assert all(one.joined for one in membership_notices(content, AT_MS))


@given(
    st.dictionaries(
        st.sampled_from(["template", "from_user", "to_chatters", "x"]),
        st.recursive(
            st.none() | st.text(max_size=30) | st.integers(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
        ),
    )
)
def test_no_content_raises(content):
    for one in membership_notices(content, AT_MS):
        assert one.name
