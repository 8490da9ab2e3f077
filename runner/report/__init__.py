"""The report: a package as one HTML page that needs no network.

May import the standard library, Jinja, Altair with vl-convert, and the runner's protocol-free helpers
(`errors`, `money`, `names`, `oracle_command`). Verdicts and totals come from the oracle's command and
are never worked out again here; the package's files only feed charts and timelines, and only after the
oracle has found their bytes intact.
"""
