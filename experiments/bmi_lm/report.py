"""Tables and figure of BMI on Penn Treebank."""

NEEDS = ("name", "arm", "seed")


def report(rows, folder):
    return "\n".join(
        str({k: r.get(k) for k in ("name", "scores", "finetuned")})
        + str(r.get("curve", {}).get("averaged_loss"))
        for r in rows
    )
