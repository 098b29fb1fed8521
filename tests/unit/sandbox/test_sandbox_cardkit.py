"""Card entities: sequence, streaming mode, limits and partial updates, as CardKit has them."""

import json
from pathlib import Path

import pytest

from tests.support.rows import every_row

DATA = Path(__file__).parents[2] / "data" / "sandbox"


class Entity:
    """One card entity, with a sequence that counts by itself."""

    def __init__(self, tenant, streaming=True, elements=None):
        self.tenant, self.sequence = tenant, 0
        elements = elements or [{"tag": "markdown", "element_id": "answer", "content": "…"}]
        self.body = {
            "schema": "2.0",
            "config": {"streaming_mode": streaming, "update_multi": True},
            "body": {"elements": elements},
        }
        answer = create(tenant, self.body)
        self.card_id = answer.json["data"]["card_id"]

    def do(self, method, path, body, sequence=None):
        self.sequence += 1
        number = self.sequence if sequence is None else sequence
        url = f"/cardkit/v1/cards/{self.card_id}{path}"
        return self.tenant.call(method, url, {"sequence": number, **body})

    def stream(self, content, sequence=None, element="answer", **more):
        body = {"content": content, **more}
        return self.do("PUT", f"/elements/{element}/content", body, sequence)

    def settings(self, sequence=None, **config):
        return self.do("PATCH", "/settings", {"settings": json.dumps({"config": config})}, sequence)

    def batch(self, *actions):
        return self.do("POST", "/batch_update", {"actions": json.dumps(actions)})

    def send(self, asked):
        content = json.dumps({"type": "card", "data": {"card_id": self.card_id}})
        body = {"msg_type": "interactive", "content": content}
        return self.tenant.call("POST", f"/im/v1/messages/{asked}/reply", body)

    def shown(self):
        return self.tenant.platform.world.cards[self.card_id].body["body"]["elements"]


def create(tenant, body):
    data = body if isinstance(body, str) else json.dumps(body)
    return tenant.call("POST", "/cardkit/v1/cards", {"type": "card_json", "data": data})


def code(response):
    return response.json["code"]


def assert_is_fixture(response, name):
    known = json.loads((DATA / name).read_text())
    assert (response.status_code, response.json) == (known["http_status"], known["body"])


@pytest.fixture
def entity(tenant):
    return Entity(tenant)


def test_text_streams_into_the_message_that_shows_the_card(tenant, entity):
    sent = entity.send(tenant.say("hello")).json["data"]["message_id"]
    assert tenant.control("GET", f"messages/{sent}")["streaming"] is True
    entity.stream("Hel")
    entity.stream("Hello")
    view = tenant.control("GET", f"messages/{sent}")
    assert view["card"]["body"]["elements"][0]["content"] == "Hello"
    assert view["sequence"] == 2
    entity.settings(streaming_mode=False)
    assert tenant.control("GET", f"messages/{sent}")["streaming"] is False


def test_the_sequence_must_grow_strictly_over_all_operations(entity):
    entity.stream("a", sequence=5)
    assert_is_fixture(entity.stream("b", sequence=5), "error_cardkit_300317.json")
    assert code(entity.settings(sequence=4, streaming_mode=False)) == 300317
    assert code(entity.stream("b", sequence=9)) == 0


@every_row("sequence", [0, -1, 2**31, "7", None, True])
def test_a_sequence_that_is_no_positive_int32_is_invalid(entity, sequence):
    body = {"content": "a", "sequence": sequence}
    url = f"/cardkit/v1/cards/{entity.card_id}/elements/answer/content"
    assert code(entity.tenant.call("PUT", url, body)) == 10002


def test_text_does_not_stream_while_streaming_is_off(tenant):
    entity = Entity(tenant, streaming=False)
    assert_is_fixture(entity.stream("a"), "error_cardkit_300309.json")
    entity.settings(streaming_mode=True)
    assert code(entity.stream("a")) == 0


def test_streaming_closes_by_itself_after_ten_minutes(tenant, entity):
    sent = entity.send(tenant.say("hello")).json["data"]["message_id"]
    tenant.clock.now += 599
    assert code(entity.stream("a")) == 0
    tenant.clock.now += 1
    assert tenant.control("GET", f"messages/{sent}")["streaming"] is False
    assert_is_fixture(entity.stream("b"), "error_cardkit_200850.json")
    assert code(entity.settings(streaming_mode=True)) == 0
    assert code(entity.stream("b")) == 0


