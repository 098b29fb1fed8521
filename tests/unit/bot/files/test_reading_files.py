"""Reading files in a process of their own: each kind, and what hostile ones come to."""

from __future__ import annotations

import asyncio
import contextlib
import io
import resource
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bot.files import extracting
from bot.files.extracting import NoText, extract
from bot.files.reading import FileReader, Read, ReadingLimits, Unread
from tests.support import hostile_files as made

pytestmark = pytest.mark.anyio

LIMITS = ReadingLimits(megabytes=20, seconds=5, characters=20_000)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr("bot.files.reading._PATIENCE", 60)


def _watch_memory(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The resident memory in MB of the processes that are started, as it is seen."""
    peaks: list[int] = []
    real, watching = asyncio.create_subprocess_exec, set()

    async def watch(process: psutil.Process) -> None:
        with contextlib.suppress(psutil.Error):
            while True:
                peaks.append(process.memory_info().rss >> 20)
                await asyncio.sleep(0.01)

    async def started(*command, **options):  # type: ignore[no-untyped-def]
        process = await real(*command, **options)
        watching.add(asyncio.create_task(watch(psutil.Process(process.pid))))
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", started)
    return peaks


async def read(name: str, data: bytes, limits: ReadingLimits = LIMITS) -> Read | Unread:
    return await FileReader().read(name, data, limits)


async def text_of(name: str, data: bytes) -> str:
    found = await read(name, data)
    assert isinstance(found, Read), found
    return found.text


ENCODED = [
    *((name, "苹果,价格\n国光,3") for name in ("utf-8", "utf-8-sig", "utf-16", "gb18030")),
    ("big5", "城市,人口\n高雄,274\n臺北,250\n"),
    ("big5", "第三季度預算報告：市場部需要在週五之前完成。"),
    ("cp932", "都市,人口\n東京,1396\n大阪,275\nさいたま,7\n"),
    ("euc_jp", "りんごの価格は今年すこし上がりました。\n"),
    ("cp1252", "Stadt;Gäste\nKöln – Süd;7\nMálaga “alt”;3\n"),
    ("cp1252", "name\nMüller\n"),
    ("cp1251", "город;люди\nМосква;12\n"),
    ("utf-16-le", "城市,人口\n高雄,274\n"),
    ("utf-16-be", "city,visitors\nOulu,41\n"),
    ("utf-32", "城市,人口\n"),
    ("utf-16-be", "城市,人数\n上海,12\n北京,7\nOulu,3\n"),
    ("utf-16-le", "会议在星期一举行，预算三万元。\n第一项：一致通过\n"),
    ("utf-16-be", "第一会议室\n"),
    ("gb18030", "城市,人数\n上海,12\n北京,7\n"),
    ("gb18030", "会议纪要：周五发布，预算四千二百欧元。"),
    ("big5", "城市,人數\n臺北,12\n高雄,7\n"),
    ("big5", "會議紀錄：週五發布，預算四千二百歐元。"),
    ("cp932", "名前,年齢\n田中,30\nスズキ,41\n"),
    ("cp1252", "Prénom;Âge\nRenée;30\nÉlodie;41\n"),
    ("gb18030", "第三季度预算报告：市场部需要在周五之前完成。张三负责。\n"),
    ("iso2022_jp", "都市,人口\n東京,1396\n大阪,275\n"),
    ("iso2022_kr", "도시,인구\n서울,967\n"),
    ("hz", "城市,人口\n上海,2487\n"),
]
WITH_ZEROS = [
    *(
        (name, "city,visitors\nOulu,4\x001\n第三季度预算报告：市场部需要在周五之前完成。\n")
        for name in ("utf-8", "utf-16", "utf-32", "gb18030", "utf-16-le")
    ),
    ("utf-8", "city,visitors\nOulu,4\x001\n"),
    ("utf-8", "city,visitor\nOulu,4\x001\n"),
    ("utf-8", "city,visitors\nOulu,4\x001\nTurku,4\x0012\n"),
    ("utf-8", "城市,人口\n上海,2\x00487\n"),
    ("utf-8", "city,visitors\nOulu,41\n" + 400 * "\x00"),
    ("utf-8", "城市,人口\n上海,2487\n" + 33 * "\x00"),
]


def decoded(data: bytes) -> str:
    """The text of a file as the process gives it, without a process."""
    return str(extract("csv", data, LIMITS.characters, LIMITS.seconds)["text"])


class TestKinds:
    def test_text_in_the_encodings_that_people_use_and_seldom_name(self) -> None:
        read = {case: decoded(case[1].encode(case[0])) for case in ENCODED}
        assert read == {case: case[1].strip() for case in ENCODED}

    def test_zero_characters_are_left_out(self) -> None:
        read = {case: decoded(case[1].encode(case[0])) for case in WITH_ZEROS}
        assert read == {case: case[1].replace("\x00", "").strip() for case in WITH_ZEROS}

    async def test_a_doubtful_encoding_is_remarked(self) -> None:
        found = await read("a.csv", "城市,人口\n高雄,274\n".encode("big5"))
        assert isinstance(found, Read)
        assert found.remarks == ("its encoding is guessed (big5)",)
        named = await read("a.csv", "城市,人口\n高雄,274\n".encode("utf-16"))
        assert isinstance(named, Read)
        assert named.remarks == ()

    def test_a_text_cut_in_its_last_character_keeps_the_rest(self) -> None:
        said = "城市,人口\n上海,2487\n北京".encode()
        read = [decoded(said[:-cut]) for cut in (1, 2, 3, 4)]
        assert [one.startswith("城市,人口\n上海,2487") for one in read] == [True] * 4

    async def test_a_damaged_character_does_not_spoil_the_others(self) -> None:
        data = "城市,人口\n上海,2487\n北京,2189\n".encode().replace("海".encode(), b"\xe6\xb5")
        found = await read("a.csv", data)
        assert found == Read(
            "城市,人口\n上\ufffd,2487\n北京,2189",
            remarks=("its encoding is guessed (utf-8, damaged)",),
        )

    async def test_pages_of_a_pdf(self) -> None:
        text = await text_of("Plan.PDF", made.pdf("Ship on Friday", "Apples: 4"))
        assert text.split("\n") == ["Ship on Friday", "Apples: 4"]

    async def test_paragraphs_and_tables_of_a_document(self) -> None:
        table = (("Who", "When"), ("陈晨", "周五"))
        text = await text_of("a.docx", made.docx("The plan", "", "第二段", table=table))
        assert text.split("\n") == ["The plan", "", "第二段", "Who | When", "陈晨 | 周五"]

    async def test_sheets_of_a_workbook(self) -> None:
        sheets = {"Q1": (("fruit", "n"), ("apple", 3), (None, None)), "空": ((1.5, True),)}
        text = await text_of("a.xlsx", made.xlsx(sheets))
        assert text.split("\n") == ["# Q1", "fruit | n", "apple | 3", "", "# 空", "1.5 | TRUE"]

    async def test_a_long_text_is_its_beginning(self) -> None:
        found = await read("a.txt", b"word " * 10_000, ReadingLimits(20, 5, 100))
        assert isinstance(found, Read)
        assert (len(found.text), found.cut) == (99, True)


class TestHostile:
    @pytest.mark.parametrize(
        ("name", "data", "reason"),
        [
            ("a.zip", b"PK\x03\x04", "kind"),
            ("a.exe", b"MZ", "kind"),
            ("noending", b"text", "kind"),
            ("a.txt", b"", "empty"),
            ("a.txt", b" \n ", "empty"),
            ("a.txt", made.pdf("x"), "other_content"),
            ("a.txt", bytes(range(32)) * 50, "other_content"),
            ("a.pdf", b"just text", "other_content"),
            ("a.pdf", b"%PDF-1.7\n" + b"\xff" * 5000, "damaged"),
            ("a.docx", b"just text", "other_content"),
            ("a.docx", made.xlsx({"a": ((1,),)}), "other_content"),
            ("a.docx", made.docx("text")[:500], "damaged"),
            ("a.pdf", made.pdf("secret", password="pw"), "encrypted"),
            ("a.docx", made.locked_office(), "encrypted"),
            ("a.xlsx", made.locked_office(), "encrypted"),
            ("a.pdf", made.pdf(""), "no_text"),
        ],
    )
    async def test_it_is_refused_in_one_word(self, name: str, data: bytes, reason: str) -> None:
        assert await read(name, data) == Unread(reason)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("name", "make", "reason"),
        [
            ("a.docx", made.zip_bomb, "too_complex"),
            ("a.docx", made.lying_zip_bomb, "too_complex"),
            ("a.docx", made.laughing_docx, "too_complex"),
            ("a.docx", made.deep_docx, "too_complex"),
            ("a.docx", made.spanning_docx, "no_text"),
            ("a.pdf", made.pdf_of_loops, "damaged"),
            ("a.pdf", made.pdf_of_operators, "too_complex"),
            ("a.pdf", made.slow_pdf, "too_complex"),
        ],
    )
    async def test_a_bomb_costs_little_and_the_reason_is_true_of_it(
        self,
        name: str,
        make: Callable[[], bytes],
        reason: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        limits, data, peaks = ReadingLimits(20, 8, 20_000), make(), _watch_memory(monkeypatch)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert await read(name, data, limits) == Unread(reason)  # type: ignore[arg-type]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert after.ru_utime - before.ru_utime < limits.seconds + 1
        assert 0 < max(peaks) < 200

    async def test_a_page_that_takes_too_long_says_so(self) -> None:
        assert await read("a.pdf", made.pdf_of_operators(), ReadingLimits(20, 1, 20_000)) == Unread(
            "time"
        )

    async def test_a_large_text_is_read_within_the_same_memory(self) -> None:
        found = await read("a.csv", b"ab,c\n" * 4_000_000)
        assert isinstance(found, Read)
        assert (found.text[:9], found.cut) == ("ab,c\nab,c", True)

    async def test_nothing_of_the_machine_is_read_into_a_document(self, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("apricot")
        found = await read("a.docx", made.prying_docx(str(secret)))
        assert "apricot" not in repr(found)

    async def test_of_a_sheet_of_a_million_cells_there_is_the_beginning(self) -> None:
        found = await read("a.xlsx", await asyncio.to_thread(made.wide_xlsx, 1000))
        assert isinstance(found, Read)
        assert found.cut
        assert found.text.startswith("# Wide\n0 | 0")

    async def test_of_ten_thousand_pages_there_is_the_beginning(self) -> None:
        found = await read("a.pdf", made.pdf(*(f"page {n}" for n in range(10_000))))
        assert isinstance(found, Read)
        assert found.text.startswith("page 0\npage 1\n")
        assert found.cut

    async def test_a_script_in_a_pdf_is_not_text(self) -> None:
        text = await text_of("a.pdf", made.pdf("Hello", script="apricot"))
        assert text == "Hello"

    async def test_a_name_with_a_path_is_no_path(self) -> None:
        assert await text_of("../../etc/passwd.txt", b"just text") == "just text"


class TestLimits:
    async def test_a_process_without_memory_is_a_refusal(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("bot.files.reading._MEGABYTES", 30)  # too little to load anything
        assert await read("a.pdf", made.pdf("x")) == Unread("too_complex")

    async def test_the_process_knows_nothing_of_the_environment(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given: dict[str, str] = {}
        real = asyncio.create_subprocess_exec

        async def spied(*command, **options):  # type: ignore[no-untyped-def]
            given.update(options["env"])
            return await real(*command, **options)

        monkeypatch.setenv("FEISHU_APP_SECRET", "s3cret")
        monkeypatch.setattr(asyncio, "create_subprocess_exec", spied)
        assert await text_of("a.txt", b"x") == "x"
        assert "FEISHU_APP_SECRET" not in given

    async def test_a_machine_that_has_no_time_for_it_is_not_blamed_on_the_file(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("bot.files.reading._PATIENCE", 0.001)
        assert await read("a.docx", made.docx("text")) == Unread("busy")

    async def test_time_is_up_between_two_lines(self) -> None:
        with pytest.raises(NoText, match="too_complex"):
            extract("txt", b"\n\n", 100, -1)
        assert extract("txt", b"a\nb", 100, -1) == {"text": "a", "cut": True, "remarks": []}

    async def test_what_is_no_answer_is_a_refusal(
        self, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        class Stdin:
            buffer = io.BytesIO(b"%PDF-1.7 nothing of it")

        monkeypatch.setattr(extracting, "limit", lambda *_: None)
        monkeypatch.setattr("sys.stdin", Stdin)
        assert extracting.main(["pdf", "100", "5", "640"]) == 0
        assert capsysbinary.readouterr().out == b'{"refused": "damaged"}'
