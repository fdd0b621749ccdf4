"""What a night says of each row of its zoo: pure functions of samples, with words for people."""
