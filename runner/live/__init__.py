"""What a person sees while a run goes on: its picture, kept on disk for `watch`, and its terminal view."""
