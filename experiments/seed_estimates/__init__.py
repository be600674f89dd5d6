"""How well is the quality of labels and of classifiers estimated?"""
