"""Student-oriented teachers and distillation on few handwritten digits."""
