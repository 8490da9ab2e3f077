"""The life of a study: its stages, its pre-registration with an optional time-stamp, its close-out."""
