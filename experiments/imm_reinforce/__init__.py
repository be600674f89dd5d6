"""The study of REINFORCE with induced model matching on the toroidal grid."""
