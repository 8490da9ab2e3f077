"""Redaction: a public copy of a package that names nobody, its manifest, and the proof that nothing leaked.

Import order: source, views, archive, forms < scan, known < replace < manifest < redaction < addenda. May
import the standard library, `runner.errors`, `runner.packages`, `runner.places`, `runner.records` and, of
`runner.runs`, addendum and freeze. `scan` imports nothing but its own `forms`, on purpose: what looks for
leaks shares no code with what removes them. evidence/REDACTION.md says what is promised, and what is not.
"""
