"""AutoTVM's logs of VTA: its template's choices as schedules of ours, and ours as its."""
