undef $/; $_ = <STDIN>;
s~    at = visit\(COST, sample="race"\)\n    assert chart\(at, "worth"\)~    at = visit(PER_ITERATION, sample="race")\n    assert "Most iterations per dollar" in words(at)\n    assert chart(at, "worth")~;
s~    at = visit\(COST, sample="blackboard"\)\n    assert \(\n        "Without a delay~    at = visit(PER_ITERATION, sample="blackboard")\n    assert (\n        "Without a delay~;
s~COST, COMPARE = "Cost", "Compare"~COST, PER_ITERATION, COMPARE = "Cost", "Per iteration", "Compare"~;
print;
