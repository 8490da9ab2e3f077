"""What an account is asked and left with: permissions, cleanup, audit, errors, doctor."""
