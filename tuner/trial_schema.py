"""What the file of a run's records holds, and what it held in earlier versions."""

from __future__ import annotations

from typing import Final

from tuner.database import Schema

_MIGRATIONS: Final = (
    """
    CREATE TABLE runs (
        run TEXT PRIMARY KEY,
        begun REAL NOT NULL,
        ended REAL,
        outcome TEXT,
        description TEXT NOT NULL
    ) STRICT;
    CREATE TABLE trials (
        trial INTEGER PRIMARY KEY,
        run TEXT NOT NULL REFERENCES runs,
        workload TEXT NOT NULL,
        trace TEXT NOT NULL,
        point TEXT NOT NULL,
        status TEXT NOT NULL,
        cycles INTEGER,
        seconds TEXT NOT NULL,
        artifact TEXT,
        device TEXT NOT NULL,
        why TEXT NOT NULL,
        proposer TEXT NOT NULL,
        spans TEXT NOT NULL,
        UNIQUE (workload, trace),
        CHECK (cycles IS NULL OR status = 'ok')
    ) STRICT;
    CREATE INDEX fastest ON trials (workload, cycles) WHERE cycles IS NOT NULL;
    """,
    """
    CREATE TABLE suspects (
        suspect INTEGER PRIMARY KEY,
        run TEXT NOT NULL REFERENCES runs,
        workload TEXT NOT NULL,
        trace TEXT NOT NULL,
        point TEXT NOT NULL,
        status TEXT NOT NULL,
        cycles INTEGER,
        seconds TEXT NOT NULL,
        artifact TEXT,
        device TEXT NOT NULL,
        why TEXT NOT NULL,
        proposer TEXT NOT NULL,
        spans TEXT NOT NULL,
        doubt TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE unconfirmed (
        trial INTEGER PRIMARY KEY REFERENCES trials ON DELETE CASCADE,
        device TEXT NOT NULL,
        fence INTEGER NOT NULL
    ) STRICT;
    """,
    """
    ALTER TABLE trials ADD COLUMN wall_time TEXT CHECK (wall_time IS NULL OR status = 'ok');
    ALTER TABLE suspects ADD COLUMN wall_time TEXT;
    """,
    # What its device did not confirm is measured again; from now on only what is confirmed is kept.
    """
    DELETE FROM trials WHERE trial IN (SELECT trial FROM unconfirmed);
    DROP TABLE unconfirmed;
    DROP TABLE suspects;
    ALTER TABLE trials ADD COLUMN search INTEGER;
    ALTER TABLE trials ADD COLUMN number INTEGER;
    """,
    """
    CREATE TABLE run_offs (
        run_off INTEGER PRIMARY KEY,
        workload TEXT NOT NULL,
        device TEXT NOT NULL,
        times TEXT NOT NULL
    ) STRICT;
    """,
    """
    CREATE TABLE paces (
        device TEXT PRIMARY KEY,
        seconds REAL NOT NULL
    ) STRICT;
    """,
)

TRIAL_SCHEMA: Final = Schema(_MIGRATIONS)
