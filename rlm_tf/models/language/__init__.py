"""Models of text, and what the library asks of one."""
