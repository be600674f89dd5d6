"""Writes a trained model as a SavedModel for serving, elsewhere or otherwise.

    rlm_tf export --model=DIR --output_dir=saved_models/mine/1
    rlm_tf export --model=DIR --output_dir=saved_models/small --nomixture

DIR/saved_model is one already.
"""

from __future__ import annotations

from rlm_tf.command_line.program import Program, start
from rlm_tf.commands.settings import ExportSettings, check_export_settings


def main() -> None:
    """Exports and says what was written."""
    from rlm_tf.command_line.flags import config_from_flags
    from rlm_tf.commands import using

    using.export(config_from_flags(ExportSettings()))


PROGRAM = Program(
    "rlm_tf export",
    __doc__,
    main,
    settings=ExportSettings(),
    check=check_export_settings,
)

if __name__ == "__main__":
    start(PROGRAM)
