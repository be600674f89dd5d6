r"""Measures speed and memory against other libraries; prints and keeps a table.

    python -m experiments.benchmark --preset=small --output_dir=runs/benchmark

Runs on the CPU. As soon as a row is measured, its numbers are in rows.jsonl of
`--results_dir` (or of `--output_dir`), and it is in the table of `--output_dir`,
benchmark.md; rows that are there already stay, unless they are measured again, and a
benchmark.json of older versions beside rows.jsonl is read, too. Several processes may
write, but slow each other down, which rows say. `--preset`: smoke (sizes that mean
nothing), small (half an hour on two cores), paper (more repetitions: an hour and a
half, projected).
PyTorch and NLTK, the peers, are optional: `pip install rlm_tf[peers]`.

Rows, W being a width:
  lstm-W     training step of an LSTM language model: ours, Keras, PyTorch
  cells-W    the same with Mogrifier and RLSTM cells: ours, keras.layers.RNN, PyTorch
  ratios-W   steps of Mogrifier and RLSTM against our LSTM's
  averages   what Two-Tailed Averaging adds to a step of 24 million parameters
  imm-W      step with induced model matching, in-batch contexts, against the plain step
  sampler-W  the same with the published sampler
  memory     peak memory of the crosstalk and of the direct gradient
  reading    a text becomes a corpus, under four rules
  kneser-ney fits and distributions against NLTK
  large-counts  order 5 of 50 million tokens: memory and time
  serving    SavedModels of an n-gram, of an LSTM and of both: size, latency, memory
  latents    VIMCO and DReG steps with K samples against PyTorch and one sample
  latent-memory  their peak memory against that of the decoder alone
  awd        AWD-LSTM-MoS step against PyTorch, and with BMI
  mixture-memory  peak memory and time of a step of 15 softmaxes
  information  the estimate of `rlm_tf coherence`, a million tokens
  encoders   masked language model's and ELECTRA's steps against keras-hub, PyTorch
  finetuning  fine-tuning with IMM against task and masked words
  grid       REINFORCE with IMM on the toroidal grid, against its authors' script
  logistic   logistic regression with IMM, many data sets at once
"""

from __future__ import annotations

from experiments.benchmark.config import Config
from experiments.benchmark.preset import PRESETS
from experiments.kit.main import Binary, start


def main() -> None:
    """Measures the rows, one after the other."""
    from experiments.benchmark import running
    from rlm_tf.command_line.flags import config_from_flags

    running.main(config_from_flags(Config()))


BINARY = Binary("benchmark", __doc__, main, settings=Config(), fixed=PRESETS)

if __name__ == "__main__":
    start(BINARY)
