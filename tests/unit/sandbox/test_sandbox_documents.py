"""The stand-in platform's documents: read, searched and shared as Feishu's documents say."""

from __future__ import annotations

import pytest

from sandbox.world.user_scopes import USER_SCOPES
from tests.support.rows import every_row
from tests.unit.sandbox.test_sandbox_grants import Grants

EVERYTHING = " ".join(USER_SCOPES)
BLOCKS = [
    {"kind": "heading", "level": 1, "text": "Plan"},
    {"kind": "text", "text": "Launch on *3 March* at open.feishu.cn"},
    {"kind": "bullet", "text": "first"},
    {"kind": "table", "rows": [["Who", "What"], ["Bob", "Slides"]]},
]


class Shelf:
    """Documents of a tenant, and people who read them with their own tokens."""

    def __init__(self, tenant):
        self.tenant, self.grants, self.tokens = tenant, Grants(tenant), {}

    def add(self, title="Plan", owner="Alice", **more):
        body = {"as": self.tenant.people[owner], "title": title, "blocks": BLOCKS, **more}
        return self.tenant.control("POST", "documents", body)

    def change(self, document, **changes):
        body = {"token": document["token"], **changes}
        return self.tenant.control("POST", "documents/change", body)

    def as_(self, who, method, path, body=None, **query):
        if who not in self.tokens:
            self.tokens[who] = self.grants.connect(who, EVERYTHING)["access_token"]
        self.tenant.token = self.tokens[who]
        self.tenant.clock.now += 1  # no call is too fast unless a test means it
        return self.tenant.call(method, path, body, **query)

    def content(self, who, token):
        query = {"doc_token": token, "doc_type": "docx", "content_type": "markdown"}
        return self.as_(who, "GET", "/docs/v1/content", **query)


@pytest.fixture
def shelf(tenant):
    return Shelf(tenant)


def code(response):
    return response.status_code, response.json["code"]


def member(kind, member_id, **more):
    return {"member_type": kind, "member_id": member_id, **more}


def test_the_owner_reads_their_document_as_markdown_with_tables_in_html(shelf):
    plan = shelf.add()
    text = shelf.content("Alice", plan["token"]).json["data"]["content"]
    assert text.startswith("# Plan\n\nLaunch on \\*3 March\\* at open\\.feishu\\.cn\n\n- first\n\n")
    assert "<table><tbody>\n<tr>\n<td>\n\nWho\n\n</td>\n<td>" in text
    about = shelf.as_("Alice", "GET", f"/docx/v1/documents/{plan['token']}").json["data"]
    assert about["document"]["title"] == "Plan"


def test_who_cannot_view_a_document_is_refused_with_each_page_s_own_code(shelf):
    plan = shelf.add()
    token = plan["token"]
    assert code(shelf.content("Bob", token)) == (403, 2889902)
    assert code(shelf.as_("Bob", "GET", f"/docx/v1/documents/{token}")) == (403, 1770032)
    comments = shelf.as_("Bob", "GET", f"/drive/v1/files/{token}/comments", file_type="docx")
    assert code(comments) == (403, 1069303)
    shelf.change(plan, deleted=True)
    assert code(shelf.content("Alice", token)) == (403, 2889906)
    assert code(shelf.as_("Alice", "GET", f"/docx/v1/documents/{token}")) == (400, 1770003)
    unknown = "x" * 27
    assert code(shelf.content("Alice", unknown)) == (400, 2889914)
    assert code(shelf.as_("Alice", "GET", f"/docx/v1/documents/{unknown}")) == (404, 1770002)
    assert code(shelf.content("Alice", "short")) == (400, 2889904)


