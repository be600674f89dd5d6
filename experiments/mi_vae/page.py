"""What the page of the study shows, from its rows."""

from __future__ import annotations

import pathlib

from experiments.kit.about import About, MadeBy
from experiments.kit.rows import read_studies
from experiments.mi_vae.report import NEEDS, Row
from experiments.mi_vae.studies import STUDIES
from experiments.mi_vae.symbols_report import excesses, symbols_entropy, usage_levels
from experiments.mi_vae.tables import cost_table, in_order, study_tables

ABOUT = About(
    "Melis (2023), chapter 5: Figures 5.2 to 5.15, 5.26 and 5.27, Table 5.1",
    "What does it cost, in fit, to make VAEs use their latents?",
    "python -m experiments.mi_vae --study=symbols",
    "11 h, 1 core (`--study=sentences`: 6 h)",
)
# In the headline: lines, and the level of usage at which they are compared.
_COMPARED = {
    "VIMCO-16 (Rényi)": "vimco 16 renyi",
    "DReG-16 (Rényi)": "dreg 16 renyi",
    "ELBO": "elbo 1 kl",
}
_LEVEL = 3

_RUN = "python -m experiments.mi_vae"
MADE_BY: MadeBy = {
    "many_symbols": f"{_RUN} --study=many_symbols",
    "many_symbols_levels": f"{_RUN} --study=many_symbols",
    "signal": f"{_RUN} --study=signal",
    "sentences": f"{_RUN} --study=sentences --data_dir=DATA",
    "best_of_sentences": f"{_RUN} --study=sentences --data_dir=DATA",
    "cost": (),
}


def tables(folder: pathlib.Path) -> dict[str, str]:
    """Returns the tables of the page, by name."""
    rows = _read(folder)
    found = {"cost": cost_table(rows)}
    for study, members in rows.items():
        found |= study_tables(study, members)
    return found


def headline(folder: pathlib.Path) -> str:
    """Returns what came out, in a line."""
    rows = _read(folder)["symbols"]
    found = excesses(rows)
    compared = [
        f"{title} {own:.3f} (published {theirs:.3f})"
        for title, line in _COMPARED.items()
        for own, theirs in [found[line][_LEVEL]]
    ]
    return (
        f"{rows[0]['config']['num_symbols']:,} symbols, latents used for "
        f"{usage_levels(rows)[_LEVEL]:.1f} of {symbols_entropy(rows):.1f} nats: NLL "
        f"above the entropy {', '.join(compared)}; one seed, an eighth of the "
        "published steps, a tenth of the symbols"
    )


def _read(folder: pathlib.Path) -> dict[str, list[Row]]:
    rows = read_studies(folder, STUDIES, (*NEEDS, "config.steps"))
    return {study: in_order(study, members) for study, members in rows.items()}
