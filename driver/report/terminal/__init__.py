"""What a run says while it goes on, and how it is stopped from the keyboard."""
