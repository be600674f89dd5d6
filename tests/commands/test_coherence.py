"""`rlm_tf coherence`: sources as streams of words, resuming, the report, mistakes."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from rlm_tf.commands.information import estimating, running, sources, writing
from rlm_tf.commands.information.estimating import Job
from rlm_tf.commands.information.settings import (
    CoherenceSettings,
    check_coherence_settings,
)
from rlm_tf.data import MarkovSource, Vocabulary, load_corpus
from rlm_tf.evaluation import SegmentInformation, segment_information
from rlm_tf.evaluation.information import critic_training
from rlm_tf.evaluation.information.segment_information import (
    FoldInformation,
    estimate,
)
from rlm_tf.layers import LSTMCell
from rlm_tf.models import RegularizedLanguageModel
from rlm_tf.serving import export_language_model
from tests.experiments.binaries import run_binary

_LETTERS = np.array(list("abcd"))
_SOURCE = MarkovSource(0.04 + 0.84 * np.roll(np.eye(4), 1, axis=1))


def _text(length: int, seed: int) -> str:
    """Sentences of five words that follow one another in a circle, as a rule."""
    words = _LETTERS[_SOURCE.sample(length, seed)]
    return " . ".join(" ".join(words[i : i + 5]) for i in range(0, length, 5)) + " ."


@pytest.fixture
def few_steps(monkeypatch):
    monkeypatch.setattr(critic_training, "_EVERY", 20)
    monkeypatch.setattr(critic_training, "_BATCH", 32)


@pytest.fixture
def given(tmp_path) -> CoherenceSettings:
    # Of one line.
    (tmp_path / "a.txt").write_text(_text(900, 1))
    (tmp_path / "b.txt").write_text(_text(700, 2) + "\n")
    return CoherenceSettings(
        text=(str(tmp_path / "a.txt"), str(tmp_path / "b.txt")),
        segment=3,
        gaps=(0, 2),
        folds=3,
        most_steps=40,
        output_dir=str(tmp_path / "out"),
    )


def _report(settings):
    return json.loads((pathlib.Path(settings.output_dir) / "report.json").read_text())


@pytest.mark.landing
@pytest.mark.usefixtures("few_steps")
def test_the_report_of_two_texts(given, capsys):
    running.run(given)
    found = _report(given)
    # Cut to the shorter one: 700 words and 140 full stops.
    assert [row["tokens"] for row in found["rows"]] == [840] * 4
    assert [(row["text"], row["gap"]) for row in found["rows"]] == [
        (text, gap) for text in given.text for gap in (0, 2)
    ]
    kinds = [(row["order"], row["gap"]) for row in found["controls"]]
    assert kinds == [(k, g) for k in ("words", "sentences") for g in (0, 2)]
    # The rows are those of the function on the same ids.
    (source, _) = sources.read_sources(given)
    streams = sources.of_one_length([*sources.read_sources(given)], 20_000)
    assert len(source.ids) == 1080
    info = segment_information(
        streams.tokens[1], segment=3, gap=2, folds=3, most_steps=40
    )
    row = found["rows"][3]
    assert row["mine"] == info.mine.mean and row["nwj"] == info.nwj.mean
    assert row["sd"] == info.mine.deviation and row["se"] == info.mine.standard_error
    assert row["shuffled"] == info.shuffled.mean and row["ceiling"] == info.ceiling
    folder = pathlib.Path(given.output_dir)
    assert (folder / "information.png").stat().st_size > 5000
    printed = capsys.readouterr().out
    assert (folder / "table.md").read_text().strip() in printed
    # Done before; a change is refused.
    running.run(given)
    assert "done before" in capsys.readouterr().out
    with pytest.raises(ValueError, match="segment was 3 and is 4"):
        running.run(dataclasses.replace(given, segment=4))
    # Another gap is added; what is known is not computed again.
    running.run(dataclasses.replace(given, gaps=(2, 1)))
    printed = capsys.readouterr().out
    assert "gap 1: fold 1/3" in printed and "gap 2: fold" not in printed
    assert {row["gap"] for row in _report(given)["rows"]} == {1, 2}


def _information(mine, shuffled, pairs=100):
    return SegmentInformation(
        estimate(mine), estimate(mine), estimate(shuffled), 9.0, pairs, [50] * 3, 0.0
    )


def test_what_should_not_be_believed():
    good = _information([0.5, 0.6, 0.7], [0.0, 0.01, 0.0])
    job = Job(0, "a", 10)
    assert writing.warnings_of([(job, good)], 10**6) == []
    cases = (
        (_information([0.0] * 3, [0.0] * 3), "nothing was found beyond two standard"),
        (_information([-0.4, 0.5, 0.1], [0.0] * 3), "nothing was found beyond two"),
        (_information([0.5, 0.6, 0.7], [0.2, 0.3, 0.2]), "half a block apart show 0.2"),
        (good._replace(capped=2), "in 2 of 3 folds training ended at --most_steps"),
        (good._replace(pairs=7), "only 7 pairs to be tested on"),
    )
    for info, expected in cases:
        (line,) = writing.warnings_of([(job, info)], 10**6)
        assert line.startswith("a, gap 10: ") and expected in line
    # Shuffled texts are to find nothing.
    control = job._replace(shuffled="words")
    assert writing.warnings_of([(control, cases[0][0])], 10**6) == []
    (line,) = writing.warnings_of([(job, good)], 12_397)
    assert line.startswith("12,397 tokens are few: below some 200,000")


def test_texts_are_compared():
    first, second = (
        _information(folds, [0.0] * 3) for folds in ([0.5, 0.6, 0.7], [0.7, 0.8, 1.0])
    )
    lines = writing.differences_of(
        [(Job(0, "a", 10), first), (Job(1, "b", 10), second), (Job(1, "b", 0), first)]
    )
    assert lines == ["b less a, gap 10: +0.233 ± 0.105 nats (one standard error)"]


def test_controls_learn_on_as_much_text_as_the_text(given, monkeypatch):
    """Of its folds, some: not fewer and larger ones."""
    made = []

    class Recorded:
        def __init__(self, tokens, *, folds, **options):
            made.append(folds)

        def fold(self, number, dropout, *, control):
            return FoldInformation(0.5 + number, 0.0, 0.0, 60, 60, 50, 0.0)

    monkeypatch.setattr(estimating, "SegmentEstimator", Recorded)
    given = dataclasses.replace(given, folds=6, gaps=(1,))
    running.run(given)
    assert made == [6] * 4
    found = _report(given)
    assert [row["folds"] for row in found["controls"]] == [3, 3]
    assert [row["mine"] for row in found["controls"]] == [1.5, 1.5]
    assert [len(row["mine"]) for row in found["details"]] == [6, 6]


def test_a_text_of_few_sentences_has_no_control_of_them(given, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text(_text(900, 1).replace(".", "") + ".")
    sources_of = [*sources.read_sources(given)]
    jobs = estimating.jobs_of(sources.of_one_length(sources_of, 100), (1,), True)
    assert [job.shuffled for job in jobs] == ["", "", "words"]


def test_damaged_folds_are_refused(given):
    folder = pathlib.Path(given.output_dir) / "folds"
    streams = sources.of_one_length([*sources.read_sources(given)], 100)
    folder.mkdir(parents=True)
    (folder / "text1_gap1.json").write_text('{"folds": [{"mine": 1}]}')
    with pytest.raises(ValueError, match=r"text1_gap1.json is damaged \(its folds\)"):
        [
            *estimating.estimates(
                [Job(0, "a", 1)],
                streams,
                folder,
                segment=3,
                folds=3,
                critic="separable",
                seed=0,
            )
        ]


def test_an_output_folder_that_cannot_be_made(given):
    with pytest.raises(ValueError, match="--output_dir=/dev/null/x cannot be written"):
        running.run(dataclasses.replace(given, output_dir="/dev/null/x"))


@pytest.mark.landing
@pytest.mark.usefixtures("few_steps")
def test_finished_folds_are_not_computed_again(given, monkeypatch):
    from rlm_tf.evaluation.information.segment_information import SegmentEstimator

    given = dataclasses.replace(given, controls=False, gaps=(1,))
    running.run(given)
    expected = _report(given)
    fold = SegmentEstimator.fold
    calls = []

    def counted(self, number, *arguments, **options):
        calls.append(number)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return fold(self, number, *arguments, **options)

    monkeypatch.setattr(SegmentEstimator, "fold", counted)
    with pytest.raises(KeyboardInterrupt):
        running.run(dataclasses.replace(given, overwrite=True))
    running.run(given)
    assert calls == [0, 1, 2, 2, 0, 1, 2]
    assert _report(given) == expected


@pytest.mark.landing
def test_what_a_model_says_is_cut_to_the_text(given, tmp_path):
    vocabulary = Vocabulary.build(_text(50, 3), "words")
    vocabulary.save(tmp_path / "vocabulary.txt")
    model = RegularizedLanguageModel(len(vocabulary), LSTMCell(3), 1, jit_loop=False)
    model(np.zeros((1, 2), np.int32))
    model.save(tmp_path / "model.keras")
    given = dataclasses.replace(given, model=(str(tmp_path / "model.keras"),))
    check_coherence_settings(given)
    *_, said = sources.read_sources(given)
    assert len(said.ids) == 840
    # Ends of lines are not counted, but where it is wanted.
    assert vocabulary.eos_id not in said.ids
    given = dataclasses.replace(given, line_ends=True, tokens=100)
    *_, with_ends = sources.read_sources(given)
    assert len(with_ends.ids) == 100 and vocabulary.eos_id in with_ends.ids
    *_, again = sources.read_sources(given)
    assert again.digest() == with_ends.digest() != said.digest()


def test_the_embedded_corpus(given):
    settings = dataclasses.replace(given, text=(), corpus=("python-docs",))
    (found,) = sources.read_sources(settings)
    corpus = load_corpus("python-docs")
    is_end = corpus.train == corpus.vocabulary.eos_id
    np.testing.assert_array_equal(found.ids, corpus.train[~is_end])
    # Sentences end with full stops, not with lines.
    stop = found.names.index(".")
    assert np.all(found.ends[found.ids == stop]) and 100 < found.ends.sum() < 20_000


@pytest.mark.landing
def test_what_a_saved_model_says(given, tmp_path):
    vocabulary = Vocabulary.build(_text(50, 3), "words")
    model = RegularizedLanguageModel(len(vocabulary), LSTMCell(3), 1, jit_loop=False)
    model(np.zeros((1, 2), np.int32))
    export_language_model(model, vocabulary, str(tmp_path / "served"))
    options = {"saved_model": (str(tmp_path / "served"),), "tokens": 60}
    settings = dataclasses.replace(given, **options)
    check_coherence_settings(settings)
    *_, said = sources.read_sources(settings)
    assert len(said.ids) == 60 and set(said.names) <= set(vocabulary.tokens)
    *_, again = sources.read_sources(settings)
    assert again.digest() == said.digest()


def test_rare_words_are_one():
    def words(text):
        names = sorted(set(text))
        ids = np.array([names.index(letter) for letter in text])
        return sources.Words(text, ids, names, np.zeros(len(text), bool))

    streams = sources.of_one_length([words("aabcd"), words("aabd")], 3)
    # "a" four times in what is left, "b" twice; one id for all others.
    assert [s.tolist() for s in streams.tokens] == [[0, 0, 1, 2], [0, 0, 1, 2]]
    assert streams.lengths == [5, 4] and streams.unknown == pytest.approx(2 / 8)


def test_shuffling_keeps_words_and_sentences():
    tokens = np.arange(10)
    ends = np.isin(tokens, [2, 3, 7, 9])
    by_words = sources.shuffled(tokens, ends, "words", 0)
    assert sorted(by_words) == tokens.tolist() and np.any(by_words != tokens)
    by_sentences = sources.shuffled(tokens, ends, "sentences", 3)
    pieces = "".join(map(str, by_sentences))
    assert sorted(by_sentences) == tokens.tolist() and pieces != "0123456789"
    assert all(piece in pieces for piece in ("012", "3", "4567", "89"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": ()}, "nothing to measure: give --text"),
        ({"text": ("no.txt",)}, "--text=no.txt: there is no such file"),
        ({"saved_model": (".",)}, r"--saved_model=\. is no SavedModel"),
        ({"model": ("no.keras",)}, "there is no such file or folder"),
        ({"critic": "deep"}, "--critic must be one of separable, mlp, large"),
        ({"rule": "x"}, "--rule must be one of words"),
        ({"folds": 2}, "--folds must be at least 3, found 2"),
        ({"gaps": (1, 1)}, "--gaps must be distinct; found 1 twice"),
        ({"gaps": ()}, "from 0 on; found none"),
        ({"gaps": (-1,)}, "--gaps must name numbers of tokens"),
    ],
)
def test_mistakes(given, options, message):
    with pytest.raises((ValueError, OSError), match=message):
        check_coherence_settings(dataclasses.replace(given, **options))


def test_a_text_that_is_too_short_leaves_nothing(given):
    short = dataclasses.replace(given, folds=200)
    with pytest.raises(ValueError, match=r"b.txt: 200 folds .* Give fewer --folds"):
        running.run(short)
    assert not pathlib.Path(given.output_dir).exists()


@pytest.mark.landing
def test_a_killed_run_goes_on_with_the_same_numbers(given):
    text = f"--text={given.text[0]}"
    flags = (text, "--segment=3", "--gaps=1", "--folds=3", "--nocontrols")
    whole, killed = (
        pathlib.Path(f"{given.output_dir}_{name}") for name in ("whole", "killed")
    )
    run = functools.partial(run_binary, "mutual_information", *flags, check=True)
    run(f"--output_dir={whole}")
    command = [sys.executable, "-m", "experiments.mutual_information", *flags]
    command.append(f"--output_dir={killed}")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        for _ in range(1200):
            if any(killed.glob("folds/text*")):
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    assert not (killed / "report.json").exists()
    again = run(f"--output_dir={killed}").stdout
    assert "fold 1/3" not in again and "fold 3/3" in again
    rows = [
        json.loads((folder / "report.json").read_text())["rows"]
        for folder in (whole, killed)
    ]
    assert rows[0] == rows[1]
