"""A child that does nothing until it is ended."""

from __future__ import annotations

import time

if __name__ == "__main__":
    time.sleep(600)
