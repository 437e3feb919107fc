undef $/; $_ = <STDIN>;
s~computed\(visit\(COMPARE, sample="race", fabrics="static,provisioned"\)\)~computed(visit(MAP, sample="race", fabrics="static,provisioned"))~;
s~    at = visit\(COMPARE, sample="race", fabrics="static,provisioned"\)\n    assert not \{"cancel_map"~    at = visit(MAP, sample="race", fabrics="static,provisioned")\n    assert not {"cancel_map"~;
s~press\(visit\(COMPARE, sample="moe", fabrics="reactive,provisioned"\), "cancel_map"\)~press(visit(MAP, sample="moe", fabrics="reactive,provisioned"), "cancel_map")~;
s~COMPARE = "Compare"~COMPARE, MAP = "Compare", "Where which wins"~;
print;
