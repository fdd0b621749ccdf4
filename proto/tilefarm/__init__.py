"""The words every part of tilefarm shares: records, digests, errors and the wire."""
