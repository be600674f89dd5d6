"""Does a detector gain by a larger generator, and by an optimiser of its own?"""
