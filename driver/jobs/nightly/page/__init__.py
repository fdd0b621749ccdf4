"""The page of a zoo: static files that need no server, drawn from a history."""

from driver.jobs.nightly.page.site import write_site

__all__ = ["write_site"]
