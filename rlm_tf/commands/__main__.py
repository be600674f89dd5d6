"""`python -m rlm_tf.commands COMMAND`."""

from rlm_tf.commands.main import main

if __name__ == "__main__":
    main()
