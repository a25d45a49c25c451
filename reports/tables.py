"""`activations.csv`: every activation rate by mechanism, scenario, tool, tenant and task type.

The only door to pandas; it costs as much as a run, so nobody imports this module before the runs are done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from reports.rates import wilson
from reports.results import RunResult

KEYS: tuple[str, ...] = ("mechanism", "scenario", "tool", "tenant", "task_type")
COLUMNS: tuple[str, ...] = (*KEYS, "opportunities", "activations", "rate", "low", "high")


def activation_table(runs: Iterable[RunResult]) -> pd.DataFrame:
    """One row per mechanism, scenario, tool (empty where none is meant), tenant and task type; rates are 0..1.

    Rows add up to the totals of the summary; `low` and `high` are the Wilson 95 % interval of the row.
    """
    frame = pd.DataFrame(_rows(runs), columns=[*KEYS, "opportunities", "activations"])
    if frame.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    table = frame.groupby(list(KEYS), sort=True, as_index=False)[["opportunities", "activations"]].sum()
    table = table[table["opportunities"] > 0].reset_index(drop=True)
    table["rate"] = table["activations"] / table["opportunities"]
    bounds = [wilson(int(a), int(o)) for a, o in zip(table["activations"], table["opportunities"], strict=True)]
    table["low"] = [low for low, _ in bounds]
    table["high"] = [high for _, high in bounds]
    return table


def activations_csv(runs: Iterable[RunResult]) -> str:
    """The table as CSV, rates with six digits."""
    text = activation_table(runs).to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return str(text)


def _rows(runs: Iterable[RunResult]) -> Iterator[tuple[str, str, str, str, str, int, int]]:
    for run in runs:
        if run.harness_error is not None:
            continue
        for mechanism, seen in run.activations.items():
            place = (mechanism, str(run.number))
            who = (run.tenant, run.task_type or "")
            for tool, (opportunities, activations) in seen.by_tool.items():
                yield (*place, tool, *who, opportunities, activations)
            rest = seen.opportunities - sum(total for total, _ in seen.by_tool.values())
            acted = seen.activations - sum(done for _, done in seen.by_tool.values())
            if rest or acted:
                yield (*place, "", *who, rest, acted)
