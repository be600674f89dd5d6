"""Does deletion help where seed words label for a pre-trained transformer?"""
