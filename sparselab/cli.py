"""The ``sparselab`` command: one subcommand a file in `sparselab/commands/`.

A command's file has ``SUMMARY`` (one line), ``configure(parser)`` and ``run(arguments)``, which
returns the exit code. What is wrong with the input becomes one sentence on standard error and
exit code 2, Ctrl-C code 130 and SIGTERM code 143; ``--traceback`` shows where it was raised.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

import sparselab
from sparselab.termination import TERMINATED, Terminated, orderly_termination

COMMANDS = (
    "place",
    "frontier",
    "policies",
    "overlap",
    "simulate",
    "replay",
    "run",
    "sweep",
    "doctor",
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="sparselab",
        description="Where to checkpoint the recurrent state of hybrid and recurrent LLMs.",
        epilog="example: sparselab frontier --overlap quality --length 8192 --budget 8",
    )
    parser.add_argument("--version", action="version", version=f"sparselab {sparselab.__version__}")
    parser.add_argument(
        "--traceback", action="store_true", help="show a traceback where the input is refused"
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = importlib.import_module(f"sparselab.commands.{name}")
        subparser = subparsers.add_parser(
            name,
            help=module.SUMMARY,
            description=module.SUMMARY,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(subparser)
        subparser.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv``; return the exit code.

    That is the command's own, 2 for refused input, 130 if interrupted (Ctrl-C) and 143 if
    terminated (SIGTERM), after what was begun is put in order.
    """
    arguments = build_parser().parse_args(argv)
    try:
        with orderly_termination() as terminated:
            code = arguments.run(arguments)
            sys.stdout.flush()  # here, where a reader that has gone is no error
        return TERMINATED if terminated.is_set() else code  # a command may have ended by itself
    except Terminated:
        print(f"sparselab {arguments.command}: terminated.", file=sys.stderr)
        return TERMINATED
    except KeyboardInterrupt:
        print(f"sparselab {arguments.command}: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (`head`, say) has had enough: no error, but nothing more can be flushed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        if arguments.traceback:
            raise
        print(f"sparselab {arguments.command}: {one_sentence(error)}", file=sys.stderr)
        return 2


def one_sentence(error: BaseException) -> str:
    """Return the message of ``error`` on one line."""
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
