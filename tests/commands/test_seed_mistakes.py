"""`rlm_tf seed_classify`: mistakes of its user."""

from __future__ import annotations

import pytest

from rlm_tf.commands.seeds import reading, running, settings
from tests.commands.seed_files import seed_settings, write_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("number", [1, 9])
def test_what_cannot_be_judged_is_said_before_anything_is_trained(files, number):
    lines = ["id,label", *(f"d{i},sea" for i in range(number)), "d50,"]
    (files / "few.csv").write_text("\n".join(lines))
    given = seed_settings(
        files, labels=str(files / "few.csv"), use_labels="both", output_dir="none"
    )
    # Two of the documents are alike.
    different = {1: 1, 9: 8}[number]
    said = f"labels of 10 different documents at least, found {different}"
    with pytest.raises(ValueError, match=said):
        running.run(given)


def test_labels_of_one_text_are_one(tmp_path):
    lines = ["id,text", *(f"d{i},a ship" for i in range(12)), "e,a tree"]
    (tmp_path / "corpus.csv").write_text("\n".join(lines))
    (tmp_path / "seeds.json").write_text('{"sea": ["ship"], "wood": ["tree"]}')
    labels = ["id,label", *(f"d{i},sea" for i in range(12))]
    (tmp_path / "labels.csv").write_text("\n".join(labels))
    given = settings.SeedClassifySettings(
        texts=str(tmp_path / "corpus.csv"),
        seed_words=str(tmp_path / "seeds.json"),
        labels=str(tmp_path / "labels.csv"),
        use_labels="both",
        output_dir=str(tmp_path / "out"),
    )
    with pytest.raises(ValueError, match="10 different documents at least, found 1"):
        running.run(given)


def test_a_run_that_failed_may_have_other_seeds(files, tmp_path):
    (tmp_path / "seeds.json").write_text('{"sea": ["zzz"], "wood": ["qqq"]}')
    given = seed_settings(
        files,
        seed_words=str(tmp_path / "seeds.json"),
        output_dir=str(tmp_path / "out"),
    )
    with pytest.raises(ValueError, match="no document is labelled sea, wood"):
        running.run(given)
    assert not (tmp_path / "out" / "settings.json").exists()
    # Names are cut as the labels that they are compared with.
    (tmp_path / "seeds.json").write_text('{" sea": ["a"], "wood ": ["b"]}')
    assert reading.read_rule(str(tmp_path / "seeds.json")).class_names == (
        *("sea", "wood"),
    )
    for text in (
        '{"sea": ["a"], "sea": ["b"]}',
        '{"sea": ["a"], "sea ": ["b"]}',
        '{" ": ["a"], "wood": ["b"]}',
    ):
        (tmp_path / "seeds.json").write_text(text)
        with pytest.raises(ValueError, match=r"'sea' is there twice|and not empty"):
            reading.read_rule(str(tmp_path / "seeds.json"))


def test_seeds_whose_documents_are_all_tied_are_said(tmp_path, capsys):
    lines = ["text", *(f"the tree {n}" for n in range(4)), "the ship", "a boat"]
    (tmp_path / "corpus.csv").write_text("\n".join(lines))
    (tmp_path / "seeds.json").write_text(
        '{"sea": ["the", "ship"], "wood": ["tree", "forest"]}'
    )
    given = settings.SeedClassifySettings(
        texts=str(tmp_path / "corpus.csv"),
        seed_words=str(tmp_path / "seeds.json"),
        output_dir=str(tmp_path / "out"),
    )
    with pytest.raises(ValueError, match=r"is labelled wood: 4 documents have such se"):
        running.run(given)
    said = capsys.readouterr().out
    assert "warning: no document has the seeds forest" in said
    assert "warning: stop words tell no class: the" in said


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"texts": None}, "needs --texts"),
        ({"deletion": "all"}, "--deletion must be one of random, seeds, all_seeds"),
        ({"use_labels": "all"}, "--use_labels must be one of estimate, train, both"),
        ({"use_labels": "both"}, "--use_labels=both needs --labels"),
        ({"encoder": "bag"}, "--encoder must be one of linear, averaged"),
        ({"label_weight": 0.0}, "--label_weight must be positive"),
        ({"deletion": "none", "deletion_ratio": 0.5}, "is of --deletion=random, found"),
        ({"threshold": 1.0}, r"--threshold must lie in \[0, 1\), found 1"),
        ({"deletion_ratio": 1.0}, r"--deletion_ratio must lie in \[0, 1\)"),
        ({"epochs": 0}, "--epochs must be at least 1"),
        ({"learning_rate": 0.0}, "--learning_rate must be positive"),
    ],
)
def test_settings(files, changes, message):
    with pytest.raises(ValueError, match=message):
        settings.check_seed_classify_settings(seed_settings(files, **changes))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "expected lists of words by class, found list"),
        ("{", r"--seed_words=.*json: Expecting"),
        ('{"sea": ["ship"]}', "two classes at least, found 'sea'"),
        ('{"sea": ["ship"], "wood": []}', "the class 'wood' has no seed"),
        ('{"sea": ["ship"], "air": ["plane"]}', "no document is labelled air"),
    ],
)
def test_seed_words_that_cannot_be(files, tmp_path, content, message):
    (tmp_path / "seeds.json").write_text(content)
    given = seed_settings(
        files,
        seed_words=str(tmp_path / "seeds.json"),
        output_dir=str(tmp_path / "out"),
    )
    with pytest.raises(ValueError, match=message):
        running.run(given)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,label\nx,sea\n", "no document has the id 'x'"),
        (
            "id,label\nd1,air\n",
            "unknown label 'air' of 'd1'; expected one of sea,",
        ),
        ("id,label\nd1,sea\nd1,sea\n", "the id 'd1' is there twice"),
        ("id,lable\nd1,sea\n", r"no column 'label' \(did you mean 'lable'\?\)"),
    ],
)
def test_labels_that_cannot_be(files, tmp_path, content, message):
    (tmp_path / "labels.csv").write_text(content)
    corpus = reading.read_corpus(seed_settings(files))
    with pytest.raises(ValueError, match=message):
        reading.read_labels(str(tmp_path / "labels.csv"), corpus, ("sea", "wood"))
