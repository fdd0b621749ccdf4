"""Which commit made a row slower: builds commits, measures them, and says which it was."""
