"""One trial on real resources: driven, watched without being touched, and read to its last page.

trial.py    what identifies a trial: one scenario x one variant x one refund request
driver.py   from its first event to quiescence
probe.py    the same causal chain with a single call, before any trial
observe.py  what is looked at while a trial goes on: attributes and listings, never a receive
collect.py  every page of evidence afterwards
"""
