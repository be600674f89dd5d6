"""Command: tables and figures of `imm_lm`."""
