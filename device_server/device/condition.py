"""What keeps a device from service, in its own words: it hangs, drifts, or is in quarantine."""

from __future__ import annotations

from dataclasses import dataclass

from device_server.device.canary import Drift, Wrong


@dataclass(slots=True)
class Condition:
    """One device's condition; each word is the reason, empty while there is none.

    Attributes:
        hung: a run did not come back; only a new process helps.
        drift: its times are not those of its start; ends when they are again.
        quarantine: its answers are wrong; ends when somebody readmits it and they are right. Never
            together with `drift`, which is about right answers.
        acknowledged: the tracker knows of the quarantine.
    """

    hung: str = ""
    drift: str = ""
    quarantine: str = ""
    acknowledged: bool = False

    @property
    def resting(self) -> str:
        """Why nobody may lease it for the time being."""
        return self.hung or self.drift

    @property
    def news(self) -> str:
        """The quarantine as long as the tracker does not know it; then it is the tracker's."""
        return "" if self.acknowledged else self.quarantine

    @property
    def trouble(self) -> str:
        """Why nothing runs on it."""
        return self.quarantine or self.resting

    def note(self, finding: Wrong | Drift) -> None:
        """The known kernel failed."""
        match finding:
            case Wrong(why):
                self.quarantine, self.drift, self.acknowledged = why, "", False
            case Drift(why):
                self.quarantine, self.drift = "", why

    def recover(self) -> None:
        """The known kernel is right again."""
        self.drift = self.quarantine = ""
        self.acknowledged = False

    def hear(self, *, quarantined: bool) -> bool:
        """What the tracker thinks; whether somebody has readmitted the device since it knew."""
        if quarantined:
            self.acknowledged = True
        return bool(self.quarantine) and self.acknowledged and not quarantined
