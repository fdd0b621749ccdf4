"""The tracker: who may use which device, until when."""
