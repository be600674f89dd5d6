"""Published numbers of latent-variable models, to stand beside what is measured."""

from __future__ import annotations

import math
from types import MappingProxyType

_NAN = math.nan

# 10,000 uniform symbols: the least NLL of plotted points with at least so much usage,
# nats, read from the data of the chapter's figures; by line. Not a number: not read.
SYMBOL_LEVELS = (2.0, 4.0, 6.0, 8.0, 9.0)
SYMBOL_ENTROPY = math.log(10_000)
LEAST_NLL = MappingProxyType(
    {
        "elbo 1 kl": (9.253, 9.278, 9.278, 9.302, 9.713),
        "iwae 1 kl": (9.761, 9.958, 9.958, 9.958, 9.958),
        "iwae 16 kl": (9.226, 9.235, 9.239, 9.251, 9.514),
        "iwae 16 renyi": (9.218, 9.220, 9.222, 9.244, 9.466),
        "dreg 1 kl": (9.235, 9.252, 9.267, 9.275, 9.691),
        "dreg 16 kl": (9.230, 9.233, 9.233, 9.236, 9.623),
        "dreg 16 renyi": (9.211, 9.211, 9.212, 9.237, 9.601),
        "dreg 16 power": (9.211, 9.225, 9.225, 9.229, 9.526),
        "dreg 16/1 kl": (9.220, 9.224, 9.224, 9.307, 9.672),
        "dreg 16/1 renyi": (9.238, 9.253, 9.253, 9.323, 9.506),
        "dreg 1/16 kl": (9.243, 9.255, 9.255, 9.255, 9.536),
        "dreg 1/16 renyi": (9.220, 9.220, 9.220, 9.241, 9.629),
        "reinforce 1 kl": (9.231, 9.311, 9.560, 10.299, 10.803),
        "reinforce 16 kl": (9.243, 9.300, 9.559, 10.307, 10.90),
        "reinforce 16 renyi": (9.222, 9.275, 9.561, 10.55, 11.08),
        "vimco 16 kl": (9.210, 9.210, 9.215, 9.220, 9.233),
        "vimco 16 renyi": (9.211, 9.211, 9.212, 9.218, 9.231),
        "vimco 16 power": (9.221, 9.221, 9.221, 9.223, 9.237),
        "vimco 16/1 kl": (9.67, _NAN, _NAN, _NAN, 16.4),
        "vimco 16/1 renyi": (9.22, _NAN, _NAN, _NAN, 9.36),
        "vimco 64 kl": (9.431, 10.16, 12.0, 14.9, 15.7),
        "vimco 64 renyi": (9.265, 9.265, 9.285, 9.337, 9.364),
        "VQ-VAE": (9.221, 9.239, 9.443, 9.611, 9.674),
    }
)

# Table 5.1, width 128, sixteen samples and one, KL objective: test perplexity, NLL and
# KL of a token, IWAE with 500 samples, the whole Penn Treebank.
BEST_OF_SENTENCES = MappingProxyType(
    {
        "dreg 1": (92.5, 4.527, 0.047),
        "dreg 16": (91.7, 4.518, 0.131),
        "vimco 1": (94.6, 4.549, 0.000),
        "vimco 16": (92.1, 4.523, 0.164),
    }
)
