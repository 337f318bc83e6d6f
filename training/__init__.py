"""Everything that makes or measures an evaluator."""
