"""One night: each row of the zoo measured by a process of its own, judged, kept and published."""
