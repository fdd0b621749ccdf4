"""The actions of `tilefarm history`: a file each, imported only when it is wanted."""
