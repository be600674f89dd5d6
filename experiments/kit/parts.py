"""Studies made of parts: each part computes one file of numbers, then all is reported.

A binary names its parts and presets; this module defines its flags and runs it. What
computes and reports is named `module:function`, imported when it is needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import pkgutil
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from absl import flags

from experiments.kit.main import Binary, start
from rlm_tf.command_line import flags as config_flags

FLAGS = flags.FLAGS

Numbers = dict[str, Any]
Compute = Callable[..., Numbers]
Report = Callable[[Mapping[str, Numbers], pathlib.Path], str]


@dataclasses.dataclass(frozen=True)
class Study:
    """What a binary does.

    Attributes:
        name: Of the binary, and of its folders.
        presets: Settings by name, instances of one frozen dataclass.
        parts: What computes the numbers of each part, from the settings; see `Compute`.
            Numbers must be writable as JSON.
        report: Draws the figures of the parts there are into a folder, and returns
            their tables as Markdown; see `Report`.
        own_settings: Prefix (or prefixes) of the names of settings that concern one
            part alone, by part: other parts need not be computed anew when these
            change.
        resuming: Parts that are given a folder after the settings: what they write
            there lets them go on after a kill.
    """

    name: str
    presets: Mapping[str, Any]
    parts: Mapping[str, str]
    report: str
    own_settings: Mapping[str, str | tuple[str, ...]] = dataclasses.field(
        default_factory=dict
    )
    resuming: Collection[str] = ()

    def function(self, name: str) -> Callable[..., Any]:
        """Returns what `module:function` in the folder of the study names."""
        return pkgutil.resolve_name(f"experiments.{self.name}.{name}")

    def concerns(self, part: str, setting: str) -> bool:
        """Returns whether a setting says anything to a part."""
        return all(
            not setting.startswith(prefix)
            for owner, prefix in self.own_settings.items()
            if owner != part
        )


def run_study(study: Study, about: str) -> None:
    """Runs a study whose flags are on the command line; does not return.

    Args:
        study: The study.
        about: What it is for, as `--help` says it.
    """

    def define() -> None:
        flags.DEFINE_list(
            "parts", [], f"Which parts: {', '.join(study.parts)}; none: all of them."
        )
        flags.DEFINE_string("data_dir", None, "Folder of the corpora [RLM_DATA_DIR].")
        flags.DEFINE_string(
            "output_dir", f"runs/{study.name}", "Folder of the figures and tables."
        )
        flags.DEFINE_string(
            "results_dir", None, "Folder of the numbers [OUTPUT_DIR/results]."
        )
        flags.DEFINE_boolean(
            "resume",
            True,
            "Skip parts whose numbers are there; --noresume: compute anew.",
        )

    def main() -> None:
        _run(study)

    start(Binary(study.name, about, main, study.presets, define=define))


def _run(study: Study) -> None:
    from experiments.kit import machine
    from experiments.kit.folders import remove
    from experiments.kit.rows import Rows
    from experiments.kit.run_files import check_converged
    from rlm_tf.command_line import run_lock

    wanted = FLAGS.parts or list(study.parts)
    unknown = [name for name in wanted if name not in study.parts]
    if unknown:
        raise ValueError(
            f"--parts must be some of {', '.join(study.parts)}; found "
            f"{', '.join(unknown)}."
        )
    config = config_flags.config_from_flags(study.presets[FLAGS.preset])
    config.check()
    output = pathlib.Path(FLAGS.output_dir)
    results = Rows(FLAGS.results_dir or output / "results")
    if FLAGS.data_dir is not None:
        # Where the loaders of all parts look.
        os.environ["RLM_DATA_DIR"] = FLAGS.data_dir
    machine.commit()
    for number, name in enumerate(wanted, start=1):
        place = f"[{number}/{len(wanted)}] {name}"
        with contextlib.ExitStack() as stack:
            if not FLAGS.resume or name not in results:
                stack.enter_context(run_lock.held(output / name))
            if FLAGS.resume and name in results:
                earlier = results.read(name, ("config",))
                _check_same(study, name, config, earlier, results.place(name))
                print(f"{place}: done before", flush=True)
                continue
            print(place, flush=True)
            began = time.perf_counter()
            folder = output / "checkpoints" / name
            resumed = FLAGS.resume and (folder / "config.json").exists()
            numbers = _compute(study, name, config, folder)
            check_converged(**{name: numbers})
            seconds = round(time.perf_counter() - began, 1)
            print(f"{place}: {seconds} s", flush=True)
            numbers |= {
                "config": dataclasses.asdict(config),
                "command": _command(study, name, config),
                "seconds": seconds,
                # If so, the seconds are those of the last process.
                "resumed": resumed,
                "machine": machine.environment()["machine"],
                "commit": machine.commit(),
                "finished": time.strftime("%Y-%m-%d"),
            }
            results.write(name, numbers)
            remove(folder)
    found = {
        name: results.read(name, ("config",)) for name in study.parts if name in results
    }
    output.mkdir(parents=True, exist_ok=True)
    text = study.function(study.report)(found, output)
    (output / f"{study.name}.md").write_text(text, "utf-8")
    print(f"\n{text}\n{output}", flush=True)


def _compute(study: Study, part: str, config: Any, folder: pathlib.Path) -> Numbers:
    """Computes a part anew, or goes on with what its folder holds."""
    from experiments.kit.folders import remove
    from rlm_tf.command_line.json_files import read_json, write_json

    compute: Compute = study.function(study.parts[part])
    if part not in study.resuming:
        return compute(config)
    settings = folder / "config.json"
    if not FLAGS.resume:
        remove(folder)
    elif settings.exists():
        earlier = read_json(settings, "remove it", ("config",))
        _check_same(study, part, config, earlier, str(settings))
    write_json(settings, {"config": dataclasses.asdict(config)})
    return compute(config, folder)


def _check_same(
    study: Study, part: str, config: Any, found: Numbers, place: str
) -> None:
    # As JSON has it: tuples become lists.
    wanted = json.loads(json.dumps(dataclasses.asdict(config)))
    earlier = found["config"]
    if not isinstance(earlier, dict):
        raise ValueError(f"{place} is damaged (its config is no object); remove it.")
    differing = [
        f"{key} was {earlier.get(key)!r} and is {wanted.get(key)!r}"
        for key in {**earlier, **wanted}
        if earlier.get(key) != wanted.get(key) and study.concerns(part, key)
    ]
    if differing:
        raise ValueError(
            f"{place} is of other settings: {'; '.join(differing)}. Use another "
            "--output_dir (and --results_dir), or --noresume."
        )


def _command(study: Study, part: str, config: Any) -> str:
    """Returns the command that computes a part, but for folders."""
    preset = study.presets[FLAGS.preset]
    given = [f"--preset={FLAGS.preset}", f"--parts={part}"]
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if value != getattr(preset, field.name):
            text = ",".join(map(str, value)) if isinstance(value, tuple) else value
            given.append(f"--{field.name}={text}")
    return " ".join([f"python -m experiments.{study.name}", *given])