@pytest.mark.parametrize(
    ("sharing", "reads"),
    [
        ({}, {"Alice"}),
        ({"link": "tenant_readable"}, {"Alice", "Bob", "陈晨"}),
        ({"link": "anyone_readable"}, {"Alice", "Bob", "陈晨", "Eve"}),
        ({"link": "partner_tenant_readable"}, {"Alice"}),
        ({"members": [("openid", "Bob")]}, {"Alice", "Bob"}),
        ({"members": [("openchat", "group")]}, {"Alice", "Bob", "陈晨"}),
        ({"members": [("opendepartmentid", "od-1")]}, {"Alice", "陈晨"}),
    ],
)
def test_who_reads_is_the_owner_the_collaborators_and_whom_the_link_lets_in(
    tenant, shelf, sharing, reads
):
    eve = tenant.control("POST", "people", {"name": "Eve", "tenant_key": "another"})
    tenant.people["Eve"] = eve["open_id"]
    everybody = tenant.people.keys() - {"Memo"}
    ids = {**tenant.people, "group": tenant.group}
    members = [
        member(kind, ids.get(who, who), people=[tenant.people["陈晨"]])
        if kind == "opendepartmentid"
        else member(kind, ids[who])
        for kind, who in sharing.get("members", [])
    ]
    plan = shelf.add(**{**sharing, "members": members})
    shown = {one["name"] for one in plan["readers"]}
    asked = {
        who
        for who in everybody
        if shelf.as_(
            who,
            "GET",
            f"/drive/v1/permissions/{plan['token']}/members/auth",
            type="docx",
            action="view",
        ).json["data"]["auth_result"]
    }
    opened = {who for who in everybody if code(shelf.content(who, plan["token"]))[1] == 0}
    assert shown == asked == opened == reads


def test_who_leaves_a_group_that_collaborates_reads_no_more(tenant, shelf):
    plan = shelf.add(members=[member("openchat", tenant.group)])
    assert code(shelf.content("Bob", plan["token"])) == (200, 0)
    body = {"chat_id": tenant.group, "open_id": tenant.people["Bob"]}
    tenant.control("POST", "leave", body)
    assert code(shelf.content("Bob", plan["token"])) == (403, 2889902)


def test_sharing_is_shown_to_those_who_may_manage_it(tenant, shelf):
    members = [member("openid", tenant.people["Bob"]), member("openchat", tenant.group)]
    plan = shelf.add(link="tenant_readable", members=members)
    public, listed = (
        f"/drive/v2/permissions/{plan['token']}/public",
        "/drive/v1/permissions/{}/members",
    )
    listed = listed.format(plan["token"])
    shape = shelf.as_("Bob", "GET", public, type="docx").json["data"]["permission_public"]
    assert shape["link_share_entity"] == "tenant_readable"
    items = shelf.as_("Bob", "GET", listed, type="docx").json["data"]["items"]
    assert [(one["member_type"], one["type"], one["perm"]) for one in items] == [
        ("openid", "user", "full_access"),
        ("openid", "user", "view"),
        ("openchat", "chat", "view"),
    ]
    shelf.change(plan, manage="collaborator_full_access")
    assert code(shelf.as_("Bob", "GET", public, type="docx")) == (403, 1063004)
    assert code(shelf.as_("Bob", "GET", listed, type="docx")) == (403, 1063004)
    assert code(shelf.as_("Alice", "GET", listed, type="docx")) == (200, 0)
    assert code(shelf.as_("Alice", "GET", listed, type="sheet")) == (400, 1063001)
    shelf.change(plan, deleted=True)
    assert code(shelf.as_("Alice", "GET", listed, type="docx")) == (404, 1063005)


def test_a_page_of_the_wiki_leads_to_its_document(shelf):
    page, alone = shelf.add(wiki=True), shelf.add()
    assert page["url"].endswith(f"/wiki/{page['node_token']}")
    get = "/wiki/v2/spaces/get_node"
    node = shelf.as_("Alice", "GET", get, token=page["node_token"]).json["data"]["node"]
    assert (node["obj_token"], node["obj_type"]) == (page["token"], "docx")
    assert code(shelf.as_("Bob", "GET", get, token=page["node_token"])) == (400, 131006)
    assert code(shelf.as_("Bob", "GET", get, token="wiknone")) == (400, 131005)
    lone = shelf.as_("Alice", "GET", get, token=alone["token"], obj_type="docx")
    assert code(lone) == (400, 131005)
    assert code(shelf.as_("Alice", "GET", get)) == (400, 131002)


