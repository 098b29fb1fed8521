"""A simulated tenant for the tests of the stand-in platform: no threads or network."""

import base64
import hashlib
import json
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from sandbox.app import create_sandbox
from sandbox.config import SandboxConfig
from tests.support import pages


class Clock:
    def __init__(self):
        self.now = 1_770_000_000.0

    def __call__(self):
        return self.now


class Receiver:
    """The app under test: opens what is pushed to it and answers `answer` with `status`."""

    def __init__(self, encrypt_key):
        self.key = hashlib.sha256(encrypt_key.encode()).digest()
        self.events, self.status, self.answer = [], 200, {}
        self.during = lambda: None

    def __call__(self, url, body, headers, deadline_s):
        raw = base64.b64decode(json.loads(body)["encrypt"])
        decryptor = Cipher(algorithms.AES(self.key), modes.CBC(raw[:16])).decryptor()
        unpadder = PKCS7(128).unpadder()
        plain = unpadder.update(decryptor.update(raw[16:])) + unpadder.finalize()
        self.events.append(json.loads(plain))
        self.during()
        if not self.status:
            raise ConnectionError("refused")
        return self.status, json.dumps(self.answer).encode()


class Tenant:
    """The platform over Flask's test client, with a token and shorthands."""

    def __init__(self, **config):
        self.clock = Clock()
        inspector = config.pop("inspector", None)
        preset = SandboxConfig(clock=self.clock, push_threads=0, webhook_url="http://app/event")
        self.config = replace(preset, **config)
        self.receiver = Receiver(self.config.encrypt_key)
        self.app = create_sandbox(self.config, inspector=inspector, post=self.receiver)
        self.http = self.app.test_client()
        self.platform = self.app.extensions["sandbox"]
        state = self.control("GET", "state")
        self.bot = state["bot"]["open_id"]
        self.people = {one["name"]: one["open_id"] for one in state["people"]}
        self.chats = {one["name"]: one["chat_id"] for one in state["chats"]}
        self.group = self.chats["Launch team"]
        self.token = self.fresh_token()

    def fresh_token(self):
        wanted = {"app_id": self.config.app_id, "app_secret": self.config.app_secret}
        answer = self.http.post("/open-apis/auth/v3/tenant_access_token/internal", json=wanted)
        return answer.json["tenant_access_token"]

    def call(self, method, path, body=None, **query):
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return self.http.open(
            "/open-apis" + path, method=method, json=body, query_string=query, headers=headers
        )

    def control(self, method, path, body=None, **query):
        answer = self.http.open(
            "/sandbox/api/" + path, method=method, json=body, query_string=query
        )
        assert answer.status_code < 400, answer.json
        return answer.json

    def pushed(self, event_type=None):
        """Events that reached the app since the last look."""
        self.platform.pusher.run_due()
        seen, self.receiver.events = self.receiver.events, []
        return [one for one in seen if event_type in (None, one["header"]["event_type"])]

    def say(self, text, speaker="Alice", chat=None, **more):
        body = {"as": self.people[speaker], "chat_id": chat or self.group, "text": text, **more}
        return self.control("POST", "messages", body)["message_id"]

    def reply(self, message_id, text="hi", uuid="", **more):
        body = {"msg_type": "text", "content": json.dumps({"text": text}), "uuid": uuid, **more}
        return self.call("POST", f"/im/v1/messages/{message_id}/reply", body)

    def reply_card(self, message_id, content, **more):
        card = {
            "schema": "2.0",
            "config": {"update_multi": True},
            "body": {"elements": [{"tag": "markdown", "content": content}]},
        }
        body = {"msg_type": "interactive", "content": json.dumps(card), **more}
        return self.call("POST", f"/im/v1/messages/{message_id}/reply", body)


@pytest.fixture
def make_tenant():
    """Makes tenants, and closes them afterwards."""
    made = []

    def make(**config):
        made.append(Tenant(**config))
        return made[-1]

    yield make
    for tenant in made:
        tenant.platform.close()


@pytest.fixture
def tenant(make_tenant):
    return make_tenant()


@pytest.fixture(scope="module")
def browser():
    with pages.browser() as launched:
        yield launched


@pytest.fixture(scope="module")
def tab(browser):
    """One tab for all tests, in English; what a page keeps there is of its port alone."""
    return browser.new_context(locale="en-GB").new_page()
