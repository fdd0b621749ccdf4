"""The loop IR: interned values, from tensor expressions down to calls of the VTA runtime."""
