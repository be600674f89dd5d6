"""Latent-variable models that use their latents: MI-constrained objectives.

    python -m experiments.mi_vae --preset=small --lambda_=0.2
    python -m experiments.mi_vae --study=symbols --only='vimco-16-*'
    python -m experiments.mi_vae --preset=small --objective=renyi --trials=30

Every point is a run with a row of its own; a run whose row exists is skipped, and one
that was killed goes on where it stood (--resume). With `--trials`, settings are drawn
in the published ranges, or chosen by Gaussian-process bandits (--search=gp).
"""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

from absl import flags

from experiments import flags as config_flags
from experiments.quiet import silence_tensorflow

silence_tensorflow()

import keras  # noqa: E402

from experiments import run_files, run_flags, run_workers  # noqa: E402
from experiments.run_list import finished_rows, run_all  # noqa: E402
from experiments.vae import (  # noqa: E402
    report,
    sentences_report,
    signal,
    studies,
    sweep,
    symbols_report,
    training,
)
from experiments.vae.config import VaeConfig, check_config, without_idle  # noqa: E402
from rlm_tf.data import Corpus, Vocabulary, load_corpus  # noqa: E402
from rlm_tf.serving import check_export_path, export_latent_model  # noqa: E402
from rlm_tf.training import TrainingDivergedError  # noqa: E402

FLAGS = flags.FLAGS

_STUDIES = {**studies.STUDIES, "signal": signal.models}

flags.DEFINE_enum("preset", "small", sorted(studies.PRESETS), "Settings to start from.")
flags.DEFINE_enum("study", None, sorted(_STUDIES), "The runs of a study.")
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
flags.DEFINE_float("trade", 0.05, "Trials minimise NLL less this times usage, nats.")
flags.DEFINE_enum(
    "regularisation", "none", ["none", "dropout", "l2"], "What --trials tune, too."
)
_OF_TRIALS = ("search", "initial", "trade", "regularisation")
run_flags.define_run_flags("mi_vae")
config_flags.define_flags(VaeConfig, without=("seed",))


def main(arguments: list[str]) -> None:
    """Runs what is not done yet, then writes table and figure."""
    config_flags.refuse_arguments(arguments)
    with config_flags.user_errors():
        _refuse_idle_flags()
        chosen = _configs()
        if not FLAGS.trials:
            for config in chosen.values():
                check_config(config)
        corpora = {
            name: load_corpus(name, FLAGS.data_dir)
            for name in {config.corpus for config in chosen.values()}
            if name
        }
        if FLAGS.export:
            _check_export(list(chosen.values())[-1])
        if FLAGS.project_steps:
            _project(chosen, corpora)
            return
        if FLAGS.trials:
            rows, output = _search(chosen, corpora), pathlib.Path(FLAGS.output_dir)
            _report(rows, output)
            return
        output, results = run_flags.folders(FLAGS.study)
        runs = [
            training.run_of(
                name,
                config,
                corpora.get(config.corpus),
                FLAGS.strategy,
                FLAGS.checkpoint_seconds,
                signal.train_and_measure if FLAGS.study == "signal" else training.train,
            )
            for name, config in chosen.items()
        ]
        if FLAGS.study == "signal":
            runs = [signal.with_measurement(run) for run in runs]
        run_flags.check_exportable(output, results, runs[-1].name)
        try:
            rows = run_all(runs, output, results, FLAGS.resume)
        except TrainingDivergedError:
            # One that diverged leaves the others their table.
            rows = finished_rows(runs, results)
            if rows:
                _report(rows, output)
            raise
        _report(rows, output)
        if FLAGS.export:
            _export(output / runs[-1].name, list(chosen.values())[-1])


def _refuse_idle_flags() -> None:
    """Raises ValueError if a flag was given that would change nothing."""
    idle = [name for name in _OF_TRIALS if FLAGS[name].present]
    if idle and not FLAGS.trials:
        raise ValueError(f"--{', --'.join(idle)}: only with --trials.")
    if FLAGS["initial"].present and FLAGS.search != "gp":
        raise ValueError("--initial: only with --search=gp.")
    if FLAGS.trials and FLAGS.project_steps:
        raise ValueError("--trials and --project_steps: only one of them.")


