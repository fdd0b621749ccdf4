"""Fixtures and options that every test may use."""

from hypothesis import settings
from kit.golden import golden, pytest_addoption

__all__ = ["golden", "pytest_addoption"]

settings.register_profile("tilefarm", deadline=None)  # no test is timed: machines may be busy
settings.load_profile("tilefarm")
