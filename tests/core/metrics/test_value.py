import json
import math

from stepsight.core.metrics.value import Value


def test_no_value_is_null_with_its_reason():
    assert Value.none("one class").as_json() == {"value": None, "low": None, "high": None, "reason": "one class"}
    assert not Value.none("one class").exists


def test_a_value_with_its_interval():
    value = Value(0.5).within(0.25, 0.75)
    assert json.loads(json.dumps(value.as_json())) == {"value": 0.5, "low": 0.25, "high": 0.75}
    assert value.exists
    assert math.isnan(Value(0.0).low)
    assert Value(0.0).exists
