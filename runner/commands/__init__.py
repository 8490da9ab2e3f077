"""One module for each command of `python -m runner`: `add_parser(subparsers)`, `main(args) -> exit code`."""
