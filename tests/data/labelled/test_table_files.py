"""A user's tables: columns, quotes, packed files, one line for a mistake."""

from __future__ import annotations

import gzip

import pytest

from rlm_tf.data import load_ag_news, load_glue, read_labelled
from rlm_tf.data.labelled import glue

_CSV = 'text,label,more\n"a, ""b""\nc",yes,1.5\n d ,no ,-2\n'


def _write(tmp_path, content, name="train.csv"):
    path = tmp_path / name
    packed = gzip.compress(content.encode()) if name.endswith(".gz") else None
    path.write_bytes(packed or content.encode())
    return path


def test_quotes_and_lines_within_cells(tmp_path):
    found = read_labelled(_write(tmp_path, _CSV))
    assert found.texts == ['a, "b"\nc', " d "]
    assert found.names == ("no", "yes") and found.labels.tolist() == [1, 0]
    assert found.texts_b is None


def test_tabs_pairs_numbers_and_packed_files(tmp_path):
    content = _CSV.replace(",", "\t").replace("a\t", "a,")
    path = _write(tmp_path, content, "train.tsv.gz")
    found = read_labelled(
        path, label_column="more", text_b_column="label", regression=True
    )
    assert found.labels.tolist() == [1.5, -2.0] and found.is_regression
    assert found.texts_b == ["yes", "no "]
    again = read_labelled(path, names=("yes", "no"))
    assert again.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (_CSV, {"text_column": "txt"}, r"no column 'txt' \(did you mean 'text'\?\)"),
        (_CSV, {"label_column": "zzz"}, "no column 'zzz'; found text, label, more"),
        (_CSV, {"names": ("no", "maybe")}, "row 1: unknown label 'yes'; expected one"),
        (_CSV, {"regression": True}, "row 1: expected a number as label, found 'yes'"),
        ("text,label\na,1\nb,nan\n", {"regression": True}, "row 2: .* found 'nan'"),
        ("text,label\na,1e99\n", {"regression": True}, "row 1: .* found '1e99'"),
        ("text,label\na,x\nb, \n", {}, "row 2: the label is empty; leave out rows"),
        ("text,label,text\na,x,b\n", {}, "has 2 columns 'text'; expected one"),
        ("text,label\n", {}, "expected a line of names of columns, and rows"),
        ("text,label\na,b,c\n", {}, "line 2: expected 2 columns .* found 3"),
        ("text,label\na,\0\n", {}, "line 2: expected text, found a zero byte"),
    ],
)
def test_mistakes_name_file_and_place(tmp_path, content, options, message):
    path = _write(tmp_path, content)
    with pytest.raises(ValueError, match=message) as caught:
        read_labelled(path, **options)
    assert str(path) in str(caught.value)


# === Published sets ===


def _glue(tmp_path, folder, name, content):
    (tmp_path / "glue" / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "glue" / folder / name).write_text(content, "utf-8")


def test_columns_are_found_by_their_names(tmp_path, caplog, monkeypatch):
    rows = "".join(f'{n}\tp\tis "{n}\tsaid {n}\t{n % 6 - 0.5}\n' for n in range(1500))
    titles = "index\tgenre\tsentence1\tsentence2\tscore\n"
    _glue(tmp_path, "STS-B", "dev.tsv", titles + rows)
    found = load_glue("stsb", "dev", tmp_path)
    assert len(found) == 1500 and found.is_regression
    assert found.texts[3] == 'is "3' and found.texts_b[3] == "said 3"
    assert found.labels[3] == 2.5
    titles = "id\tquestion1\tquestion2\tis_duplicate\n"
    # The published file has rows that lack columns.
    rows = "0\ta\tb\t1\n2\tc\n1\tc\td\t0\n"
    _glue(tmp_path, "QQP", "train.tsv", titles + rows)
    with pytest.raises(ValueError, match="has 363,846 examples as published, found 2"):
        load_glue("qqp", "train", tmp_path)
    files = {"train": (("train.tsv",), 2)}
    monkeypatch.setitem(glue._TASKS, "qqp", glue._TASKS["qqp"]._replace(files=files))
    found = load_glue("qqp", "train", tmp_path)
    assert "left out 1 broken rows" in caplog.text
    assert found.names == ("different", "duplicate") and found.labels.tolist() == [1, 0]


def test_files_that_are_not_the_published_ones(tmp_path, monkeypatch):
    monkeypatch.delenv("RLM_DATA_DIR", raising=False)
    with pytest.raises(FileNotFoundError, match=r"needs train\.tsv: give `data_dir`"):
        load_glue("rte")
    with pytest.raises(FileNotFoundError, match=r"there is no train\.tsv .* GLUE site"):
        load_glue("rte", data_dir=tmp_path)
    with pytest.raises(ValueError, match="`task` must be one of cola, sst2"):
        load_glue("wnli")
    with pytest.raises(ValueError, match="`split` must be one of train, dev; found"):
        load_glue("rte", "dev_mismatched")
    titles = "index\tsentence1\tsentence2\tlabel\n"
    _glue(tmp_path, "RTE", "train.tsv", titles + "0\ta\tb\tentailment\n")
    with pytest.raises(ValueError, match="rte train has 2,490 examples as published"):
        load_glue("rte", "train", tmp_path)
    _glue(tmp_path, "RTE", "train.tsv", titles + "0\ta\tb\tyes\n")
    (tmp_path / "test.csv").write_text('"1","a","b"\n"2","c","d"\n')
    with pytest.raises(ValueError, match="has 7,600 examples as published, found 2"):
        load_ag_news("test.csv", tmp_path)
    (tmp_path / "part.csv").write_text('"1","a","b\\c"\n"4","c","d"\n')
    found = load_ag_news("part.csv", tmp_path)
    assert found.texts == ["a b c", "c d"] and found.labels.tolist() == [0, 3]


@pytest.mark.parametrize(
    ("task", "split", "count", "positive"),
    [
        ("cola", "dev", 1043, None),
        ("sst2", "dev", 872, 444),
        ("mrpc", "train", 4076, 2753),
        ("mrpc", "dev", 1725, 1147),
        ("rte", "train", 2490, 1249),
        ("rte", "dev", 277, 146),
        ("qnli", "dev", 5463, 2702),
    ],
)
def test_published_counts(data_dir, task, split, count, positive):
    found = load_glue(task, split, data_dir)
    assert len(found) == count
    if positive is not None:
        assert int(found.labels.sum()) == positive
    assert (found.texts_b is None) == (task in ("cola", "sst2"))


def test_ag_news_test(data_dir):
    found = load_ag_news(data_dir=data_dir)
    assert len(found) == 7600 and found.labels.tolist().count(2) == 1900
    assert found.texts[0].startswith("Fears for T N pension after talks Unions")
