"""Pushing: encryption, signature, deadline and retries, with a set clock and no network."""

import base64
import hashlib
import itertools
import json
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from sandbox.config import SandboxConfig
from sandbox.world.push import (
    Pusher,
    encrypt,
    plain_body,
    retry_delay_s,
    seal,
    signature,
    signed_headers,
)

DATA = Path(__file__).parents[2] / "data" / "sandbox"
EVENT = {"schema": "2.0", "header": {"event_id": "e1", "event_type": "t"}, "event": {"名": "字"}}


def load(name):
    return json.loads((DATA / name).read_text())


def decrypt(key, encrypted):
    raw = base64.b64decode(encrypted)
    digest = hashlib.sha256(key.encode()).digest()
    decryptor = Cipher(algorithms.AES(digest), modes.CBC(raw[:16])).decryptor()
    unpadder = PKCS7(128).unpadder()
    return unpadder.update(decryptor.update(raw[16:])) + unpadder.finalize()


class Network:
    """Answers posts from a list of statuses (0: no answer), and takes `took_s` of the clock."""

    def __init__(self, *statuses, took_s=0.0):
        self.statuses, self.took_s, self.now, self.posts = list(statuses), took_s, 1000.0, []

    def __call__(self, url, body, headers, deadline_s):
        self.now += self.took_s
        self.posts.append((self.now, url, body, headers))
        status = self.statuses.pop(0) if self.statuses else 200
        if not status:
            raise ConnectionError("refused")
        return status, b"{}"

    def pusher(self, **config):
        settings = SandboxConfig(webhook_url="http://app/webhook", **config)
        return Pusher(settings, self, clock=lambda: self.now)


def pushed(network, **config):
    pusher = network.pusher(push_threads=0, **config)
    return pusher, pusher.push(EVENT)


def test_encryption_reproduces_the_official_vector():
    vector = load("crypto_official_vector.json")
    iv = base64.b64decode(vector["encrypt"])[:16]
    assert encrypt(vector["key"], vector["plaintext"].encode(), iv=iv) == vector["encrypt"]


def test_the_signature_of_a_known_push_is_reproduced():
    known = load("webhook_encrypted_event.json")
    headers = known["headers"]
    made = signature(
        headers["X-Lark-Request-Timestamp"],
        headers["X-Lark-Request-Nonce"],
        known["encrypt_key"],
        known["raw_body"].encode(),
    )
    assert made == headers["X-Lark-Signature"]


def test_a_sealed_event_opens_to_the_same_event():
    config = SandboxConfig(encrypt_key="k")
    body = seal(config, plain_body(EVENT))
    assert json.loads(decrypt("k", json.loads(body)["encrypt"])) == EVENT
    assert json.loads(decrypt("k", encrypt("k", b"{}"))) == {}


def test_without_an_encrypt_key_events_are_plain_and_unsigned():
    config = SandboxConfig(encrypt_key="")
    assert json.loads(seal(config, plain_body(EVENT))) == EVENT
    assert "X-Lark-Signature" not in signed_headers(config, b"{}")


def test_an_acknowledged_event_is_pushed_once():
    network = Network(200)
    pusher, delivery = pushed(network)
    assert pusher.run_due() == 1
    assert delivery.done
    network.now += 1e6
    assert pusher.run_due() == 0


def test_an_event_that_fails_is_pushed_four_times_more_on_feishus_schedule():
    network = Network(500, 0, 503, 404, 500)
    pusher, delivery = pushed(network)
    times = []
    for wait in (0, 15, 300, 3600, 21600):
        if wait:
            network.now += wait - 0.001
            assert pusher.run_due() == 0
            network.now += 0.001
        assert pusher.run_due() == 1
        times.append(network.posts[-1][0])
    assert [round(b - a) for a, b in itertools.pairwise(times)] == [15, 300, 3600, 21600]
    assert delivery.done
    assert [one.status for one in delivery.attempts] == [500, 0, 503, 404, 500]
    network.now += 1e6
    assert pusher.run_due() == 0


def test_the_schedule_can_be_scaled():
    assert retry_delay_s(1, 0.001) == 0.015
    assert retry_delay_s(4, 1) == 21600
    assert retry_delay_s(5, 1) is None


def test_each_attempt_is_signed_anew_over_the_same_body():
    network = Network(500, 200)
    pusher, _ = pushed(network)
    pusher.run_due()
    network.now += 15
    pusher.run_due()
    (_, _, first, one), (_, _, second, other) = network.posts
    assert first == second
    assert one["X-Lark-Request-Nonce"] != other["X-Lark-Request-Nonce"]
    for headers in (one, other):
        assert headers["X-Lark-Signature"] == signature(
            headers["X-Lark-Request-Timestamp"],
            headers["X-Lark-Request-Nonce"],
            SandboxConfig().encrypt_key,
            first,
        )


def test_an_answer_after_three_seconds_counts_as_none():
    network = Network(200, took_s=3.1)
    pusher, delivery = pushed(network)
    pusher.run_due()
    assert not delivery.done
    assert delivery.attempts[0].status == 0


def test_a_callback_is_asked_once():
    network = Network(500)
    pusher = network.pusher(push_threads=0, card_webhook_url="http://app/card")
    attempt, _ = pusher.ask(EVENT)
    assert attempt.status == 500
    network.now += 1e6
    assert pusher.run_due() == 0
    assert network.posts[0][1] == "http://app/card"


def test_nothing_is_pushed_without_a_webhook_url():
    network = Network()
    pusher = Pusher(SandboxConfig(), network)
    assert pusher.push(EVENT) is None
    assert not network.posts


def test_a_sealed_push_is_compact_json():
    body = seal(SandboxConfig(encrypt_key="k"), plain_body(EVENT))
    assert body == json.dumps(json.loads(body), separators=(",", ":")).encode()
