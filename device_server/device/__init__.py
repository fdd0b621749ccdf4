"""The server of one device: uploads, its lease, one job at a time."""
