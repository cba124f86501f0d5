# SPDX-License-Identifier: Apache-2.0
"""Results as a table for people and as a Markdown section for docs/PERFORMANCE.md."""
from comparison import machine as machines
from comparison.result import Table
from comparison.stats import median, spread

NOT_A_MEASUREMENT = "--quick: this only shows that everything works; the figures mean nothing"


def number(value):
    """Three digits or more that matter, no exponent."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or float(value).is_integer():
        return f"{round(value)}"
    if abs(value) >= 1:
        digits = max(0, 3 - len(str(int(abs(value)))))
    else:
        digits = 3 if abs(value) >= 0.01 else 5
    return f"{value:.{digits}f}"


def tables_of(result):
    """All figures of a result as tables."""
    tables = []
    if result.series:
        rows = []
        for series in result.series:
            found = spread(series.values)
            cpu = f"{median(series.cpu_s_per_gb):.3f}" if series.cpu_s_per_gb else ""
            rows.append([f"{series.name}, {series.unit}",
                         *(found[column] for column in ("n", "median", "min", "p10", "p90", "max")), cpu])
        header = ["", "n", "median", "min", "p10", "p90", "max", "CPU s/GB"]
        if not any(row[-1] for row in rows):
            header, rows = header[:-1], [row[:-1] for row in rows]
        tables.append(Table(header, rows))
    return tables + result.tables


def verdict(check):
    unit = f" {check.unit}" if check.unit else ""
    return (f"MEASURED {number(check.measured)}{unit} vs MUST {check.relation} {number(check.must)}{unit}: "
            f"{'pass' if check.passed else 'FAIL'}")


def human(result):
    lines = [f"{result.case}: {result.title}"]
    if result.setup:
        lines.append(f"  {result.setup}")
    for table in tables_of(result):
        rows = [[number(cell) for cell in row] for row in [table.header, *table.rows]]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines.append("")
        for row in rows:
            cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
            lines.append(("  " + "  ".join(cells)).rstrip())
    lines.append("")
    lines += [f"  {check.what}: {verdict(check)}" for check in result.checks]
    lines += [f"  {note}" for note in result.notes]
    return "\n".join(lines)


def markdown(results, machine, command, quick):
    lines = [f"### {machine['date']}: {', '.join(result.case for result in results)}"]
    if quick:
        lines += ["", f"**{NOT_A_MEASUREMENT}.**"]
    lines += ["", f"`{command}`  ", f"{machines.text(machine)}  ", f"commit {machine['commit']}"]
    for result in results:
        lines += ["", f"**{result.case}**: {result.title}" + (f"; {result.setup}" if result.setup else "")]
        for table in tables_of(result):
            lines += ["", row_of(table.header), row_of(["---", *["---:"] * (len(table.header) - 1)])]
            lines += [row_of(row) for row in table.rows]
        if result.checks:
            lines += ["", row_of(["", "measured", "must reach", ""]), row_of(["---", "---:", "---:", "---"])]
        for check in result.checks:
            unit = f" {check.unit}" if check.unit else ""
            lines.append(row_of([check.what, number(check.measured) + unit,
                                 f"{check.relation} {number(check.must)}{unit}",
                                 "pass" if check.passed else "**fail**"]))
        if result.notes:
            lines += ["", *(f"- {note}" for note in result.notes)]
    return "\n".join(lines) + "\n"


def row_of(cells):
    return "| " + " | ".join(number(cell) for cell in cells) + " |"
