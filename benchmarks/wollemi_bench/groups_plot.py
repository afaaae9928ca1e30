"""Scaling over groups as a picture: ``python -m wollemi_bench.groups_plot RECORDS PICTURE``.

RECORDS is a file of ``wollemi bench suite groups --json``. The picture has the efficiency of CG by
the number of members: the time of one executor over that of the group, times the share of the rows.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any


def efficiencies(lines: list[dict[str, Any]]) -> dict[str, dict[int, float]]:
    """Return the efficiency by system and links, and by members.

    Examples
    --------
    >>> one = {"system": "8x8 each", "measured": "Cg", "links": "none", "members": 1, "value": 9.0}
    >>> two = {**one, "links": "peer", "members": 2, "value": 10.0}
    >>> efficiencies([one, two])
    {'8x8 each, peer': {2: 0.9}}
    """
    of_cg = [line for line in lines if line["measured"] == "Cg"]
    alone = {line["system"]: line["value"] for line in of_cg if line["links"] == "none"}
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for line in of_cg:
        if line["links"] in ("none", "one member"):
            continue
        share = 1 if line["system"].endswith("each") else line["members"]
        name = f"{line['system']}, {line['links']}"
        found[name][line["members"]] = alone[line["system"]] / line["value"] / share
    return dict(found)


def main(records: str, picture: str) -> None:
    """Draw the picture."""
    import matplotlib.pyplot as plt

    lines = [json.loads(line) for line in Path(records).read_text(encoding="utf-8").splitlines()]
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for name, points in sorted(efficiencies(lines).items()):
        members = sorted({1, *points})
        style = "--" if name.endswith("nccl") else "-"
        axes.plot(members, [points.get(m, 1.0) for m in members], style, marker="o", label=name)
    axes.set_xticks(sorted({line["members"] for line in lines}))
    axes.set(xlabel="GPUs", ylabel="efficiency of CG", ylim=(0, 1.05))
    axes.set_title(str(lines[0]["device"]))
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(picture, dpi=130)


if __name__ == "__main__":
    main(*sys.argv[1:3])
