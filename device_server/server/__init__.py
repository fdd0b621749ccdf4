"""What a tracker and a device have in common as servers: a life, telemetry, an address."""
