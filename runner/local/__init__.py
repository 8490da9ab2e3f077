"""The embedded local cloud: MiniStack, AWS's durable testing library, and a gateway in front.

May import the standard library, boto3/botocore, aiohttp, the durable testing library and the rest
of `runner` that needs no cloud (`runner.errors`). Never imports `stacks`, `oracle` or `lambdas`.

Who starts whom: `runner local up` or `cloud` -> `launch` -> `guard` (owns every process and one
temporary folder) -> `plane` (gateway, durable service and mappings) -> MiniStack -> Lambda workers.
"""
