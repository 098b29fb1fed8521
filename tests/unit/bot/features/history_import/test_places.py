"""Where an import goes on."""

from __future__ import annotations

import pytest

from bot.features.history_import.reading import PagePlace, PagesLeadNowhere, place_of
from bot.feishu.models import HistoryPage, raw_message


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


def test_the_last_page_has_no_following():
    assert PagePlace().after(page("", START), by_time=True) is None


def test_a_page_is_followed_by_that_of_its_token():
    following = PagePlace(start_s=START).after(page("t1", START + 3, START + 5), by_time=True)
    assert following == PagePlace("t1", START, START + 5)


def test_a_token_that_expired_is_replaced_by_the_time_of_the_last_message():
    place = PagePlace("t1", START, START + 5)
    assert place.again(by_time=True) == PagePlace("", START + 5, START + 5, 1)


def test_a_thread_is_begun_again():
    assert PagePlace("t1", None, START).again(by_time=False) == PagePlace("", None, START, 1)


def test_tokens_that_never_work_lead_nowhere():
    place = PagePlace("t1", None, START)
    for _ in range(3):
        place = place.again(by_time=False)
        following = place.after(page("t1", START), by_time=False)
        assert following is not None
        place = following
    with pytest.raises(PagesLeadNowhere):
        place.again(by_time=False)


def test_getting_on_makes_up_for_it():
    place = PagePlace("", START, START, 3).after(page("t2", START + 60), by_time=True)
    assert place == PagePlace("t2", START, START + 60, 0)


def test_a_page_that_names_itself_as_the_next_leads_nowhere():
    with pytest.raises(PagesLeadNowhere):
        PagePlace("t1", START).after(page("t1", START + 1), by_time=True)


def test_a_token_too_long_to_keep_is_replaced_by_time():
    long = page("t" * 2000, START + 7)
    assert PagePlace("", START).after(long, by_time=True) == PagePlace("", START + 7, START + 7)
    with pytest.raises(PagesLeadNowhere):
        PagePlace("", None).after(long, by_time=False)


def test_a_place_fits_into_its_column():
    assert len(PagePlace("t" * 800, START, START, 3).text) <= 1000
