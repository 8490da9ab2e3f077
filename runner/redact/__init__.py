"""Redaction: a public copy of a package that names nobody, its manifest, and the proof that nothing leaked.

Import order: source, views, archive, forms < scan, known < replace < manifest < redaction < addenda < cli.
May import the standard library, `runner.addendum`, `runner.errors`, `runner.freeze`, `runner.packages`,
`runner.records` and `runner.oracle_command`. `scan` imports nothing but its own `forms`, on purpose: what
looks for leaks shares no code with what removes them. evidence/REDACTION.md says what is promised, and not.
"""
