"""The network compiler: trained networks in, kernel calls for one target out."""
