"""The base class of models with objectives: terms, parts, phases, workers."""
