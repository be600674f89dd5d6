"""Latent-variable models that use their latents: MI-constrained objectives.

    python -m experiments.mi_vae --preset=small --lambda_=0.2
    python -m experiments.mi_vae --study=symbols --only='vimco-16-*'
    python -m experiments.mi_vae --preset=small --objective=renyi --trials=30

Every point is a run with a row of its own; a run whose row exists is skipped, and one
that was killed goes on where it stood (--resume). With `--trials`, settings are drawn
in the published ranges, or chosen by Gaussian-process bandits (--search=gp).
"""

from __future__ import annotations

from absl import flags

from experiments.kit import run_flags
from experiments.kit.main import Binary, start
from experiments.mi_vae.studies import PRESETS, STUDIES


def define() -> None:
    """Defines the flags that are no settings."""
    flags.DEFINE_enum("study", None, sorted(STUDIES), "The runs of a study.")
    flags.DEFINE_list("only", [], "Of a study, only runs like these (* for anything).")
    flags.DEFINE_integer(
        "trials", 0, "Points of a search over learning rate, lambda, ...", lower_bound=0
    )
    flags.DEFINE_enum(
        "search", "random", ["random", "gp"], "How --trials are chosen; gp: by bandits."
    )
    flags.DEFINE_integer(
        "initial", 8, "Trials that --search=gp draws before it chooses.", lower_bound=1
    )
    flags.DEFINE_float(
        "trade", 0.05, "Trials minimise NLL less this times usage, nats."
    )
    flags.DEFINE_enum(
        "regularisation", "none", ["none", "dropout", "l2"], "What --trials tune, too."
    )
    run_flags.define_run_flags("mi_vae")


def main() -> None:
    """Runs what is not done yet, then writes table and figure."""
    from experiments.mi_vae import running

    running.main()


BINARY = Binary("mi_vae", __doc__, main, PRESETS, define=define, without=("seed",))

if __name__ == "__main__":
    start(BINARY)
