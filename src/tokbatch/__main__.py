"""`python -m tokbatch`: the command line, where the command itself is not on the path."""

from tokbatch.frontends.start import main

if __name__ == "__main__":
    main()
