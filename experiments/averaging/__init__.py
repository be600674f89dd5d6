"""Studies of averages of iterates: Two-Tailed Averaging and the others."""
