"""How `rlm_tf train` reads, looks at and cuts a text."""

from __future__ import annotations

import gzip

import pytest

from rlm_tf.commands.settings import TrainSettings
from rlm_tf.commands.training import reading

LINE = "the cat sat on the mat and saw the dog\n"


def settings(path, **options) -> TrainSettings:
    return TrainSettings(text=str(path), output_dir="unused", **options)


def written(path, content: bytes):
    path.write_bytes(content)
    return path


def numbered(count: int) -> bytes:
    return b"".join(b"%d %s" % (i, LINE.encode()) for i in range(count))


def test_a_text_is_cut_at_lines_in_its_order(tmp_path):
    path = written(tmp_path / "a.txt", numbered(1000).rstrip(b"\n"))
    texts = reading.read_texts(settings(path))
    assert b"".join(texts.splits.values()) == numbered(1000)
    sizes = [len(text) / len(numbered(1000)) for text in texts.splits.values()]
    assert sizes == pytest.approx([0.8, 0.1, 0.1], abs=0.01)
    assert all(
        text.endswith(b"mat and saw the dog\n") for text in texts.splits.values()
    )
    assert "1,000 lines" in texts.notes[0] and texts.notes[1] == "scripts: Latin 100 %"


def test_packed_texts_and_long_lines_are_read(tmp_path):
    with gzip.open(tmp_path / "a.txt.gz", "wb") as file:
        file.write(numbered(400).replace(b"\n", b" "))
    texts = reading.read_texts(settings(tmp_path / "a.txt.gz"))
    assert all(len(text) > 1000 for text in texts.splits.values())
    assert any("within lines" in note for note in texts.notes)


def test_given_splits_stay_and_more_text_is_counted(tmp_path):
    names = ("train", "valid", "test", "count")
    paths = {n: written(tmp_path / n, n.encode() * 50 + b"\n") for n in names}
    texts = reading.read_texts(
        settings(
            paths["train"],
            valid=str(paths["valid"]),
            test=str(paths["test"]),
            count_text=str(paths["count"]),
        )
    )
    assert texts.splits["valid"] == b"valid" * 50 + b"\n"
    assert texts.counted == b"count" * 50 + b"\n"
    assert not texts.warnings


def test_counted_text_with_held_out_lines_is_told(tmp_path):
    path = written(tmp_path / "a.txt", numbered(1000))
    texts = reading.read_texts(settings(path, count_text=str(path)))
    assert texts.warnings[-1].startswith(
        "100 % of a held-out text are lines of --count_text"
    )


def test_a_given_test_text_is_measured_whole(tmp_path):
    paths = {n: written(tmp_path / n, numbered(20_000)) for n in ("train", "test")}
    texts = reading.read_texts(
        settings(paths["train"], valid=str(paths["test"]), test=str(paths["test"]))
    )
    assert texts.splits["test"] == numbered(20_000)


def test_of_a_large_text_whole_lines_of_the_first_part_are_used(tmp_path):
    path = written(tmp_path / "a.txt", numbered(1000))
    texts = reading.read_texts(settings(path, most_megabytes=0.01))
    whole = b"".join(texts.splits.values())
    assert numbered(1000).startswith(whole) and whole.endswith(b"\n")
    assert 10_000 <= len(whole) < 10_100
    assert "--most_megabytes" in texts.warnings[0]


def test_of_large_held_out_texts_the_first_part_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_MOST_HELD_OUT", 1000)
    path = written(tmp_path / "a.txt", numbered(1000))
    texts = reading.read_texts(settings(path))
    assert 1000 <= len(texts.splits["test"]) < 1100 < len(texts.splits["train"])
    assert sum("are measured" in note for note in texts.notes) == 2


def test_held_out_lines_that_were_seen_are_told(tmp_path):
    path = written(tmp_path / "a.txt", LINE.encode() * 200)
    texts = reading.read_texts(settings(path))
    assert any("100 % of a held-out text" in line for line in texts.warnings)


def test_scripts_are_told(tmp_path):
    text = "\u8fd9\u662f\u4e00\u53e5\u8bdd\u3002\nabc\n" * 300
    texts = reading.read_texts(settings(written(tmp_path / "a", text.encode())))
    assert texts.notes[1] == "scripts: Han 62 %, Latin 38 %"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\n \t\n", "has blanks alone"),
        (b"one line\n", "a text of 1 line and 9 bytes is too short"),
        (b"\x89PNG\r\n\0\0" * 50, "line 2: expected text, found a zero byte"),
        ("caf\u00e9\n".encode("latin-1") * 900, "0xe9.*iconv -f ISO-8859-1 -t UTF-8"),
        ("text\n".encode("utf-16") * 900, "is UTF-16; .*iconv -f UTF-16 -t UTF-8"),
    ],
)
def test_what_is_no_text_is_told_with_the_remedy(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        reading.read_texts(settings(written(tmp_path / "a", content)))
