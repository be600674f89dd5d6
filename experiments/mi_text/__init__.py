"""How coherent real text is, as an estimate of mutual information."""
