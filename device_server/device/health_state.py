"""What keeps a device from service, in its own words: it hangs, drifts, is unsure, or quarantined.

Unsure is one whose known kernel could not be run: nobody knows whether it is right.
"""

from __future__ import annotations

from dataclasses import dataclass

from device_server.device.canary import Drift, NotMade, Wrong


@dataclass(slots=True)
class HealthState:
    """One device's condition; each word is the reason, empty while there is none.

    Attributes:
        hung: a run did not come back; only a new process helps.
        drift: its times are not those of its start; ends when they are again.
        unsure: its known kernel could not be run; ends when it is run.
        quarantine: its answers are wrong; ends when somebody readmits it and they are right. Never
            together with `drift`, which is about right answers.
        acknowledged: the tracker knows of the quarantine.
    """

    hung: str = ""
    drift: str = ""
    unsure: str = ""
    quarantine: str = ""
    acknowledged: bool = False

    @property
    def resting(self) -> str:
        """Why nobody may lease it for the time being."""
        return self.hung or self.passing

    @property
    def passing(self) -> str:
        """What may end by itself, so that the known kernel is to run again after a rest."""
        return self.unsure or self.drift

    @property
    def rests(self) -> bool:
        """Whether nothing else is wrong with it than what may end by itself."""
        return bool(self.passing) and not (self.hung or self.quarantine)

    @property
    def news(self) -> str:
        """The quarantine as long as the tracker does not know it; then it is the tracker's."""
        return "" if self.acknowledged else self.quarantine

    @property
    def trouble(self) -> str:
        """Why nothing runs on it."""
        return self.quarantine or self.resting

    def note(self, finding: Wrong | Drift | NotMade) -> None:
        """The known kernel failed, or could not be run: then all that was known before stays."""
        match finding:
            case Wrong(why):
                self.quarantine, self.drift, self.unsure = why, "", ""
                self.acknowledged = False
            case Drift(why):
                self.quarantine, self.drift, self.unsure = "", why, ""
            case NotMade(why, remedy):
                self.unsure = f"cannot be checked: {why}; {remedy}"

    def recover(self) -> None:
        """The known kernel is right again."""
        self.drift = self.unsure = self.quarantine = ""
        self.acknowledged = False

    def hear(self, *, quarantined: bool) -> bool:
        """What the tracker thinks; whether somebody has readmitted the device since it knew.

        One that is unsure has heard, and is checked again after each rest.
        """
        if quarantined:
            self.acknowledged = True
        heard = bool(self.quarantine) and self.acknowledged and not quarantined
        return heard and not self.unsure
