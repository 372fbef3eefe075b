package schema

import "github.com/callgate/callgate/refusal"

// report hands a finding about the current value to the collector. It costs as much as its pointer is long: the names in it are the
// caller's.
func (j *explanation) report(f finding) {
	if j.exhausted() {
		return
	}
	f.words, f.path, f.pointer = j.words, j.path, pointerOf(j.path)
	if j.spend(1 + len(f.pointer)/bytesWrittenPerStep) {
		j.found.add(f)
	}
}

// reportMember does the same for a member of that value, which may be absent.
func (j *explanation) reportMember(name string, f finding) {
	j.push(pathToken{name, -1})
	j.report(f)
	j.pop()
}

func (j *explanation) wrongType(n *node, v any) {
	j.report(finding{code: refusal.WrongType, at: Value, by: n, render: func(place string) string { return wrongTypeMessage(n, v, place) }})
}

func (j *explanation) invalid(n *node, v any, f faultKind) {
	j.report(finding{code: refusal.InvalidValue, at: Value, by: n, fault: f, render: func(place string) string {
		return place + " " + n.requirement(v, f, j.words.by) + "."
	}})
}

func (j *explanation) missing(n *node, name string) {
	j.reportMember(name, finding{code: refusal.MissingArgument, at: Parent, by: n,
		render: func(place string) string { return missingMessage(n, name, place, j.words) }})
}

func (j *explanation) unexpected(n *node, v map[string]any, name string) {
	j.reportMember(name, finding{code: refusal.UnexpectedArgument, at: Name, by: n,
		render: func(place string) string { return unexpectedMessage(n, v, name, place, j.words, &j.suggestions) }})
}

func (j *explanation) invalidName(n *node, name string) {
	j.reportMember(name, finding{code: refusal.InvalidValue, at: Value, by: n, fault: faultName,
		render: func(place string) string { return invalidNameMessage(n, place) }})
}

// result returns the findings with their messages.
func (j *explanation) result() []Violation {
	j.found.compact()
	var out []Violation
	for _, f := range j.found.list {
		v := Violation{Code: f.code, At: f.at, Message: f.text(), Path: make([]string, len(f.path))}
		for k := range f.path {
			v.Path[k] = f.path[k].text()
		}
		out = append(out, v)
	}
	return out
}
