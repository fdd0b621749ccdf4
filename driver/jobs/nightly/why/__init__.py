"""Why a night differs from another: layers, schedules, lowered code, cycles by cause, commits."""

from driver.jobs.nightly.why.commits import commits_between
from driver.jobs.nightly.why.evidence import Evidence, evidence_of
from driver.jobs.nightly.why.explanation import Explanation, Measured, explained

__all__ = ["Evidence", "Explanation", "Measured", "commits_between", "evidence_of", "explained"]
