"""The bootstrapped mutual-information regulariser."""
