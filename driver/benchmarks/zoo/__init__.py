"""`tilefarm bench zoo`: trained networks end to end, their accuracy against gates."""
