"""Writes the tables of all pages anew, from the rows of the studies.

    python -m experiments.pages

A table stands between `<!-- table STUDY/NAME -->` and `<!-- end -->`; what else a page
says is left alone. `--check` writes nothing and fails if a page is not as the rows are.
"""

from __future__ import annotations

from absl import flags

from experiments.kit.main import Binary, start


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_boolean("check", False, "Write nothing; fail if a page would change.")


def main() -> None:
    """Writes or checks the pages."""
    from experiments.pages.filling import ROOT, outdated

    changed = []
    for path, text in outdated():
        changed.append(str(path.relative_to(ROOT)))
        if not flags.FLAGS.check:
            path.write_text(text, "utf-8")
    if changed and flags.FLAGS.check:
        raise ValueError(
            f"not as the rows are: {', '.join(changed)}; `python -m experiments.pages` "
            "writes them."
        )
    print(f"Written: {', '.join(changed) or 'nothing, all pages are as the rows are'}.")


BINARY = Binary("pages", __doc__, main, define=define)

if __name__ == "__main__":
    start(BINARY)
