"""Calls between the parts: records to messages, who may call what, and what went wrong."""
