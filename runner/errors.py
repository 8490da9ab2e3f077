"""Errors a user can act on, and the runner's exit codes."""

EXIT_OK = 0
EXIT_NOT_CLEAN = 2
EXIT_USAGE = 64
EXIT_HARNESS = 70


class LabError(Exception):
    """A refusal or failure told in four parts: subject, expected, found, one next step.

    `exit_code` is what the command line ends with (`EXIT_USAGE` for a user's mistake,
    `EXIT_HARNESS` for a fault of ours or of the environment).
    """

    exit_code = EXIT_HARNESS

    def __init__(self, subject: str, *, expected: str = "", found: str = "", next_step: str = ""):
        self.subject = subject
        self.expected = expected
        self.found = found
        self.next_step = next_step
        super().__init__(str(self))

    def __str__(self) -> str:
        parts = [self.subject]
        if self.expected:
            parts.append(f"  expected: {self.expected}")
        if self.found:
            parts.append(f"  found:    {self.found}")
        if self.next_step:
            parts.append(f"  next:     {self.next_step}")
        return "\n".join(parts)


class UsageError(LabError):
    """The user asked for something that cannot be done as asked; nothing was started."""

    exit_code = EXIT_USAGE
