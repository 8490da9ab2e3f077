"""The protocol text that the tests' packages carry: the shape of study-1-rehearsal, kept apart from it."""

REHEARSAL_TOML = """\
[study]
name = "study-1-rehearsal"
title = "Study 1, rehearsal"
canonical = false

[refund]
refund_request_id = "ref-poc-001"
payment_id = "pay-poc-001"
captured_minor = 10000
approved_minor = 10000
currency = "BRL"

[caller]
deadline_ms = 3000
total_max_attempts = 1
function_timeout_s = 6

[provider]
function_timeout_s = 12
hold_budget_s = 8
barrier_poll_ms = 100

[release]
function_timeout_s = 10
max_retries = 3

[variants.conventional]
batch_size = 1
visibility_timeout_s = 8
max_receive_count = 2

[variants.durable]
batch_size = 1
visibility_timeout_s = 40
max_receive_count = 2
execution_timeout_s = 30
retention_days = 7
step_name = "refund-attempt"
step_attempts = 2
step_retry_delay_s = 4
step_jitter = "NONE"
step_semantics = "AT_LEAST_ONCE_PER_RETRY"

[quiescence]
samples = 3
interval_s = 1
trial_limit_s = 120

[cost]
ceiling_usd_cents = 500

[[order]]
scenario = "CONTROL"
variant = "conventional"

[[order]]
scenario = "CONTROL"
variant = "durable"

[[order]]
scenario = "COMMIT_THEN_TIMEOUT"
variant = "conventional"

[[order]]
scenario = "COMMIT_THEN_TIMEOUT"
variant = "durable"
"""
