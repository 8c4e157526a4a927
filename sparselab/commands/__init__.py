"""The subcommands of ``sparselab``, one a file; `sparselab/cli.py` says what such a file has."""
