"""Fixtures and options that every test may use."""

from kit.golden import golden, pytest_addoption

__all__ = ["golden", "pytest_addoption"]
