"""What one answer of the log service holds."""

from armada.server.queries import MAX_LOG_BYTES, bounded_lines

TIME = "2026-01-01T00:00:00Z"


def test_whole_lines_up_to_the_limit() -> None:
    line = "x" * (MAX_LOG_BYTES // 3)
    assert bounded_lines([(TIME, line)] * 4) == [(TIME, line)] * 2


def test_a_line_beyond_the_limit_is_cut_and_not_lost() -> None:
    [(time, line)] = bounded_lines([(TIME, "x" * (MAX_LOG_BYTES + 1)), (TIME, "next")])
    assert time == TIME
    assert 0 < len(line) < MAX_LOG_BYTES


def test_no_lines_are_no_lines() -> None:
    assert bounded_lines([]) == []
