"""Integer network to kernel calls on one target: what runs where, on which blocked tensors."""