def test_a_sheet_is_read_by_its_cells(shelf):
    rows = [["Name", "Count"], ["Cups", 3], ["Plates"]]
    sheet = shelf.add(kind="sheet", sheets=[{"title": "Stock", "rows": rows}])
    base = f"/sheets/v3/spreadsheets/{sheet['token']}"
    assert shelf.as_("Alice", "GET", base).json["data"]["spreadsheet"]["title"] == "Plan"
    (listed,) = shelf.as_("Alice", "GET", f"{base}/sheets/query").json["data"]["sheets"]
    assert listed["grid_properties"]["row_count"] == 3
    values = f"/sheets/v2/spreadsheets/{sheet['token']}/values/{listed['sheet_id']}"
    read = shelf.as_("Alice", "GET", f"{values}!A2:B3").json["data"]["valueRange"]
    assert read["values"] == [["Cups", 3], ["Plates", None]]
    assert code(shelf.as_("Alice", "GET", f"{values}!B:A")) == (400, 90202)
    assert code(shelf.as_("Alice", "GET", values[:-1] + "x")) == (400, 90215)
    assert code(shelf.as_("Bob", "GET", values)) == (403, 90213)
    assert code(shelf.as_("Bob", "GET", base)) == (400, 1310213)
    shelf.change(sheet, deleted=True)
    assert code(shelf.as_("Alice", "GET", base)) == (400, 1310249)


def test_a_base_is_read_table_by_table_and_page_by_page(tenant, shelf):
    fields = [{"name": "Task", "type": 1}, {"name": "Who", "type": 11}, {"name": "N", "type": 2}]
    records = [{"Task": f"t{n}", "Who": tenant.people["Bob"], "N": n} for n in range(501)]
    table = {"name": "Tasks", "fields": fields, "records": records}
    base = shelf.add(kind="bitable", tables=[table])
    apps = f"/bitable/v1/apps/{base['token']}/tables"
    (listed,) = shelf.as_("Alice", "GET", apps).json["data"]["items"]
    names = shelf.as_("Alice", "GET", f"{apps}/{listed['table_id']}/fields").json["data"]["items"]
    assert [(one["field_name"], one["type"]) for one in names] == [
        ("Task", 1),
        ("Who", 11),
        ("N", 2),
    ]
    search = f"{apps}/{listed['table_id']}/records/search"
    first = shelf.as_("Alice", "POST", search, {}, page_size=500).json["data"]
    assert (first["total"], first["has_more"], len(first["items"])) == (501, True, 500)
    row = first["items"][0]["fields"]
    assert (row["Task"][0]["text"], row["Who"][0]["name"], row["N"]) == ("t0", "Bob", 0)
    token = first["page_token"]
    rest = shelf.as_("Alice", "POST", search, {}, page_size=500, page_token=token).json["data"]
    assert (len(rest["items"]), rest["has_more"], "page_token" in rest) == (1, False, False)
    assert code(shelf.as_("Bob", "GET", apps)) == (403, 91403)
    assert code(shelf.as_("Alice", "GET", f"{apps}/tblnone/fields")) == (200, 1254041)
    assert code(shelf.as_("Alice", "POST", search, {}, page_size=501)) == (200, 1254001)


@every_row("name", ["filter", "sort", "view_id", "automatic_fields"])
def test_a_search_of_records_that_is_not_played_is_refused_by_name(shelf, name):
    search = searched(shelf, [{"name": "Task", "type": 1}], [{"Task": "a"}])

    assert search({name: "x"}).json["msg"] == f"The sandbox does not play {name}."


def searched(shelf, fields, records):
    """Searches a table of a new Base as Alice."""
    base = shelf.add(kind="bitable", tables=[{"name": "T", "fields": fields, "records": records}])
    apps = f"/bitable/v1/apps/{base['token']}/tables"
    (table,) = shelf.as_("Alice", "GET", apps).json["data"]["items"]
    path = f"{apps}/{table['table_id']}/records/search"
    return lambda body, **query: shelf.as_("Alice", "POST", path, body, **query)