def _report(rows: list[dict[str, Any]], output: pathlib.Path) -> None:
    """Writes what the study shows, or one table and one figure."""
    if not rows:
        raise ValueError(f"{output}: no point was finished.")
    output.mkdir(parents=True, exist_ok=True)
    if FLAGS.study == "signal":
        tables = [signal.signal_table(rows)]
        signal.signal_figure(rows, output / "signal.png")
    elif FLAGS.study == "sentences":
        tables = [sentences_report.sentences_table(rows)]
        tables.append(sentences_report.best_table(rows))
        sentences_report.sentences_figure(rows, output / "sentences.png")
    else:
        tables = [report.points_table(rows)]
        report.pareto_figure(rows, output / "pareto.png")
    if FLAGS.study == "symbols":
        tables.append(symbols_report.levels_table(rows))
        symbols_report.panels_figure(rows, output / "symbols.png")
        symbols_report.rates_figure(rows, output / "rates.png")
    if FLAGS.study != "signal":
        tables.append(report.seeds_table(rows))
    text = "\n\n".join(filter(None, tables))
    (output / "table.md").write_text(text + "\n", "utf-8")
    print(f"\n{text}\n\n{output}", flush=True)


def _check_export(config: VaeConfig) -> None:
    if not config.corpus or config.latents == "quantised" or FLAGS.trials:
        raise ValueError(
            "--export is for models of sentences (--corpus) with normal or categorical "
            "latents, without --trials."
        )
    check_export_path(FLAGS.export, overwrite=True)


def _export(folder: pathlib.Path, config: VaeConfig) -> None:
    """Writes the SavedModel that `--export` asks for, and shows what it says."""
    model = keras.models.load_model(folder / "model.keras", compile=False)
    vocabulary = Vocabulary.load(folder / "vocabulary.txt")
    export_latent_model(
        model,
        vocabulary,
        FLAGS.export,
        most_tokens=config.most_tokens,
        overwrite=True,
    )
    print(
        f"{FLAGS.export}: SavedModel with signatures encode, decode, score, interpolate"
    )


def _project(chosen: dict[str, VaeConfig], corpora: dict[str, Corpus]) -> None:
    found = {}
    for name, config in chosen.items():
        corpus = corpora.get(config.corpus)
        found[name] = training.project(config, corpus, FLAGS.project_steps)
        hours, steps = found[name]["hours_of_all_steps"], found[name]["steps"]
        print(f"{name}: {hours:,.1f} h for {steps:,} steps", flush=True)
    path = pathlib.Path(FLAGS.results_dir or FLAGS.output_dir) / "projection.json"
    run_files.write_json(path, found)
    print(path)


def _search(
    chosen: dict[str, VaeConfig], corpora: dict[str, Corpus]
) -> list[dict[str, Any]]:
    if FLAGS.study or len(chosen) != 1:
        raise ValueError("--trials is for one --preset and one of --seeds.")
    (config,) = chosen.values()
    space = sweep.space_of(config, FLAGS.regularisation)
    given = set(config_flags.given_flags(VaeConfig)) & {*space}
    if given:
        raise ValueError(
            f"--trials tunes what is given: --{', --'.join(sorted(given))}."
        )
    output = pathlib.Path(FLAGS.output_dir)
    with run_workers.held(output / "search"):
        return sweep.search(
            config,
            corpora.get(config.corpus),
            space,
            output,
            trials=FLAGS.trials,
            initial=FLAGS.initial if FLAGS.search == "gp" else FLAGS.trials,
            trade=FLAGS.trade,
            strategy=FLAGS.strategy,
            resume=FLAGS.resume,
        )


def _configs() -> dict[str, VaeConfig]:
    seeds = run_flags.seeds()
    if FLAGS.only and not FLAGS.study:
        raise ValueError("--only chooses runs of a study; give --study, too.")
    if FLAGS.study:
        run_flags.refuse_settings_beside_study(VaeConfig, ("preset",))
        chosen = _STUDIES[FLAGS.study](seeds)
    else:
        config = without_idle(
            config_flags.config_from_flags(studies.PRESETS[FLAGS.preset]),
            config_flags.given_flags(VaeConfig),
        )
        chosen = {
            f"{FLAGS.preset}-seed{seed}": dataclasses.replace(config, seed=seed)
            for seed in seeds
        }
    return run_flags.runs_like(chosen, FLAGS.only)


def run() -> None:
    """Entry point of `python -m experiments.mi_vae`."""
    config_flags.start(main)


if __name__ == "__main__":
    run()
