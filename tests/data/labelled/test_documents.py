"""Documents of seeds' studies: files in the published layouts, and real ones."""

from __future__ import annotations

import io
import json
import tarfile

import numpy as np
import pytest

from rlm_tf.data import document_names, load_documents, load_seeds
from rlm_tf.data.labelled import documents
from rlm_tf.labelling import SeedRule, rule_statistics
from tests.references.weak_supervision_reference import ORACLE

_NEWS = {
    "20news-bydate-test/sci.space/7": (
        b"From: a\r\nSubject: Re: Moon\r\n\r\nbody\r\n\r\nend"
    ),
    "20news-bydate-train/misc.forsale/1": b"Subject: Bike\n\nfor sale",
    "20news-bydate-train/talk.religion.misc/2": b"From: b\n\nno subject \xe9",
    "20news-bydate-train/alt.atheism/3": b"Subject:  x\nSubject: y\n\nz",
}


@pytest.fixture(name="news")
def _news(tmp_path, monkeypatch):
    """A folder with a small archive, and readers that expect its size."""
    (tmp_path / "20newsgroups").mkdir()
    path = tmp_path / "20newsgroups" / "20news-bydate.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in _NEWS.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    monkeypatch.setattr(documents, "_NEWS_COUNTS", {"train": 3, "test": 1})
    return tmp_path


def _read(folder, class_of, view):
    texts, classes, _ = documents._newsgroups(folder, view, class_of, 0)
    return dict(zip(classes, texts, strict=True)), classes


def test_views_and_classes_of_newsgroups(news):
    whole, classes = _read(news, lambda group: group, "raw")
    assert classes[-1] == "sci.space" and len(classes) == 4  # training ones first
    assert whole["sci.space"] == "From: a\nSubject: Re: Moon\n\nbody\n\nend"
    bodies, _ = _read(news, lambda group: group, "body")
    assert bodies["sci.space"] == "body\n\nend"
    shown, _ = _read(news, documents._coarse, "subject+body")
    assert [*shown] == ["religion", "sci"]
    found, classes = _read(news, documents._coarse, "subject+body")
    assert classes == ["religion", "religion", "sci"]
    assert found["sci"] == "Re: Moon\nbody\n\nend"
    found, classes = _read(news, documents._fine, "subject+body")
    assert found == {"alt.atheism": "x\nz", "sci.space": "Re: Moon\nbody\n\nend"}
    shown, _ = _read(news, lambda group: group, "subject+body")
    assert shown["talk.religion.misc"] == "\nno subject é"


def test_numbers_of_documents_are_checked(news, monkeypatch):
    with pytest.raises(ValueError, match="has 17,871 documents as published, found 3"):
        load_documents("20newsgroups-coarse", news)
    monkeypatch.setattr(documents, "_NEWS_COUNTS", {"train": 4, "test": 1})
    with pytest.raises(ValueError, match="has 4 documents of train as published, fou"):
        load_documents("20newsgroups", news)


def test_news_and_reviews(tmp_path, monkeypatch):
    folder = tmp_path / "ag_news"
    folder.mkdir()
    rows = '"3","Stocks\\fall","Oil, ""up"""\n"2","Cup","Final"\n'
    (folder / "test.csv").write_text(rows)
    monkeypatch.setitem(documents._AG_PARTS, "ag-news-test", ("test.csv", 2, "there"))
    found = load_documents("ag-news-test", tmp_path)
    assert found.texts == ['Stocks\\fall Oil, "up"', "Cup Final"]
    assert found.class_names == ("business", "sports")
    assert found.labels.tolist() == [0, 1] and found.labels.dtype == np.int32
    (folder / "test.csv").write_text('"1","a","b"\n"5","a","b"\n')
    with pytest.raises(ValueError, match="expected class 1 to 4, title, description"):
        load_documents("ag-news-test", tmp_path)
    name = "train_sample_10001_description_only.tsv"
    (folder / name).write_text("a text\tSci/Tech\nother\twith tab\tWorld\n")
    texts, classes, _ = documents._ag_descriptions(tmp_path)
    assert texts == ["a text", "other\twith tab"]
    assert classes == ["technology", "politics"]
    (folder / name).write_text("a text\tsci\n")
    with pytest.raises(ValueError, match="one of World, Sports, Business, Sci/Tech"):
        documents._ag_descriptions(tmp_path)
    for own, text in (("neg", b"bad\x85 \n"), ("pos", b"good\nfine\n")):
        (tmp_path / f"rt-polarity.{own}").write_bytes(text)
    texts, classes, _ = documents._rotten_tomatoes(tmp_path)
    assert texts == ["bad\u2026 ", "good", "fine"] and classes == ["neg", "pos", "pos"]


