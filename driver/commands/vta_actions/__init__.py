"""The actions of `tilefarm vta`: a file each, imported only when it is wanted."""
