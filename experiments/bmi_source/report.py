"""Tables and figure of BMI on a known source."""

NEEDS = ("name", "arm", "sentences", "sentence_length")


def report(rows, folder):
    return "\n".join(
        f"{r['name']} {r['test_nll']:.4f} {r['floor']:.4f} mr {r['marker_ratio']:.3f} I {r['counted']:.3f}/{r['information']:.3f} sw {r['sandwich']['lower']:.3f} {r['sandwich']['upper']:.3f} best {r['best_epoch']}/{r['epochs']} {r['seconds_to_best']:.0f}s "
        for r in rows
    )
