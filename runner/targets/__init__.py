"""Where the lab is: the local cloud or an AWS account, and the stack on it.

target.py      which of the two, chosen once and announced
labs.py        the lab opened for a run: deployed where that is ours to do, or found as it stands
accounts.py    the same for cleanup, audit and doctor, which need no lab
assembly.py    the template that this code synthesises
deployed.py    whether that is what is deployed
aws_errors.py  what AWS says when it refuses, told to a user
"""
