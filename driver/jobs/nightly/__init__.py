"""The nightly job: one night's cycles against another's, with verdicts."""
