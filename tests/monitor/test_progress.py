"""Lines that tell how a fit goes on."""

import io

from parablock.monitor import Progress, Record

RECORD = Record(
    iteration=7,
    kind="regrouped",
    seconds=1.25,
    objective=-331.5,
    duality_gap=3.315,
    violation=0.0321,
    step=0.625,
    blocks=12,
    active=3456,
    changed=345,
    updates=99999,
    watched=4000,
    kernel_evaluations=10**9,
)


def lines(verbose, records):
    stream = io.StringIO()
    progress = Progress(verbose, stream)
    progress.say("hello")
    for record in records:
        progress.iteration(record)
    return stream.getvalue().splitlines()


def test_silent_unless_asked():
    assert lines(0, [RECORD] * 3) == []


def test_one_header_and_one_line_an_iteration():
    said, header, *rows = lines(1, [RECORD] * 3)
    assert said == "[parablock] hello"
    assert "objective" in header
    assert "violation" in header
    assert len(rows) == 3


def test_a_line_tells_what_happened_in_columns_under_their_names():
    _, header, row = lines(1, [RECORD])
    assert len(row) == len(header)
    assert row.split() == [
        "[parablock]",
        "7",
        "12",
        "regrouped",
        "4000",
        "3456",
        "0.625",
        "-331.5",
        "9.90e-03",
        "3.21e-02",
        "1.25",
    ]


def test_lines_go_to_standard_error_by_default(capsys):
    Progress(1).say("hello")
    captured = capsys.readouterr()
    assert captured.err == "[parablock] hello\n"
    assert captured.out == ""
