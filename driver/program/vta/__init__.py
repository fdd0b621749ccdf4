"""Programs of the accelerator as files: `tilefarm vta check|run|show|dump`."""
