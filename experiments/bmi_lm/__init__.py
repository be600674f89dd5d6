"""BMI on Penn Treebank."""
