package parser

import (
	"github.com/callgate/callgate/refusal"
)

// member is one member of the envelope, with its position and its bytes.
type member struct {
	there bool
	at    int // offset of the value
	raw   []byte
}

func (m member) is(open byte) bool { return m.there && m.raw[0] == open }

// envelope holds the members of a call in an object that was read without a fault.
type envelope struct {
	root            int // offset of the outer brace
	tool, agent     member
	name, arguments member
	unexpected      []refusal.Violation
}

// readAttempt judges a body that is read as JSON: an object, or an array of
// objects.
func readAttempt(in input, start int, truncated bool, o Options) Result {
	r := reader{b: in.window, i: start, maxDepth: o.MaxDepth}
	var e envelope
	var calls bool
	var ok bool
	if r.b[start] == '{' {
		ok = e.read(&r)
	} else {
		ok, calls = readArray(&r)
	}
	if ok {
		r.trailing()
	}
	f := in.decide(r.fault)
	if f == nil && r.b[start] == '[' {
		f = &fault{offset: start, code: refusal.NotAToolCall}
		if calls {
			f.code = refusal.MultipleCalls
		}
	}
	if f == nil && !e.tool.there {
		f = &fault{offset: start, code: refusal.NotAToolCall}
	}
	if f != nil {
		if truncated && f.ended {
			f = &fault{offset: in.length, code: refusal.TruncatedOutput}
		}
		return Result{Refusal: f.refusal(in, o)}
	}
	return e.result(in, truncated, o)
}

// trailing fails on anything but outer whitespace after the body.
func (r *reader) trailing() {
	r.space()
	if r.i == len(r.b) {
		return
	}
	switch r.b[r.i] {
	case '{', '[':
		r.fail(r.i, refusal.MultipleCalls, "")
	default:
		r.alone()
	}
}

// alone fails on anything but outer whitespace after the body, whatever it is.
func (r *reader) alone() {
	if r.space(); r.i == len(r.b) {
		return
	}
	r.unexpected(r.i, "")
	if r.fault.code == refusal.MalformedJSON {
		r.fault.code, r.fault.detail = refusal.MixedOutput, afterCall
	}
}

// readArray reads an array, and reports whether an element is a call in one of
// the forms that models write.
func readArray(r *reader) (ok, calls bool) {
	ok = r.array(1, func() bool {
		if r.i >= len(r.b) || r.b[r.i] != '{' {
			return r.value(1)
		}
		var tool, name, arguments bool
		ok := r.object(2, func(raw []byte, _ int) bool {
			switch unquote(raw) {
			case "tool":
				tool = true
			case "name":
				name = true
			case "arguments":
				arguments = true
			}
			return r.value(2)
		})
		calls = calls || tool || name && arguments
		return ok
	})
	return ok, calls
}

// read reads the object at the reader and notes the members of the envelope.
func (e *envelope) read(r *reader) bool {
	e.root = r.i
	return r.object(1, func(raw []byte, at int) bool {
		switch {
		case nameIs(raw, "tool"):
			return e.readTool(r)
		case nameIs(raw, "agent"):
			return e.agent.read(r, 1)
		}
		e.surplus("", raw, at)
		return r.value(1)
	})
}

func (e *envelope) readTool(r *reader) bool {
	e.tool.there, e.tool.at = true, r.i
	if r.i >= len(r.b) || r.b[r.i] != '{' {
		return e.tool.read(r, 1)
	}
	ok := r.object(2, func(raw []byte, at int) bool {
		switch {
		case nameIs(raw, "name"):
			return e.name.read(r, 2)
		case nameIs(raw, "arguments"):
			return e.arguments.read(r, 2)
		}
		e.surplus("/tool", raw, at)
		return r.value(2)
	})
	if ok {
		e.tool.raw = r.b[e.tool.at:r.i]
	}
	return ok
}

// read reads one value of the envelope.
func (m *member) read(r *reader, depth int) bool {
	m.there, m.at = true, r.i
	if !r.value(depth) {
		return false
	}
	m.raw = r.b[m.at:r.i]
	return true
}

// maxViolations bounds how many faults of one completion are listed.
const maxViolations = 100

func (e *envelope) surplus(parent string, raw []byte, at int) {
	e.unexpected = append(e.unexpected, refusal.Violation{
		Code: refusal.UnexpectedField, Path: parent + "/" + refusal.EscapePointer(unquote(raw)), Offset: at,
	})
}

// nameIs compares a raw name with a word, as it decodes.
func nameIs(raw []byte, word string) bool {
	return string(raw) == word || escaped(raw) && unquote(raw) == word
}

// result judges the envelope of a lone object that has a member "tool".
func (e *envelope) result(in input, truncated bool, o Options) Result {
	res := Result{Object: true, AgentStated: e.agent.there}
	if e.agent.is('"') {
		res.Claim, res.Claimed = e.agent.string(), true
	}
	if e.name.is('"') {
		res.Name, res.HasName, res.NameOffset = e.name.string(), true, e.name.at
	}
	if vs := e.violations(); len(vs) > 0 {
		refused := refusal.At(refusal.Parse, vs[0].Code, refusal.Summary(vs))
		refused.Violations = vs
		res.Refusal = refused
		return res
	}
	if truncated {
		f := fault{offset: in.length, code: refusal.TruncatedOutput}
		return Result{Refusal: f.refusal(in, o)}
	}
	res.Kind = Call
	res.Arguments, res.ArgumentsOffset = e.arguments.raw, e.arguments.at
	return res
}

func (m member) string() string { return unquote(m.raw[1 : len(m.raw)-1]) }

// violations lists all faults of the envelope, in the order of the contract.
func (e *envelope) violations() []refusal.Violation {
	vs := e.unexpected
	wrong := func(m member, path, name, want string) {
		vs = append(vs, refusal.Violation{
			Code: refusal.WrongType, Path: path, Offset: m.at,
			Message: wrongFieldMessage(name, want, m.raw[0]),
		})
	}
	if e.agent.there && !e.agent.is('"') {
		wrong(e.agent, "/agent", "agent", "a string")
	}
	if !e.tool.is('{') {
		wrong(e.tool, "/tool", "tool", "an object")
	} else {
		e.inner(&vs, wrong)
	}
	refusal.Sort(vs)
	vs = vs[:min(len(vs), maxViolations)]
	for i := range vs {
		if vs[i].Message == "" {
			vs[i].Message = surplusMessage(vs[i].Path)
		}
	}
	return vs
}

// inner lists the faults of the member "tool".
func (e *envelope) inner(vs *[]refusal.Violation, wrong func(m member, path, name, want string)) {
	for _, f := range []struct {
		member
		name, want string
		open       byte
	}{{e.name, "name", "a string", '"'}, {e.arguments, "arguments", "an object", '{'}} {
		switch {
		case !f.there:
			*vs = append(*vs, refusal.Violation{
				Code: refusal.MissingField, Path: "/tool/" + f.name, Offset: e.tool.at,
				Message: missingFieldMessage(f.name),
			})
		case !f.is(f.open):
			wrong(f.member, "/tool/"+f.name, f.name, f.want)
		}
	}
}
