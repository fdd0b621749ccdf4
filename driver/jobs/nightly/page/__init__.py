"""The page of a zoo: static files that need no server, drawn from a history."""

from driver.jobs.nightly.page.site import write_site
from driver.jobs.nightly.page.zoo_history import RowHistory, ZooHistory

__all__ = ["RowHistory", "ZooHistory", "write_site"]
