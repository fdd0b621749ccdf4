"""What a night says to machines: JUnit XML, GitHub's annotations, Prometheus, a webhook's body."""

from driver.jobs.nightly.outputs.github import github_annotations, step_summary
from driver.jobs.nightly.outputs.junit import junit_xml
from driver.jobs.nightly.outputs.prometheus import metrics_text
from driver.jobs.nightly.outputs.webhook import webhook_body

__all__ = ["github_annotations", "junit_xml", "metrics_text", "step_summary", "webhook_body"]
