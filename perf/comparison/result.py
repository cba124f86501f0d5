# SPDX-License-Identifier: Apache-2.0
"""What a case hands back: tables of figures, and what was measured against what must be reached."""
import dataclasses
import operator

from comparison.stats import spread


class Failure(Exception):
    """A case cannot be measured; the text says why and what to do."""


class Unavailable(Failure):
    """A case cannot be measured on this machine as it is; the text says what is missing."""


@dataclasses.dataclass
class Series:
    """Repeated runs of one thing; cpu_s_per_gb: processor time of the processes of both ends."""
    name: str
    unit: str
    values: list
    cpu_s_per_gb: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Table:
    """Figures that are no repeated runs of one quantity, such as percentiles. First column: names."""
    header: list
    rows: list


RELATIONS = {">=": operator.ge, "<=": operator.le, "=": operator.eq}


@dataclasses.dataclass
class Check:
    """MEASURED vs MUST."""
    what: str
    measured: float
    relation: str
    must: float
    unit: str = ""

    @property
    def passed(self):
        return RELATIONS[self.relation](self.measured, self.must)


@dataclasses.dataclass
class Result:
    case: str
    title: str
    setup: str = ""
    series: list = dataclasses.field(default_factory=list)
    tables: list = dataclasses.field(default_factory=list)
    checks: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)

    def check(self, what, measured, relation, must, unit=""):
        self.checks.append(Check(what, measured, relation, must, unit))

    def to_json(self):
        out = dataclasses.asdict(self)
        for entry, series in zip(out["series"], self.series):
            entry["spread"] = spread(series.values)
        for entry, check in zip(out["checks"], self.checks):
            entry["passed"] = check.passed
        return out


def from_json(entry):
    """The Result whose to_json() this was."""
    def pick(cls, fields):
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{key: value for key, value in fields.items() if key in names})
    out = pick(Result, entry)
    out.series = [pick(Series, series) for series in out.series]
    out.tables = [pick(Table, table) for table in out.tables]
    out.checks = [pick(Check, check) for check in out.checks]
    return out
