"""The steps of `tilefarm tune`, from the files of a user to the files for a user."""