def test_comments_are_listed_with_what_they_quote(tenant, shelf):
    plan = shelf.add()
    for text, quote in (("Why March?", "3 March"), ("Good", "")):
        body = {"as": tenant.people["Bob"], "token": plan["token"], "text": text, "quote": quote}
        tenant.control("POST", "documents/comment", body)
    path = f"/drive/v1/files/{plan['token']}/comments"
    items = shelf.as_("Alice", "GET", path, file_type="docx").json["data"]["items"]
    assert [(one["quote"], one["is_whole"]) for one in items] == [("3 March", False), ("", True)]
    element = items[0]["reply_list"]["replies"][0]["content"]["elements"][0]
    assert element == {"type": "text_run", "text_run": {"text": "Why March?"}}
    paged = shelf.as_("Alice", "GET", path, file_type="docx", page_size=1).json["data"]
    assert (paged["has_more"], len(paged["items"])) == (True, 1)
    assert code(shelf.as_("Alice", "GET", path)) == (400, 1069302)


def test_search_finds_what_the_person_can_view_and_nothing_else(shelf):
    shelf.add("Launch plan", "Alice")
    shelf.add("Launch budget", "Bob", wiki=True)
    search = "/search/v2/doc_wiki/search"
    filters = {"doc_filter": {}, "wiki_filter": {}}
    alice = shelf.as_("Alice", "POST", search, {"query": "launch", **filters}).json["data"]
    assert (alice["total"], alice["has_more"]) == (1, False)
    (unit,) = alice["res_units"]
    assert (unit["title_highlighted"], unit["entity_type"]) == ("<h>Launch</h> plan", "DOC")
    bob = shelf.as_("Bob", "POST", search, {"query": "Launch", **filters}).json["data"]
    assert [one["entity_type"] for one in bob["res_units"]] == ["WIKI"]
    only = shelf.as_("Bob", "POST", search, {"query": "Launch", "doc_filter": {}}).json["data"]
    assert only["total"] == 0
    assert code(shelf.as_("Bob", "POST", search, {"query": "Launch"})) == (400, 1274001)
    assert code(shelf.as_("Bob", "POST", search, {"query": "x" * 51, **filters})) == (400, 1274001)
    wrong = {"query": "x", "doc_filter": {"doc_types": ["nope"]}}
    assert code(shelf.as_("Bob", "POST", search, wrong)) == (400, 1274002)


def test_search_is_narrowed_by_kind_owner_and_title_or_refused_by_name(tenant, shelf):
    shelf.add("Launch plan", "Alice")
    shelf.add("Launch stock", "Alice", kind="sheet", sheets=[])
    shelf.add("Launch wiki", "Bob", wiki=True, link="tenant_readable")

    def found(query="launch", **narrowed):
        body = {"query": query, "doc_filter": narrowed, "wiki_filter": narrowed}
        told = shelf.as_("Alice", "POST", "/search/v2/doc_wiki/search", body)
        if told.status_code != 200:
            return told.json["msg"]
        return {one["title_highlighted"].split()[-1] for one in told.json["data"]["res_units"]}

    assert found() == {"plan", "stock", "wiki"}
    assert found(doc_types=["SHEET"]) == {"stock"}
    assert found(doc_types=["WIKI", "DOCX"]) == {"plan", "wiki"}
    assert found(creator_ids=[tenant.people["Bob"]]) == {"wiki"}
    assert found(query="3 March", only_title=True) == set()
    assert found(sort_type="EDIT_TIME") == "The sandbox does not play sort_type."


def test_what_changes_a_table_and_is_not_played_is_refused_by_name(shelf):
    sheet = shelf.add(kind="sheet", sheets=[{"title": "S", "rows": [[1]]}])
    values = f"/sheets/v2/spreadsheets/{sheet['token']}/values/sh0000"
    told = shelf.as_("Alice", "GET", values, valueRenderOption="Formula")
    assert told.json["msg"] == "The sandbox does not play valueRenderOption=Formula."
    base = shelf.add(kind="bitable", tables=[{"name": "T", "fields": [], "records": []}])
    fields = f"/bitable/v1/apps/{base['token']}/tables/tbl0000000000000/fields"
    told = shelf.as_("Alice", "GET", fields, view_id="vew1")
    assert told.json["msg"] == "The sandbox does not play view_id."


