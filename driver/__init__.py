"""Composes the farm: models in, tuned programs and reports out."""
