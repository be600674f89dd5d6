"""A user's documents: forms of files, and what is wrong with them, by file and line."""

from __future__ import annotations

import csv
import gzip

import pytest

from rlm_tf.data.labelled.document_files import read_document_rows

_TEXTS = ["a, b", 'say "no"', "two\nlines", "", "naïve 中 \x00", "x" * 300_000]


def _read(path, **options):
    return [row[:2] for row in read_document_rows(path, **options)]


def _csv(path, delimiter=",", newline="\n", encoding="utf-8", zipped=False):
    opened = gzip.open if zipped else open
    with opened(path, "wt", encoding=encoding, newline="") as file:
        table = csv.writer(file, delimiter=delimiter, lineterminator=newline)
        table.writerow(["id", "body", "more"])
        for number, text in enumerate(_TEXTS):
            table.writerow([f"d{number}", text, "-"])


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".TSV", "\t")])
def test_tables(tmp_path, suffix, delimiter, newline, zipped):
    path = tmp_path / f"texts{suffix}{'.gz' if zipped else ''}"
    _csv(path, delimiter, newline, zipped=zipped)
    expected = [(f"d{number}", text) for number, text in enumerate(_TEXTS)]
    assert _read(path, text_column="body", id_column="id") == expected
    # Without a name the column `id` has them.
    assert _read(path, text_column="body") == expected
    by_text = [(text, text) for text in _TEXTS]
    assert _read(path, text_column="body", id_column="body") == by_text
    lines = [row.line for row in read_document_rows(path, text_column="body")]
    assert lines == [2, 3, 5, 6, 7, 8]
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252", "latin-1"])
def test_encodings(tmp_path, encoding):
    path = tmp_path / "a.csv"
    path.write_text("text,n\nna\u00efve,1\n", encoding=encoding)
    shown = "utf-8" if encoding == "utf-8-sig" else encoding
    assert _read(path, encoding=shown) == [("1", "na\u00efve")]


def test_json_and_lines(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a\\nb", "id": 7}\n\n{"id": "x", "text": ""}\n')
    assert _read(path, id_column="id") == [("7", "a\nb"), ("x", "")]
    assert _read(path) == [("7", "a\nb"), ("x", "")]
    path.write_text('{"text": "a"}\n{"text": "b", "id": 5}\n')
    assert _read(path) == [("1", "a"), ("2", "b")]
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\n\r\nthree\x0b\xc2\x85\nfour")
    assert _read(tmp_path / "a.txt") == [
        ("1", "one"),
        ("2", ""),
        ("3", "three\x0b\x85"),
        ("4", "four"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"texts,b\nx,y\n", r"no column 'text' \(did you mean 'texts'\?\)"),
        (
            "a.csv",
            b"text,b\nx,y\nz\n",
            r"a\.csv, line 3: expected 2 columns .* found 1",
        ),
        ("a.csv", b'text\n"a\nb"\n"c', r"line 4: unexpected end of data"),
        ("a.csv", b"text\nok\nx\xff\n", r"line 3: byte 9 is no utf-8 text \(--encod"),
        ("a.csv", b"", r"first line must name the columns"),
        ("a.csv", b"text\n", r"a\.csv: there is no document"),
        ("a.txt", b"", r"a\.txt: there is no document"),
        (
            "a.jsonl",
            b'{"text": "a"}\n{"text"',
            r"line 2: expected a JSON object a line",
        ),
        ("a.jsonl", b'["text"]\n', r"line 1: expected a JSON object, found list"),
        ("a.jsonl", b'{"text": 3}\n', r"line 1: 'text' must be a text, found int"),
        ("a.jsonl", b'{"tex": "a"}\n', r"line 1: has no column 'text' \(did you mean"),
        ("a.csv.gz", b"text\na\n", r"a\.csv\.gz: a damaged \.gz file"),
        (
            "a.csv",
            b"text\rship\rtree\r",
            "line 1: a line ends with CR alone, as on old",
        ),
    ],
)
def test_mistakes(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        _read(tmp_path / name)


def test_damage_is_told_by_its_place(tmp_path):
    data = bytearray(gzip.compress(bytes(range(256)) * 400))
    data[40:60] = bytes(20)
    (tmp_path / "a.txt.gz").write_bytes(data)
    with pytest.raises(ValueError, match=r"a damaged \.gz file"):
        _read(tmp_path / "a.txt.gz", encoding="latin-1")
    # Far behind what a reader holds at once, half a pair of surrogates.
    text = "line\n" * 3000 + "x"
    (tmp_path / "b.txt").write_bytes(text.encode("utf-16-le") + b"\x00\xd8a\x00")
    with pytest.raises(ValueError, match=r"b\.txt, line 3001: byte 30002 is no utf-16"):
        _read(tmp_path / "b.txt", encoding="utf-16-le")
    with pytest.raises(ValueError, match="'undefined' is none that Python knows"):
        _read(tmp_path / "b.txt", encoding="undefined")
    (tmp_path / "c.jsonl").write_text("[" * 200_000)
    with pytest.raises(ValueError, match=r"line 1: expected a JSON object a line"):
        _read(tmp_path / "c.jsonl")


def test_ids_are_there_once(tmp_path):
    (tmp_path / "a.csv").write_text("id,text\n1,a\n2,b\n1,c\n")
    with pytest.raises(ValueError, match="line 4: the id '1' was already in line 2"):
        _read(tmp_path / "a.csv", id_column="id")
    (tmp_path / "a.jsonl").write_text('{"text": "a", "id": 1.5}\n')
    with pytest.raises(ValueError, match="'id' must be a text or a whole number"):
        _read(tmp_path / "a.jsonl", id_column="id")
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(ValueError, match="lines of text have no column 'id'"):
        _read(tmp_path / "a.txt", id_column="id")
    with pytest.raises(ValueError, match="'utf-9' is none that Python knows"):
        _read(tmp_path / "a.txt", encoding="utf-9")
    with pytest.raises(FileNotFoundError):
        _read(tmp_path / "none.csv")
