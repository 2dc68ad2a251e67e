"""A command that cannot go on: what happened and what to do, without a stack trace."""

KEY_HINT = "--api-key or PODIUM_API_KEY give a key; without them the one in the home's file `api-key` is used"


class CliError(Exception):
    """Shown to the user as it is; the command exits with `exit_code`. `hint` says what to do next."""

    def __init__(self, message: str, *, hint: str = "", exit_code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code
