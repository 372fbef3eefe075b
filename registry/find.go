package registry

import "github.com/callgate/callgate/refusal"

// note hands a finding about the value that the judge stands at to the
// collector. It costs as much as its pointer is long: the names in it are the
// caller's.
func (j *judge) note(f finding) {
	if j.quiet > 0 || j.spent {
		return
	}
	f.path, f.pointer = j.path, pointerOf(j.path)
	if j.spend(1 + len(f.pointer)/writtenPerStep) {
		j.found.add(f)
	}
}

// noteMember does the same for a member of that value, which may be absent.
func (j *judge) noteMember(name string, f finding) {
	if j.quiet > 0 {
		return
	}
	j.enter(token{name, -1})
	j.note(f)
	j.leave()
}

func (j *judge) wrongType(n *node, v any) {
	j.note(finding{code: refusal.WrongType, at: Value, by: n, say: func(argument string) string { return sayWrongType(n, v, argument) }})
}

func (j *judge) invalid(n *node, v any, f faultKind) {
	j.note(finding{code: refusal.InvalidValue, at: Value, by: n, fault: f, say: func(argument string) string {
		return argument + " " + n.demand(v, f, j.tool) + "."
	}})
}

func (j *judge) missing(n *node, name string) {
	j.noteMember(name, finding{code: refusal.MissingArgument, at: Parent, by: n, say: func(argument string) string { return j.sayMissing(n, name, argument) }})
}

func (j *judge) unexpected(n *node, v map[string]any, name string) {
	j.noteMember(name, finding{code: refusal.UnexpectedArgument, at: Name, by: n, say: func(argument string) string { return j.sayUnexpected(n, v, name, argument) }})
}

func (j *judge) badName(n *node, name string) {
	j.noteMember(name, finding{code: refusal.InvalidValue, at: Value, by: n, fault: faultName, say: func(argument string) string { return sayBadName(n, argument) }})
}
