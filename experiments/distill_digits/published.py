"""What Dong (2025) has on CIFAR-100, from WRN-40-2 to WRN-40-1."""

from __future__ import annotations

from collections.abc import Mapping

# Tables 2.1 and B.3: teacher and student, % right.
ACCURACIES: Mapping[str, tuple[str, str]] = {
    "standard": ("76.38 ± 0.13", "73.73 ± 0.13"),
    "no-CR-authors": ("74.30 ± 0.12", "74.34 ± 0.11"),
    "no-LR": ("76.71 ± 0.16", "73.81 ± 0.15"),
    "soteacher-authors": ("74.95 ± 0.28", "74.35 ± 0.23"),
    "l1": ("73.52 ± 0.05", "73.60 ± 0.15"),
    "mixup": ("77.30 ± 0.20", "73.19 ± 0.21"),
    "cutmix": ("78.42 ± 0.07", "73.61 ± 0.26"),
    "augmix": ("77.80 ± 0.30", "73.83 ± 0.09"),
    "crl": ("76.69 ± 0.16", "74.13 ± 0.29"),
}
# Table 2.3: ECE and NLL of the teacher, and both at a fitted temperature.
UNCERTAINTY: Mapping[str, tuple[str, str, str, str]] = {
    "standard": ("0.113", "1.047", "0.028", "0.905"),
    "soteacher-authors": ("0.057", "0.911", "0.016", "0.876"),
}
# Table 2.4: students that say what their teacher says, %.
FIDELITY: Mapping[str, str] = {
    "standard": "76.16 ± 0.14",
    "soteacher-authors": "77.92 ± 0.27",
}
# Table B.2: students of the standard teacher and of the thesis', % right.
METHODS: Mapping[str, tuple[str, str]] = {
    "fitnet": ("74.06 ± 0.20", "74.88 ± 0.15"),
    "at": ("73.78 ± 0.40", "75.12 ± 0.17"),
    "sp": ("73.54 ± 0.20", "74.71 ± 0.19"),
    "cc": ("73.46 ± 0.12", "74.76 ± 0.16"),
    "vid": ("73.88 ± 0.30", "74.89 ± 0.19"),
    "rkd": ("73.41 ± 0.47", "74.66 ± 0.08"),
    "pkt": ("74.14 ± 0.43", "74.89 ± 0.16"),
    "ab": ("73.93 ± 0.35", "74.86 ± 0.10"),
    "ft": ("73.80 ± 0.15", "74.75 ± 0.13"),
    "nst": ("73.95 ± 0.41", "74.74 ± 0.14"),
    "crd": ("74.44 ± 0.11", "75.06 ± 0.37"),
    "sskd": ("75.82 ± 0.22", "75.94 ± 0.18"),
    "rco": ("74.50 ± 0.32", "74.81 ± 0.04"),
}
