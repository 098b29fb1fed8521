"""The stand-in platform's calendars and tasks: read and written as Feishu's documents say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sandbox.world.user_scopes import USER_SCOPES
from tests.support.rows import every_row
from tests.unit.sandbox.test_sandbox_grants import Grants

EVERYTHING = " ".join(USER_SCOPES)
DAY_S = 86_400
CALENDARS = "/calendar/v4/calendars"
KEY = "25fdf41b-8c80-2ce1-e94c-de8b5e7aa7e6"


class Diary:
    """Calendars of a tenant, each used with the token of whoever is named."""

    def __init__(self, tenant):
        self.tenant, self.grants, self.tokens = tenant, Grants(tenant), {}
        self.now = int(tenant.clock.now)

    def as_(self, who, method, path, body=None, **query):
        if who not in self.tokens:
            self.tokens[who] = self.grants.connect(who, EVERYTHING)["access_token"]
        self.tenant.token = self.tokens[who]
        self.tenant.clock.now += 1
        return self.tenant.call(method, path, body, **query)

    def calendar(self, who="Alice"):
        answer = self.as_(who, "POST", f"{CALENDARS}/primary", {})
        (found,) = answer.json["data"]["calendars"]
        assert found["user_id"] == self.tenant.people[who]
        return found["calendar"]["calendar_id"]

    def book(self, who="Alice", key=KEY, **more):
        body = {
            "summary": "launch",
            "start_time": {"timestamp": str(self.now + DAY_S), "timezone": "Europe/Berlin"},
            "end_time": {"timestamp": str(self.now + DAY_S + 3600), "timezone": "Europe/Berlin"},
            **more,
        }
        path = f"{CALENDARS}/{self.calendar(who)}/events"
        return self.as_(who, "POST", path, body, idempotency_key=key)

    def invite(self, event, *names):
        path = f"{CALENDARS}/{self.calendar()}/events/{event}/attendees"
        people = [{"type": "user", "user_id": self.tenant.people.get(n, n)} for n in names]
        return self.as_("Alice", "POST", path, {"attendees": people})

    def view(self, who, calendar=None, days=3):
        path = f"{CALENDARS}/{calendar or self.calendar(who)}/events/instance_view"
        times = {"start_time": str(self.now), "end_time": str(self.now + days * DAY_S)}
        return self.as_(who, "GET", path, **times)

    def busy(self, asker, whom, start="2026-11-01T00:00:00+08:00", end="2026-11-30T00:00:00Z"):
        person = self.tenant.people.get(whom, whom)
        body = {"time_min": start, "time_max": end, "user_id": person}
        return self.as_(asker, "POST", "/calendar/v4/freebusy/list", body)

    def task(self, who="Alice", **more):
        return self.as_(who, "POST", "/task/v2/tasks", {"summary": "slides", **more})


@pytest.fixture
def diary(tenant):
    return Diary(tenant)


def code(response):
    return response.status_code, response.json["code"]


def member(tenant, name):
    return {"id": tenant.people[name], "role": "assignee"}


def test_an_event_is_made_once_for_its_key_and_stands_in_the_calendars_of_who_is_invited(diary):
    event = diary.book().json["data"]["event"]
    assert diary.book().json["data"]["event"]["event_id"] == event["event_id"]
    assert event["start_time"]["timezone"] == "Europe/Berlin"
    diary.invite(event["event_id"], "Bob")
    for who in ("Alice", "Bob"):
        (seen,) = diary.view(who).json["data"]["items"]
        assert seen["summary"] == "launch"
    assert diary.view("陈晨").json["data"]["items"] == []


def test_of_others_one_sees_when_they_are_busy_and_nothing_else(diary):
    start = diary.tenant.clock.now
    diary.book()
    answer = diary.busy("Bob", "Alice", _at(start), _at(start + 3 * DAY_S))
    (busy,) = answer.json["data"]["freebusy_list"]
    assert set(busy) == {"start_time", "end_time"}
    assert "launch" not in str(answer.json)
    assert code(diary.view("Bob", diary.calendar("Alice"))) == (403, 191002)


def test_who_deletes_an_event_made_it_and_does_so_once(diary):
    event = diary.book().json["data"]["event"]["event_id"]
    path = f"{CALENDARS}/{diary.calendar()}/events/{event}"
    assert code(diary.as_("Bob", "DELETE", path)) == (403, 191002)
    assert code(diary.as_("Alice", "DELETE", path)) == (200, 0)
    assert code(diary.as_("Alice", "DELETE", path)) == (403, 193003)
    assert diary.view("Alice").json["data"]["items"] == []
    assert code(diary.as_("Alice", "DELETE", path[:-3] + "x_0")) == (404, 193001)


@every_row(
    "wrong",
    [
        {"start_time": {"timestamp": "1602504000", "timezone": "Mars/Base"}},
        {"start_time": {"timestamp": 1602504000}},
        {"start_time": {"timestamp": "2602504000"}},
        {"start_time": {}},
        {"summary": "x" * 1001},
        {"key": "short"},
    ],
)
def test_an_event_without_a_proper_time_zone_title_or_key_is_refused(diary, wrong):
    assert code(diary.book(**wrong)) == (400, 190002)


def test_who_has_left_or_is_of_another_company_cannot_be_invited_or_looked_up(diary):
    tenant = diary.tenant
    eve = tenant.control("POST", "people", {"name": "Eve", "tenant_key": "another"})["open_id"]
    tenant.control("POST", "agendas/resign", {"as": tenant.people["Bob"]})
    event = diary.book().json["data"]["event"]["event_id"]
    for outsider in ("Bob", eve, "ou_nobody"):
        assert code(diary.busy("Alice", outsider)) == (404, 195100)
        assert code(diary.invite(event, outsider)) == (404, 195100)


def test_times_are_rfc_3339_and_at_most_ninety_days(diary):
    assert code(diary.busy("Alice", "Bob", "2026-11-01 09:00")) == (400, 190002)
    assert (
        code(diary.busy("Alice", "Bob", "2026-11-02T00:00:00Z", "2026-11-01T00:00:00Z"))[0] == 400
    )
    assert code(diary.busy("Alice", "Bob", end="2027-11-30T00:00:00Z")) == (400, 190014)
    assert code(diary.view("Alice", days=40)) == (400, 193103)


def test_a_task_is_made_once_for_its_token_and_listed_by_who_is_responsible(diary):
    tenant = diary.tenant
    due = {"timestamp": str((diary.now + DAY_S) * 1000), "is_all_day": True}
    body = {"members": [member(tenant, "Bob")], "due": due, "client_token": "token-of-ten"}
    first = diary.task(**body).json["data"]["task"]
    assert int(first["due"]["timestamp"]) % (DAY_S * 1000) == 0
    assert diary.task(**body).json["data"]["task"]["guid"] == first["guid"]
    tenant.clock.now += 301  # five minutes later it stands for nothing any more
    assert diary.task(**body).json["data"]["task"]["guid"] != first["guid"]
    listed = diary.as_("Bob", "GET", "/task/v2/tasks", completed="false").json["data"]
    assert [one["summary"] for one in listed["items"]] == ["slides", "slides"]
    assert diary.as_("Alice", "GET", "/task/v2/tasks").json["data"]["items"] == []


def test_a_task_is_deleted_by_who_made_it_or_has_it(diary):
    guid = diary.task(members=[member(diary.tenant, "Bob")]).json["data"]["task"]["guid"]
    assert code(diary.as_("陈晨", "DELETE", f"/task/v2/tasks/{guid}")) == (403, 1470403)
    assert code(diary.as_("Alice", "DELETE", f"/task/v2/tasks/{guid}")) == (200, 0)
    assert code(diary.as_("Alice", "DELETE", f"/task/v2/tasks/{guid}")) == (404, 1470404)


@every_row(
    "wrong",
    [{"summary": ""}, {"client_token": "short"}, {"members": [{"id": "ou_1", "role": "boss"}]}],
)
def test_a_task_without_title_or_with_a_strange_member_is_refused(diary, wrong):
    assert code(diary.task(**wrong)) == (400, 1470400)


def test_each_call_needs_its_own_scope(tenant):
    diary = Diary(tenant)
    diary.tokens["Alice"] = diary.grants.connect("Alice", "task:task:read")["access_token"]
    assert code(diary.as_("Alice", "GET", "/task/v2/tasks")) == (200, 0)
    assert code(diary.task()) == (400, 99991679)
    assert code(diary.busy("Alice", "Bob")) == (400, 99991679)


def test_what_a_person_grants_adds_up(tenant):
    grants = Grants(tenant)
    grants.connect("Alice", "offline_access search:docs:read")
    issued = grants.connect("Alice", "offline_access task:task:read")
    assert set(issued["scope"].split()) == {"offline_access", "search:docs:read", "task:task:read"}
    grants.connect("Bob", "task:task:write")
    assert "task:task:write" not in grants.connect("Alice", "task:task:read")["scope"].split()


def test_everybody_s_agenda_is_shown_with_what_was_deleted(diary):
    tenant = diary.tenant
    event = diary.book().json["data"]["event"]["event_id"]
    diary.invite(event, "Bob")
    tenant.control("POST", "agendas/tasks", {"as": tenant.people["Bob"], "summary": "tidy up"})
    tenant.control("POST", "agendas/remove", {"event_id": event})
    shown = {one["name"]: one for one in tenant.control("GET", "agendas")["items"]}
    assert shown["Bob"]["events"][0]["deleted"]
    assert shown["Alice"]["events"][0]["attendees"] == ["Bob"]
    assert shown["Bob"]["tasks"][0]["summary"] == "tidy up"


def _at(seconds):
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def test_descriptions_are_kept(diary):
    event = diary.book(description="bring slides").json["data"]["event"]
    body = {"summary": "slides", "description": "ten pages"}
    task = diary.as_("Alice", "POST", "/task/v2/tasks", body).json["data"]["task"]

    assert (event["description"], task["description"]) == ("bring slides", "ten pages")


def test_an_event_of_whole_days_is_shown_by_its_dates_and_keeps_people_busy(diary):
    first, last = ({"date": f"2026-02-0{day}"} for day in (4, 5))  # the clock stands on the 2nd
    made = diary.book(start_time=first, end_time=last).json["data"]["event"]
    (seen,) = diary.view("Alice", days=20).json["data"]["items"]
    for event in (made, seen):
        assert (event["start_time"], event["end_time"]) == (first, last)
    for start, end, count in (("03", "04", 0), ("04", "05", 1), ("05", "06", 1), ("06", "07", 0)):
        day = [f"2026-02-{one}T00:00:00Z" for one in (start, end)]
        assert len(diary.busy("Bob", "Alice", *day).json["data"]["freebusy_list"]) == count


@every_row(
    "end",
    [
        {"date": "2026-02-30"},
        {"date": "4 February"},
        {"date": 20260204},
        {"date": "2026-02-04", "timestamp": "1770000000"},
        {"date": "2026-02-01"},
        {"timestamp": "1770200000"},
    ],
)
def test_a_day_that_is_none_or_before_the_start_is_refused(diary, end):
    assert code(diary.book(start_time={"date": "2026-02-03"}, end_time=end)) == (400, 190002)


def test_further_fields_are_given_back_or_refused_by_name(diary):
    kept = {"visibility": "private", "color": 7, "reminders": [{"minutes": 5}]}
    assert diary.book(**kept).json["data"]["event"].items() >= kept.items()
    kept = {"extra": "dGVzdA==", "mode": 1}
    assert diary.task(**kept).json["data"]["task"].items() >= kept.items()
    for call, name in ((diary.book, "recurrence"), (diary.task, "repeat_rule")):
        told = call(**{name: "FREQ=DAILY;INTERVAL=1"})
        assert code(told) == (400, 99991201)
        assert told.json["msg"] == f"The sandbox does not play {name}."


def test_ids_of_another_kind_are_refused_by_name(diary):
    def told(kind):
        return diary.as_("Alice", "POST", f"{CALENDARS}/primary", {}, user_id_type=kind)

    for kind in ("user_id", "union_id"):
        assert told(kind).json["msg"] == f"The sandbox does not play user_id_type={kind}."
    assert code(told("email")) == (400, 99992402)
    (violation,) = told("email").json["error"]["field_violations"]
    assert (violation["field"], violation["value"]) == ("user_id_type", "email")
