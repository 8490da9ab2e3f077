"""What runs in AWS Lambda: the two callers, the provider and the release controller.

May import: the standard library, botocore (boto3 only to report its version), Powertools, the durable
SDK, itself. May be imported by: its tests; the runner uses `lambdas.shared.journal` alone.
Order inside: `shared` knows no handler; `caller`, `provider` and `release` know `shared`, never each other.
"""
