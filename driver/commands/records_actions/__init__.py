"""The actions of `tilefarm records`: a file each, imported only when it is wanted."""