def test_the_app_s_own_token_searches_nothing_and_reads_nothing_without_a_scope(tenant, shelf):
    plan = shelf.add(link="anyone_readable")
    tenant.token = tenant.fresh_token()
    search = tenant.call("POST", "/search/v2/doc_wiki/search", {"query": "x", "doc_filter": {}})
    assert code(search) == (400, 99991663)
    assert search.json["msg"] == "tenant access token not support"
    tenant.platform.world.console.granted.discard("docx:document:readonly")
    path = f"/docx/v1/documents/{plan['token']}"
    assert code(tenant.call("GET", path)) == (400, 99991672)
    tenant.platform.world.console.granted.add("docx:document:readonly")
    assert code(tenant.call("GET", path)) == (200, 0)
    shelf.change(plan, link="tenant_readable")
    assert code(tenant.call("GET", path)) == (403, 1770032)
    shelf.change(plan, members=[member("appid", tenant.config.app_id)])
    assert code(tenant.call("GET", path)) == (200, 0)


def test_a_scope_that_the_person_did_not_approve_or_the_app_lost_is_named(tenant, shelf):
    plan = shelf.add()
    shelf.tokens["Alice"] = shelf.grants.connect("Alice", "wiki:node:read")["access_token"]
    path = f"/docx/v1/documents/{plan['token']}"
    refused = shelf.as_("Alice", "GET", path)
    assert code(refused) == (400, 99991679)
    named = [one["subject"] for one in refused.json["error"]["permission_violations"]]
    assert named == ["docx:document", "docx:document:readonly"]
    tenant.control("POST", "user-scopes", {"granted": ["wiki:node:read"]})
    refused = shelf.as_("Alice", "GET", path)
    assert code(refused) == (400, 99991672)
    assert "token_type=user" in refused.json["msg"]


def test_a_scope_withdrawn_between_two_calls_ends_the_second(tenant, shelf):
    plan = shelf.add()
    assert code(shelf.content("Alice", plan["token"])) == (200, 0)
    kept = [one for one in USER_SCOPES if one != "docs:document.content:read"]
    tenant.control("POST", "user-scopes", {"granted": kept})
    assert code(shelf.content("Alice", plan["token"])) == (400, 99991672)


def test_documents_are_read_five_times_a_second_and_asked_about_a_hundred_times_a_minute(
    tenant, shelf
):
    plan = shelf.add()
    shelf.content("Alice", plan["token"])
    tenant.clock.now += 2
    query = {"doc_token": plan["token"], "doc_type": "docx", "content_type": "markdown"}
    reads = [code(tenant.call("GET", "/docs/v1/content", **query))[1] for _ in range(6)]
    assert reads == [0, 0, 0, 0, 0, 99991400]
    path = f"/drive/v1/permissions/{plan['token']}/members/auth"
    asked = []
    for _ in range(101):
        tenant.clock.now += 0.1
        asked.append(code(tenant.call("GET", path, type="docx", action="view"))[1])
    assert asked == [0] * 100 + [99991400]


def test_the_control_refuses_what_makes_no_sense(tenant, shelf):
    plan = shelf.add()
    for path, body in (
        ("documents", {"as": tenant.people["Bob"], "title": "x", "kind": "slides"}),
        ("documents", {"as": tenant.people["Bob"], "title": "x", "blocks": [{"kind": "no"}]}),
        ("documents/change", {"token": "none"}),
        ("documents/change", {"token": plan["token"], "link": "everybody"}),
        ("documents/change", {"token": plan["token"], "members": [{"member_type": "x"}]}),
        ("documents/comment", {"token": "none", "as": tenant.people["Bob"], "text": "x"}),
    ):
        assert tenant.http.post(f"/sandbox/api/{path}", json=body).status_code == 400


def test_documents_survive_a_restart_with_a_journal(make_tenant, tmp_path):
    journal = tmp_path / "journal.jsonl"
    first = make_tenant(journal=journal)
    shelf = Shelf(first)
    plan = shelf.add(members=[member("openid", first.people["Bob"])])
    body = {"as": first.people["Bob"], "token": plan["token"], "text": "Good"}
    first.control("POST", "documents/comment", body)
    first.platform.close()
    again = Shelf(make_tenant(journal=journal))
    assert code(again.content("Bob", plan["token"])) == (200, 0)
    (kept,) = again.tenant.platform.world.documents.values()
    said = [one["replies"][0]["elements"][0]["text_run"]["text"] for one in kept.comments]
    assert said == ["Good"]
