"""Commands of binaries: where they are written down, and whether they still hold."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import pathlib
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import tensorflow as tf
from absl import app, flags

import rlm_tf.serving
from experiments.kit import machine, run_workers
from experiments.kit.vae_config import VaeConfig
from experiments.kit.vae_model import build_model
from rlm_tf.workers import Workers
from tests.compatibility.names import PAGES, ROOT

FLAGS = flags.FLAGS

_COMMAND = re.compile(r"python[\d.]* -m experiments\.(\w+)(?![\w.{])([^`\n#)\"]*)")
# Words of the pages for what the reader chooses.
_CHOICES = {"PRESET": "small", "PART": "trajectory"}
# What a binary calls once it has found its settings valid, by module of `experiments`.
_STOPS = {
    "benchmark": ("benchmark.running._rows",),
    "export": ("export.exporting._load", "export.exporting._train"),
    "imm_lm": ("imm_lm.running.load_corpus",),
    "imm_report": ("imm_lm.reporting.read_studies",),
    "mi_vae": (
        "mi_vae.running.load_corpus",
        "mi_vae.running._project",
        "mi_vae.sweep.search",
    ),
    "mogrifier_lm": ("mogrifier_lm.running.load_corpus",),
    "mogrifier_report": ("mogrifier_lm.reporting.read_studies",),
    "mutual_information": ("rlm_tf.commands.information.running.read_sources",),
    "own_text": ("own_text.texts.make_text",),
    "pages": ("pages.filling.outdated",),
    "seed_classify": ("rlm_tf.commands.seeds.running.run",),
    "tune": ("mogrifier_lm.searching.load_corpus", "mogrifier_lm.searching.read_json"),
}


def _check_latent_model(config: VaeConfig) -> None:
    """Raises ValueError if there is no model of such options; of what size is idle.

    Objectives and estimators are checked by the model alone.
    """
    names = ("latents", "estimator", "grouping", "baseline", "objective")
    chosen = {name: getattr(config, name) for name in names}
    for name in ("num_samples", "divergence_samples"):
        chosen[name] = min(getattr(config, name), 3)
    chosen["lambda_"] = 0.5 if config.lambda_ else 0.0
    chosen["alpha"] = 2.0 if config.alpha != 1 else 1.0
    _make_latent_model(VaeConfig(**chosen, units=2, num_symbols=3))


@functools.cache
def _make_latent_model(config: VaeConfig) -> None:
    build_model(config, config.num_symbols)


class Valid(BaseException):
    """Ends a binary that was about to begin its work."""


# === Where commands are written down ===


def recorded_commands() -> dict[str, dict[str, str]]:
    """Returns, by binary, its flags in one string and a place where they are."""
    found: dict[str, dict[str, str]] = {}
    texts = {page: (ROOT / page).read_text("utf-8") for page in (*PAGES, "Makefile")}
    for path in sorted((ROOT / "experiments").glob("*/__main__.py")):
        texts[str(path.relative_to(ROOT))] = path.read_text("utf-8")
    for path in sorted((ROOT / "experiments").glob("*/rows.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            for command in _in_row(row):
                texts[f"{path.relative_to(ROOT)}: {row['name']}"] = command
    for place, text in texts.items():
        for binary, given in _COMMAND.findall(text.replace("\\\n", " ")):
            # A command that goes to the background ends with `&`.
            flat = " ".join(given.rstrip(" &").split())
            found.setdefault(binary, {}).setdefault(flat, place)
    return found


def _in_row(row: Any) -> Iterator[str]:
    """Returns what a row, or a row in it, says under `command`."""
    if isinstance(row, dict):
        for key, value in row.items():
            if key == "command":
                yield value
            else:
                yield from _in_row(value)
    elif isinstance(row, list):
        for value in row:
            yield from _in_row(value)


# === Whether they hold ===


class Binary:
    """A binary whose flags are defined; it may be run, or stopped before its work.

    Args:
        name: Of its module in `experiments`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        path = ROOT / "experiments" / name / "__main__.py"
        # Run as a main module, so that it defines its flags though another test may
        # have imported it; `app.run` is where a binary begins.
        names: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
        with mock.patch.object(app, "run") as run:
            exec(compile(path.read_text("utf-8"), path, "exec"), names)
        self._main: Callable[[list[str]], Any] = run.call_args.args[0]

    def problem(self, given: str) -> str | None:
        """Returns what is wrong with flags, or None."""
        for word, choice in _CHOICES.items():
            given = given.replace(f"={word}", f"={choice}")
        try:
            with self._stopped():
                self.run(given)
        except Valid:
            return None
        except (flags.Error, app.UsageError, SystemExit) as error:
            return str(error)
        return "it ended before its work began"

    def run(self, given: str) -> None:
        """Does what the binary does with flags."""
        for name in FLAGS:
            FLAGS[name].unparse()
        self._main(FLAGS([self.name, *shlex.split(given)]))

    @staticmethod
    def _also(*checks: Callable[[Any], None]) -> Callable[[Any], None]:
        def check_all(config: Any) -> None:
            for check in checks:
                check(config)

        return check_all

    @contextlib.contextmanager
    def _stopped(self) -> Iterator[None]:
        stop = mock.Mock(side_effect=Valid)
        with contextlib.ExitStack() as stack:
            # Of several workers there is one here.
            alone = Workers(tf.distribute.get_strategy())
            patch = mock.patch.object(run_workers, "workers", lambda: alone)
            stack.enter_context(patch)
            # Lists of runs and studies made of parts ask for it before they begin.
            stack.enter_context(mock.patch.object(machine, "commit", stop))
            if self.name == "export":
                patch = mock.patch.object(rlm_tf.serving, "check_export_path", stop)
                stack.enter_context(patch)
            if self.name == "mi_vae":
                from experiments.mi_vae import running

                check = self._also(running.check_config, _check_latent_model)
                patch = mock.patch.object(running, "check_config", check)
                stack.enter_context(patch)
            for path in _STOPS.get(self.name, ()):
                module, _, name = path.rpartition(".")
                if not module.startswith("rlm_tf."):
                    module = f"experiments.{module}"
                found = importlib.import_module(module)
                stack.enter_context(mock.patch.object(found, name, stop))
            yield


@contextlib.contextmanager
def loaded(name: str) -> Iterator[Binary]:
    """Gives a binary whose flags stand in the place of all that were defined before."""
    own = [n for n, defined in _modules_of_flags().items() if defined != "absl"]
    kept = {name: FLAGS[name] for name in own}
    parsed = FLAGS.is_parsed()
    FLAGS.remove_flag_values(kept)
    before = set(FLAGS)
    try:
        yield Binary(name)
    finally:
        FLAGS.remove_flag_values(set(FLAGS) - before)
        for name, flag in kept.items():
            FLAGS[name] = flag
        if not parsed:
            FLAGS.unparse_flags()


def _modules_of_flags() -> dict[str, str]:
    """Returns the top-level packages that define the flags."""
    return {
        name: str(FLAGS.find_module_defining_flag(name)).partition(".")[0]
        for name in FLAGS
    }


def stand_in_folder(folder: pathlib.Path) -> None:
    """Makes a folder in which the commands of the pages find what they name."""
    (folder / "experiments").symlink_to(ROOT / "experiments")
    run = folder / "runs" / "mogrifier_lm" / "RUN"
    run.mkdir(parents=True)
    (run / "model.keras").touch()
