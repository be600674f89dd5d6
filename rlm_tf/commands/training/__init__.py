"""The parts of `rlm_tf train`, in their order: text, plan, fit, measurements."""
