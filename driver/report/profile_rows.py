"""A program's profile as a document for machines."""

from __future__ import annotations

from typing import Any

from tilefarm.measurement import CallTime

from driver.report.profile import Profile


def profile_document(profile: Profile) -> dict[str, Any]:
    """What JSON can say; times are in seconds."""
    return {
        "clock": "seconds" if profile.by_clock else "cycles",
        "mhz": profile.mhz,
        "peak_macs_per_second": profile.peak,
        "layers": [
            {
                "layer": layer.layer,
                "kernel": layer.kernel,
                "entry": layer.entry,
                **_took(layer.took),
                "share": layer.share,
                "predicted_cycles": layer.predicted_cycles,
                "ratio": layer.ratio,
                "macs": layer.macs,
                "macs_per_second": profile.speed(layer),
                "of_peak": profile.of_peak(layer),
            }
            for layer in profile.layers
        ],
        "layers_cost": profile.layers_cost,
        "network": _took(profile.network),
        "remark": profile.remark,
    }


def _took(took: CallTime) -> dict[str, object]:
    time = took.wall_time
    counted: dict[str, object] = {} if took.cycles is None else {"cycles": took.cycles}
    if time is None:
        return {"cycles": took.cycles}
    return counted | {
        "minimum_seconds": time.minimum_seconds,
        "p10_seconds": time.p10_seconds,
        "median_seconds": time.median_seconds,
        "p90_seconds": time.p90_seconds,
        "regions": time.regions,
        "rejected": time.rejected,
    }