def test_a_card_takes_ten_operations_a_second(tenant, entity):
    answers = [code(entity.stream("x" * n)) for n in range(1, 12)]
    assert answers == [0] * 10 + [99991400]
    tenant.clock.now += 1
    assert code(entity.stream("x")) == 0


def test_an_entity_is_sent_once(tenant, entity):
    asked = tenant.say("hello")
    assert entity.send(asked).status_code == 200
    assert "ErrCode" in entity.send(asked).json["msg"]


def test_an_unknown_entity_does_not_exist(tenant, entity):
    entity.card_id = "7000000000000000000"
    assert_is_fixture(entity.stream("a"), "error_cardkit_200740.json")
    assert "200740" in entity.send(tenant.say("hello")).json["msg"]


def test_a_uuid_is_used_once(entity):
    assert code(entity.stream("a", uuid="u")) == 0
    assert_is_fixture(entity.stream("b", uuid="u"), "error_cardkit_200770.json")


def test_only_text_elements_stream_and_they_must_exist(tenant):
    entity = Entity(tenant, elements=[{"tag": "hr", "element_id": "line"}])
    assert code(entity.stream("a", element="line")) == 300310
    assert code(entity.stream("a", element="nope")) == 300313


def test_streamed_text_is_not_empty(entity):
    assert code(entity.stream("")) == 10002


def test_a_card_that_grows_over_thirty_kilobytes_is_refused_and_stays_as_it_was(entity):
    entity.stream("short")
    assert_is_fixture(entity.stream("长" * 11_000), "error_cardkit_200860.json")
    assert entity.shown()[0]["content"] == "short"


def test_streamed_text_is_checked_like_a_card(entity):
    table = "| a |\n|---|\n| 1 |\n\n"
    assert "11310" in entity.stream(table * 6).json["msg"]
    assert "100290" in entity.stream("<at id=ou_nobody></at>").json["msg"]


@every_row(
    "body, expected",
    [
        ({"schema": "1.0"}, 300303),
        ({"schema": "2.0", "config": {"update_multi": False}}, 300302),
        ({"schema": "2.0", "body": {"elements": [{"tag": "hr"}] * 201}}, 300305),
        ({"schema": "2.0", "body": {"elements": [{"tag": "hr", "element_id": "a"}] * 2}}, 300301),
        ({"schema": "2.0", "elements": []}, 200220),
        ("", 300307),
        ("{", 200220),
    ],
)
def test_a_bad_card_is_refused_with_the_code_of_its_fault(tenant, body, expected):
    assert code(create(tenant, body)) == expected


def test_the_whole_card_can_be_replaced(entity):
    body = {**entity.body, "body": {"elements": [{"tag": "markdown", "content": "final"}]}}
    answer = entity.do("PUT", "", {"card": {"type": "card_json", "data": json.dumps(body)}})
    assert code(answer) == 0
    assert entity.shown() == [{"tag": "markdown", "content": "final"}]


def test_elements_are_added_changed_and_deleted_in_one_batch(entity):
    line = {"tag": "hr", "element_id": "line"}
    answer = entity.batch(
        {
            "action": "partial_update_setting",
            "params": {"settings": {"config": {"streaming_mode": False}}},
        },
        {
            "action": "add_elements",
            "params": {"type": "insert_after", "target_element_id": "answer", "elements": [line]},
        },
        {
            "action": "update_element",
            "params": {"element_id": "answer", "element": {"tag": "markdown", "content": "done"}},
        },
    )
    assert code(answer) == 0
    assert entity.shown() == [{"element_id": "answer", "tag": "markdown", "content": "done"}, line]
    assert (
        code(entity.batch({"action": "delete_elements", "params": {"element_ids": ["line"]}})) == 0
    )
    assert len(entity.shown()) == 1


def test_a_batch_is_applied_whole_or_not_at_all(entity):
    answer = entity.batch(
        {"action": "delete_elements", "params": {"element_ids": ["answer"]}},
        {"action": "delete_elements", "params": {"element_ids": ["nope"]}},
    )
    assert code(answer) == 300314
    assert entity.shown()[0]["element_id"] == "answer"


def test_settings_take_nothing_but_config_and_card_link(entity):
    answer = entity.do("PATCH", "/settings", {"settings": '{"header": {}}'})
    assert code(answer) == 300122
