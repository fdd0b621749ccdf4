"""Passes that know VTA: from annotated blocks to its instructions, tokens and memories."""
