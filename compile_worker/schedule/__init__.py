"""Schedules: primitives that change how a function is computed, never what."""

from compile_worker.schedule.primitives import PRIMITIVES, replay
from compile_worker.schedule.schedule import Schedule

__all__ = ["PRIMITIVES", "Schedule", "replay"]
