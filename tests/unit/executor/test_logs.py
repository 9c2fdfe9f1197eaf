"""Times, pages and limits of a container's log."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armada.executor.cluster import LogLine, LogRequest
from armada.executor.machine.logs import ContainerLog

START_MS = 1_700_000_000_000


class Written:
    """A log file that grows, with a hand on the clock."""

    def __init__(self, folder: Path, limit_bytes: int = 1 << 20) -> None:
        self.path = folder / "0.log"
        self.path.write_bytes(b"")
        os.utime(self.path, ns=(START_MS * 1_000_000, START_MS * 1_000_000))
        self.limit_bytes = limit_bytes
        self.now_ms = START_MS
        self.log = ContainerLog(self.path, START_MS, limit_bytes)

    def write(self, text: str, after_ms: int = 0) -> None:
        self.now_ms += after_ms
        with self.path.open("ab") as file:
            file.write(text.encode())

    def tick(self, after_ms: int = 1_000) -> None:
        self.now_ms += after_ms
        self.log.note(self.now_ms)

    def lines(self, *, is_complete: bool = False, since_ns: int = 0, tail_lines: int | None = None) -> list[LogLine]:
        request = LogRequest(run_id="r", since_ns=since_ns, tail_lines=tail_lines)
        return self.log.view(is_complete=is_complete).lines(request)

    def texts(self, *, is_complete: bool = False) -> list[str]:
        return [line.text for line in self.lines(is_complete=is_complete)]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def test_times_are_right_to_a_second_and_stay_as_they_were(written: Written) -> None:
    written.write("a\nb\n")
    first = written.lines()
    written.tick()
    for _ in range(3600):
        written.tick()
    written.write("late\n", after_ms=300)
    shown = written.lines()
    assert shown[:2] == first
    assert [line.text for line in shown] == ["a", "b", "late"]
    late_ms = shown[2].time_ns // 1_000_000
    assert written.now_ms - 1_000 <= late_ms <= written.now_ms
    written.tick()
    assert written.lines() == shown
    again = ContainerLog(written.path, START_MS, written.limit_bytes)
    assert again.view(is_complete=True).lines(LogRequest(run_id="r")) == shown


def test_an_unfinished_line_waits_for_its_end(written: Written) -> None:
    written.write("whole\npart")
    assert written.texts() == ["whole"]
    assert written.texts(is_complete=True) == ["whole", "part"]
    written.write("ly\n")
    assert written.texts() == ["whole", "partly"]


def test_bytes_that_are_no_text(written: Written) -> None:
    with written.path.open("ab") as file:
        file.write(b"\xff\0x\r\nprogress 1\rprogress 2\n\n")
    assert written.texts() == ["\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}x", "progress 1\rprogress 2", ""]


def test_a_log_is_kept_in_bounds(tmp_path: Path) -> None:
    written = Written(tmp_path, limit_bytes=4_000)
    seen: dict[int, str] = {}
    for number in range(2_000):
        written.write(f"line {number}\n")
        if number % 20 == 0:
            written.tick()
            for line in written.lines()[1:]:
                assert seen.setdefault(line.time_ns, line.text) == line.text
    assert written.path.stat().st_size < 5_000
    texts = written.texts()
    assert texts[-1] == "line 1999"
    assert 100 < len(texts) < 700
    again = ContainerLog(written.path, START_MS, 4_000)
    assert [line.text for line in again.view(is_complete=True).lines(LogRequest(run_id="r"))] == texts


def test_a_page_has_a_limit_and_the_next_goes_on(written: Written) -> None:
    written.write("".join(f"{number:099}\n" for number in range(1_000)))
    got: list[LogLine] = []
    pages = 0
    while True:
        request = LogRequest(run_id="r", since_ns=got[-1].time_ns if got else 0, limit_bytes=10_050)
        page = written.log.view(is_complete=True).lines(request)
        if not page:
            break
        pages += 1
        got += page
    assert [line.text for line in got] == [f"{number:099}" for number in range(1_000)]
    assert 10 <= pages <= 12


def test_a_line_longer_than_a_page_does_not_stop_the_reader(written: Written) -> None:
    written.write("x" * 300_000 + "\nafter\n")
    request = LogRequest(run_id="r", limit_bytes=70_000)
    (cut,) = written.log.view(is_complete=False).lines(request)
    assert len(cut.text) == 70_000
    onward = LogRequest(run_id="r", limit_bytes=70_000, since_ns=cut.time_ns)
    assert [line.text for line in written.log.view(is_complete=False).lines(onward)] == ["after"]


def test_the_last_lines(written: Written) -> None:
    written.write("".join(f"{number}\n" for number in range(100)))
    assert [line.text for line in written.lines(tail_lines=3)] == ["97", "98", "99"]
    assert written.lines(tail_lines=0) == []
    request = LogRequest(run_id="r", tail_lines=50, limit_bytes=30)
    assert [line.text for line in written.log.view(is_complete=True).lines(request)][-1] == "99"


@given(
    steps=st.lists(st.tuples(st.text("ab\n", max_size=12), st.sampled_from([0, 1, 700, 5_000])), max_size=30),
    restart=st.booleans(),
)
def test_reading_on_from_any_line_gives_the_rest(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int]],
    restart: bool,  # noqa: FBT001 - drawn
) -> None:
    written = Written(tmp_path_factory.mktemp("log"))
    for text, pause_ms in steps:
        written.write(text)
        if pause_ms:
            written.tick(pause_ms)
    if restart:
        written.log = ContainerLog(written.path, START_MS, written.limit_bytes)
    whole = "".join(text for text, _ in steps)
    expected = whole.split("\n")[:-1] + ([whole.split("\n")[-1]] if whole and not whole.endswith("\n") else [])
    lines = written.lines(is_complete=True)
    assert [line.text for line in lines] == expected
    times = [line.time_ns for line in lines]
    assert times == sorted(set(times))
    for index, line in enumerate(lines):
        assert written.lines(is_complete=True, since_ns=line.time_ns) == lines[index + 1 :]
