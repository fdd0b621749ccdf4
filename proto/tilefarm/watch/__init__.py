"""What is told of a running farm: logs, the audit, metrics."""
