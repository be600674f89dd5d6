"""Does deletion keep a classifier from learning a trigger that was planted?"""
