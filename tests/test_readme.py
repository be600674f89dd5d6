"""The Python examples of README.md and EXAMPLES.md, run but for their size."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

from tests.compatibility.names import PAGES

README = pathlib.Path(__file__).parents[1] / "README.md"
EXAMPLES = README.with_name("EXAMPLES.md")


def _with(example: str, changes: dict[str, str]) -> str:
    """Returns an example with each of these texts, all of them there, replaced."""
    for text, replacement in changes.items():
        assert text in example
        example = example.replace(text, replacement)
    return example


@pytest.mark.landing
def test_the_examples_run(tmp_path):
    text = README.read_text("utf-8") + EXAMPLES.read_text("utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.S)
    train, load, recurrent, mean, latent, coherent, encoders, *others = examples
    seeds, students, policy = others
    saved = tmp_path / "mine.keras"
    train = _with(
        train,
        {
            "width=200, num_layers=2": "width=4, num_layers=1",
            "epochs=5": "epochs=1, steps_per_epoch=3, validation_steps=2",
            '"saved_models/mine"': repr(str(tmp_path / "mine")),
        },
    )
    assert load.count('"mine.keras"') == 2
    load = load.replace('"mine.keras"', repr(str(saved)))
    recurrent = _with(
        recurrent,
        {
            "MogrifierLSTMCell(200, ": "MogrifierLSTMCell(4, ",
            "epochs=10": "epochs=1, steps_per_epoch=3",
            "corpus.train, 64, 20": "corpus.train[:3000], 64, 20",
            "corpus.test, 1, 20": "corpus.test[:100], 1, 20",
            '"saved_models/mogrifier"': repr(str(tmp_path / "mogrifier")),
        },
    )
    mean = _with(
        mean,
        {
            "size, 200, 2": "size, 4, 1",
            "epochs=10": "epochs=1, steps_per_epoch=3",
            "corpus.test, 1, 20": "corpus.test[:100], 1, 20",
            '"saved_models/mean"': repr(str(tmp_path / "mean")),
        },
    )
    latent = _with(
        latent,
        {
            "LSTMCell(64)": "LSTMCell(4)",
            "(corpus.train, eos": "(corpus.train[:3000], eos",
            "epochs=10": "epochs=1, steps_per_epoch=3",
            "count=100": "count=3",
            '"saved_models/latents"': repr(str(tmp_path / "latents")),
        },
    )
    coherent = _with(
        coherent,
        {
            "embedding_width=100, units=(100, 100)": "embedding_width=4, units=(4, 4)",
            "epochs=10": "epochs=1, steps_per_epoch=3",
            "corpus.train, segment=40, gap=10": "corpus.train[:900], segment=4, gap=1",
            '"saved_models/coherent"': repr(str(tmp_path / "coherent")),
        },
    )
    (tmp_path / "mine.txt").write_text("a good text of some words\n\na bad one\n" * 9)
    encoders = _with(
        encoders,
        {
            '"mine.txt"': repr(str(tmp_path / "mine.txt")),
            "text, 8000": "text, 290",
            "length=64, batch_size=32": "length=8, batch_size=4",
            "width=128": "width=4",
            "epochs=3": "epochs=1, steps_per_epoch=1",
            "pieces, 64, batch_size=2": "pieces, 8, batch_size=2",
            "length=64, labels": "length=8, labels",
            '"saved_models/opinions"': repr(str(tmp_path / "opinions")),
        },
    )
    students = _with(
        students,
        {
            "wide_resnet(16, widen": "wide_resnet(10, widen",
            "epochs=30, shuffle": "epochs=1, shuffle",
            "range(300)": "range(40)",
            "TemporalEnsemble(300": "TemporalEnsemble(40",
            "width=100, num_layers=2": "width=4, num_layers=1",
            "epochs=5, shuffle=False": "epochs=1, steps_per_epoch=2, shuffle=False",
            '"runs/predictions"': repr(str(tmp_path / "predictions")),
            '"saved_models/digits"': repr(str(tmp_path / "digits")),
        },
    )
    together = train + load + recurrent + mean + latent + coherent + encoders + students
    exec(compile(together, str(README), "exec"), {})
    seeds = _with(seeds, {'"saved_models/seeds"': repr(str(tmp_path / "seeds"))})
    exec(compile(seeds, str(README), "exec"), {})
    assert (tmp_path / "seeds" / "saved_model.pb").exists()
    names = "mine", "mogrifier", "mean", "latents", "coherent", "opinions", "digits"
    for name in names:
        assert (tmp_path / name / "saved_model.pb").exists()
    assert policy.count("epochs=100") == 2
    policy = policy.replace("epochs=100", "epochs=2").replace(
        '"saved_models/policy"', repr(str(tmp_path / "policy"))
    )
    exec(compile(policy, str(README), "exec"), {})
    assert (tmp_path / "policy" / "saved_model.pb").exists()
    # Another process needs to import nothing else.
    program = f"import rlm_tf\nrlm_tf.load_model({str(saved)!r})"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_file_that_the_pages_name_exists():
    root = README.parent
    for page in PAGES:
        folder = (root / page).parent
        text = (root / page).read_text("utf-8")
        assert not re.search(r"[A-Z]+_TABLE", text), f"{page}: a table is missing"
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        for target in re.findall(r"\]\(([^)#]+)\)", prose):
            if not target.startswith("http"):
                assert (folder / target).exists(), f"{page}: {target}"
        for name in re.findall(r"`((?:rlm_tf|experiments|tests|docs)/[^`\s:]+)", prose):
            if re.fullmatch(r"[\w./]+", name):
                assert (root / name).exists(), f"{page}: {name}"