def test_seeds(tmp_path):
    (tmp_path / "ag_news").mkdir()
    path = tmp_path / "ag_news" / "seedwords_lops.json"
    path.write_text(json.dumps({"sports": ["a", "b", "c", "d"]}))
    assert load_seeds("ag-news-sample", tmp_path) == {"sports": ["a", "b", "c", "d"]}
    assert load_seeds("ag-news-westclass", tmp_path) == {"sports": ["a", "b", "c"]}
    path.write_text(json.dumps({"sports": "a"}))
    with pytest.raises(ValueError, match="has not lists of words by class"):
        load_seeds("ag-news", tmp_path)
    assert [*load_seeds("rotten-tomatoes")] == ["neg", "pos"]


def test_a_copy_of_ones_own_of_the_new_york_times(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no coarse\.csv .* your own copy of"):
        load_documents("nyt-coarse", tmp_path)
    (tmp_path / "nyt").mkdir()
    (tmp_path / "nyt" / "fine.csv").write_text('text,label\n"a, b",golf\nc,music\n')
    with pytest.raises(ValueError, match="nyt-fine has 13,081 documents as published"):
        load_documents("nyt-fine", tmp_path)
    texts, classes, _ = documents._nyt("fine", tmp_path)
    assert (texts, classes) == (["a, b", "c"], ["golf", "music"])
    (tmp_path / "nyt" / "seedwords_fine.json").write_text('{"golf": ["golf"]}')
    assert load_seeds("nyt-fine", tmp_path) == {"golf": ["golf"]}


def test_unknown_names_and_views(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"seedwords_conwea_fine\.json"):
        load_seeds("20newsgroups", tmp_path)
    with pytest.raises(ValueError, match="name"):
        load_documents("reuters", tmp_path)
    with pytest.raises(ValueError, match="view"):
        load_documents("ag-news", tmp_path, view="title")


@pytest.mark.landing
@pytest.mark.parametrize("key", [*ORACLE["matching"]])
def test_real_documents_are_labelled_as_the_oracle_has_it(key, data_dir):
    """Equal numbers of labels, mistakes, ties, and of each class; lengths, too."""
    expected, (name, *view, tokenisation) = ORACLE["matching"][key], key.split("/")
    news = name.startswith("20")
    view = view[0] if view else "raw"
    found = load_documents(name, data_dir, view=view if news else "raw")
    seeds = load_seeds(name, None if name == "rotten-tomatoes" else data_dir)
    if view == "good_bad":
        seeds = {"neg": ["bad"], "pos": ["good"]}
    elif view == "yelp":
        seeds = {
            "neg": ["horrible", "disappointing", "subpar"],
            "pos": ["terrific", "great", "awesome"],
        }
    assert len(found.texts) == expected["documents"]
    published = tokenisation == "published"
    stops = ORACLE["stop_words_of_indicative_nltk"] if published else None
    for ties in ("first", "abstain"):
        rule = SeedRule(seeds, tokenisation=tokenisation, ties=ties)
        assert rule.class_names == found.class_names
        matches = rule.match(found.texts)
        own = rule_statistics(
            rule, found.texts, matches, found.labels, stop_words=stops
        )
        assert own.labelled == expected[ties]["labelled"]
        wrong = own.labelled - np.trace(own.transitions)
        assert wrong == expected[ties]["wrong"] and own.tied == expected["tied"]
        assert own.noise * 100 == pytest.approx(
            expected[ties]["noise_percent"], abs=6e-4
        )
        counts = dict(zip(found.class_names, own.transitions.sum(axis=0), strict=True))
        assert counts == expected[ties]["class_counts"]
        if ties == "first":
            assert [*own.length] == expected["median_mad_whitespace_words"]
            for kind in ("nltk", "sklearn"):
                median = expected.get(f"median_mad_indicative_{kind}")
                assert median is None or [*own.indicative] == median


def test_all_names_are_known():
    assert set(document_names()) == set(documents._READERS)
