"""How well does a probe's confidence tell wrong labels by seed words?"""
