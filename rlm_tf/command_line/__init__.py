"""What commands and the binaries of studies share: flags, help, one line a mistake.

Nothing here imports TensorFlow before it is needed.
"""
