"""What a run shows people: one HTML page that needs no network, a trace, and tables."""
