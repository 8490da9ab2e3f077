"""The independent oracle: reads frozen packages, imports the standard library and itself, nothing else.

Import order: codes, finding, output < strict_json, shape < source < archive < integrity < reads < journal,
ledger, queues, durable, package < trial < rules < judge < text, explain, compare, results < cli.
It shares no code with the writer of packages; evidence/FORMAT.md is all the two have in common.
"""

VERSION = "1.1.0"
FORMAT_NAME = "suc-evidence"
FORMAT_VERSION = 1
