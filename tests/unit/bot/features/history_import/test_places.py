"""Where an import goes on."""

from __future__ import annotations

import pytest

from bot.features.history_import.reading import PagePlace, PagesLeadNowhere, place_of
from bot.feishu.models import HistoryPage, raw_message
from tests.support.rows import every_row


def page(token: str, *seconds: int) -> HistoryPage:
    items = [{"message_id": f"om_{s}", "create_time": str(s * 1000)} for s in seconds]
    return HistoryPage(tuple(map(raw_message, items)), token)


START = 1_700_000_000


def test_a_place_is_the_same_after_it_was_stored():
    place = PagePlace("token", START, START + 9, 1)
    assert place_of(place.text, None) == place


def test_the_beginning_is_where_the_import_begins():
    assert place_of("", START) == PagePlace(start_s=START)
    assert place_of("nonsense", START) == PagePlace(start_s=START)


LONG = "t" * 2000


@every_row(
    ("why", "place", "read", "following"),
    [
        ("the last page has none", PagePlace(), page("", START), None),
        ("that of the token", PagePlace(start_s=START), page("t1", START + 3, START + 5),
         PagePlace("t1", START, START + 5)),
        ("getting on makes up for tokens that did not work", PagePlace("", START, START, 3),
         page("t2", START + 60), PagePlace("t2", START, START + 60, 0)),
        ("a token too long to keep is replaced by time", PagePlace("", START),
         page(LONG, START + 7), PagePlace("", START + 7, START + 7)),
    ],
)  # fmt: skip
def test_a_page_is_followed(
    why: str, place: PagePlace, read: HistoryPage, following: PagePlace | None
):
    assert place.after(read, by_time=True) == following


def test_after_a_token_expired_a_chat_goes_on_by_time_and_a_thread_is_begun_again():
    chat, thread = PagePlace("t1", START, START + 5), PagePlace("t1", None, START)
    assert chat.again(by_time=True) == PagePlace("", START + 5, START + 5, 1)
    assert thread.again(by_time=False) == PagePlace("", None, START, 1)


def test_tokens_that_never_work_lead_nowhere():
    place = PagePlace("t1", None, START)
    for _ in range(3):
        place = place.again(by_time=False)
        following = place.after(page("t1", START), by_time=False)
        assert following is not None
        place = following
    with pytest.raises(PagesLeadNowhere):
        place.again(by_time=False)


@every_row(
    ("why", "place", "read", "by_time"),
    [
        ("a page that names itself", PagePlace("t1", START), page("t1", START + 1), True),
        ("a token too long, in a thread", PagePlace("", None), page(LONG, START + 7), False),
    ],
)  # fmt: skip
def test_some_pages_lead_nowhere(why: str, place: PagePlace, read: HistoryPage, by_time: bool):
    with pytest.raises(PagesLeadNowhere):
        place.after(read, by_time=by_time)


def test_a_place_fits_into_its_column():
    assert len(PagePlace("t" * 800, START, START, 3).text) <= 1000
