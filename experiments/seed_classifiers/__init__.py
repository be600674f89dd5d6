"""Which treatment of labels by seed words gives the best classifier?"""
