"""What it costs to keep a promise of accuracy, and whether it holds on samples nobody chose by."""
