"""The README's Python example, run as it stands but for its size."""

from __future__ import annotations

import pathlib
import re

import pytest

README = pathlib.Path(__file__).parents[1] / "README.md"


@pytest.mark.slow
def test_the_example_runs(tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.S)
    smaller = {
        "width=200, num_layers=2": "width=4, num_layers=1",
        "epochs=5": "epochs=1, steps_per_epoch=3, validation_steps=2",
        '"saved_models/mine"': repr(str(tmp_path / "mine")),
    }
    for text, replacement in smaller.items():
        assert text in example
        example = example.replace(text, replacement)
    exec(compile(example, str(README), "exec"), {})
    assert (tmp_path / "mine" / "saved_model.pb").exists()


def test_every_file_that_the_pages_name_exists():
    root = README.parent
    for page in (
        "README.md",
        "BUILD.md",
        "experiments/README.md",
        "saved_models/README.md",
    ):
        folder = (root / page).parent
        text = (root / page).read_text("utf-8")
        assert not re.search(r"[A-Z]+_TABLE", text), f"{page}: a table is missing"
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        for target in re.findall(r"\]\(([^)#]+)\)", prose):
            if not target.startswith("http"):
                assert (folder / target).exists(), f"{page}: {target}"
