"""From the lowered IR to ELF shared objects: LLVM text, machine code, link."""
