"""The compiled core of the scheduler, libtilefarm_memory: the one place with ctypes."""
