"""Comments in the stand-in platform's documents: threads, and the event that the app gets."""

from __future__ import annotations

import pytest

from sandbox.world.comments import LONGEST_TEXT, MOST_ELEMENTS, elements_of
from tests.unit.sandbox.test_sandbox_documents import Shelf, code, member

EVENT = "drive.notice.comment_add_v1"


@pytest.fixture
def shelf(tenant):
    return Shelf(tenant)


@pytest.fixture
def plan(tenant, shelf):
    return shelf.add(members=[member("appid", tenant.config.app_id)])


def said(text):
    return {"content": {"elements": [{"type": "text_run", "text_run": {"text": text}}]}}


def comment(tenant, plan, who, text, **more):
    body = {"as": tenant.people[who], "token": plan["token"], "text": text, **more}
    return tenant.control("POST", "documents/comment", body)


def as_app(tenant, method, path, body=None, **query):
    tenant.token = tenant.fresh_token()
    tenant.clock.now += 1
    return tenant.call(method, path, body, file_type="docx", **query)


def heard(tenant):
    return [one for one in tenant.pushed() if one["header"]["event_type"] == EVENT]


def path_of(plan, *parts):
    return "/".join([f"/drive/v1/files/{plan['token']}/comments", *parts])


def test_a_mention_of_the_bot_is_told_to_the_app_as_feishu_s_page_shows_it(tenant, plan):
    made = comment(tenant, plan, "Bob", "@Memo why March?", quote="3 March")
    (event,) = heard(tenant)
    notice = event["event"]["notice_meta"]
    assert event["event"].items() >= {
        "comment_id": made["comment_id"], "reply_id": made["comment_id"], "is_mentioned": True
    }.items()  # fmt: skip
    assert (notice["file_token"], notice["file_type"]) == (plan["token"], "docx")
    assert notice["from_user_id"]["open_id"] == tenant.people["Bob"]
    assert notice["to_user_id"]["open_id"] == tenant.platform.world.bot.open_id
    assert notice["notice_type"] == "add_comment"


def test_other_comments_are_told_only_where_the_bot_took_part_and_its_own_never(tenant, plan):
    made = comment(tenant, plan, "Bob", "why?", quote="3 March")
    assert heard(tenant) == []
    path = path_of(plan, made["comment_id"], "replies")
    assert code(as_app(tenant, "POST", path, said("Because"))) == (200, 0)
    assert heard(tenant) == []
    comment(tenant, plan, "Bob", "ah", comment_id=made["comment_id"])
    (event,) = heard(tenant)
    assert event["event"]["is_mentioned"] is False
    assert event["event"]["notice_meta"]["notice_type"] == "add_reply"


def test_nothing_is_told_to_an_app_without_the_scope(tenant, plan):
    tenant.platform.world.console.granted.discard("docs:document.comment:read")
    comment(tenant, plan, "Bob", "@Memo why?", quote="3 March")
    assert heard(tenant) == []


def test_who_mentions_the_bot_lets_it_view_the_document(tenant, shelf):
    plan = shelf.add()
    path = f"/docx/v1/documents/{plan['token']}"
    assert code(as_app(tenant, "GET", path)) == (403, 1770032)
    comment(tenant, plan, "Alice", "@Memo look", quote="3 March")
    assert code(as_app(tenant, "GET", path)) == (200, 0)


def test_a_thread_is_read_by_its_id_and_page_by_page(tenant, plan):
    made = comment(tenant, plan, "Bob", "@Memo why?", quote="3 March")
    for text in ("one", "two"):
        comment(tenant, plan, "Alice", text, comment_id=made["comment_id"])
    body = {"comment_ids": [made["comment_id"]]}
    (found,) = as_app(tenant, "POST", path_of(plan, "batch_query"), body).json["data"]["items"]
    assert (found["quote"], found["is_whole"], found["is_solved"]) == ("3 March", False, False)
    first = found["reply_list"]["replies"][0]["content"]["elements"]
    assert [one["type"] for one in first] == ["person", "text_run"]
    path = path_of(plan, made["comment_id"], "replies")
    page = as_app(tenant, "GET", path, page_size=2).json["data"]
    rest = as_app(tenant, "GET", path, page_size=2, page_token=page["page_token"]).json["data"]
    assert (len(page["items"]), len(rest["items"]), rest["has_more"]) == (2, 1, False)
    assert code(as_app(tenant, "POST", path_of(plan, "batch_query"), {})) == (400, 1069302)


def test_what_feishu_does_not_take_as_a_reply_is_refused_with_its_codes(tenant, shelf, plan):
    made = comment(tenant, plan, "Bob", "@Memo why?", quote="3 March")
    path = path_of(plan, made["comment_id"], "replies")
    person = {"type": "person", "person": {"user_id": "ou_nobody"}}
    run = said("x")["content"]["elements"][0]
    for body in ({}, said(""), said("x" * (LONGEST_TEXT + 1)),
                 {"content": {"elements": [run] * (MOST_ELEMENTS + 1)}}):  # fmt: skip
        assert code(as_app(tenant, "POST", path, body)) == (400, 1069302)
    nobody = {"content": {"elements": [person]}}
    assert code(as_app(tenant, "POST", path, nobody)) == (404, 1069307)
    assert code(as_app(tenant, "POST", path_of(plan, "71", "replies"), said("x"))) == (404, 1069307)
    tenant.control("POST", "documents/solve", {
        "token": plan["token"], "comment_id": made["comment_id"]})  # fmt: skip
    assert code(as_app(tenant, "POST", path, said("x"))) == (400, 1069302)
    shelf.change(plan, deleted=True)
    assert code(as_app(tenant, "POST", path, said("x"))) == (400, 1069304)


def test_a_comment_on_the_whole_document_is_answered_by_another(tenant, plan):
    made = comment(tenant, plan, "Bob", "@Memo summarise")
    path = path_of(plan, made["comment_id"], "replies")
    assert code(as_app(tenant, "POST", path, said("Here"))) == (400, 1069302)
    body = {"reply_list": {"replies": [said("Here")]}}
    assert code(as_app(tenant, "POST", path_of(plan), body)) == (200, 0)
    listed = as_app(tenant, "GET", path_of(plan), is_whole="true").json["data"]["items"]
    bot = tenant.platform.world.bot.open_id
    assert [one["user_id"] for one in listed] == [tenant.people["Bob"], bot]


def test_the_app_deletes_its_own_replies_only(tenant, plan):
    made = comment(tenant, plan, "Bob", "@Memo why?", quote="3 March")
    path = path_of(plan, made["comment_id"], "replies")
    mine = as_app(tenant, "POST", path, said("Because")).json["data"]["reply_id"]
    assert code(as_app(tenant, "DELETE", f"{path}/{made['comment_id']}")) == (403, 1069303)
    assert code(as_app(tenant, "DELETE", f"{path}/{mine}")) == (200, 0)
    assert len(as_app(tenant, "GET", path).json["data"]["items"]) == 1


def test_names_after_at_signs_become_mentions():
    people = [("Memo", "ou_m"), ("Bob", "ou_b")]
    kinds = [next(iter(one[one["type"]].values())) for one in elements_of("@Memo hi @Bob", people)]
    assert kinds == ["ou_m", " hi ", "ou_b"]
