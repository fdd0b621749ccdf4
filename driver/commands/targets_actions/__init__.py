"""The actions of `tilefarm targets`: a file each, and what they need."""
