"""What a run costs: usage counted from evidence, priced from a dated table, held against a bill."""
