package registry

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/callgate/callgate/refusal"
)

// schema is a definition that was read, closed and compiled.
type schema struct {
	root    *node
	witness *witness
	closed  json.RawMessage // for readers
	written json.RawMessage // the same in its author's words
	// secretOthers makes members secret that the root does not declare.
	secretOthers bool
}

// reading says how a definition is read. The zero value is the strict one.
type reading struct {
	open     bool // the root keeps what the author wrote of other members
	anything bool // nothing is closed and the root may be any schema: results, and the official suite
	// silentFormats makes format an annotation, emptyEnums accepts a list that
	// no value matches, and remotes supplies other documents: the official suite.
	silentFormats, emptyEnums bool
	remotes                   func(uri string) (any, bool)
	heavy                     chan struct{} // see witness
}

// read turns a definition into a schema, or says all that is wrong with it.
func read(raw json.RawMessage, r reading) (*schema, []fault) {
	if len(raw) == 0 {
		return nil, []fault{{"", "found no schema; expected a JSON Schema of type object: a tool that does not say what it takes cannot be judged"}}
	}
	value, unreadable := decodeSchema(raw)
	if unreadable != nil {
		return nil, []fault{*unreadable}
	}
	if value == nil {
		return nil, []fault{{"", "found null; expected a JSON Schema of type object: a tool that does not say what it takes cannot be judged"}}
	}
	l := newLibrary(r)
	doc := l.add(value, homeURI)
	l.lint(doc)
	if len(l.faults) > 0 {
		return nil, l.faults
	}
	if r.remotes == nil {
		if f := checkMetaschema(value, doc.dialect); f != nil {
			// Where a reference is the trouble, the own resolver says it better.
			if l.references(doc); len(l.faults) > 0 {
				return nil, l.faults
			}
			return nil, []fault{*f}
		}
	}
	targets := l.references(doc)
	if len(l.faults) == 0 {
		l.cycles(doc, targets)
	}
	if len(l.faults) > 0 {
		return nil, l.faults
	}
	b := newBundle(targets)
	b.open, b.format = r.open, !r.silentFormats
	stand := asRoot
	if r.anything {
		stand = asKept
	} else {
		b.check(l, doc.root)
	}
	if len(l.faults) > 0 {
		return nil, l.faults
	}
	return assemble(b, doc.root, stand, r)
}

// check reports what closing cannot close.
func (b *bundle) check(l *library, root *subschema) {
	if problem := b.mustBeObject(root); problem != "" {
		l.report(root.pointer, problem)
		return
	}
	reported := map[*subschema]bool{}
	for _, s := range b.memberless(root) {
		if own := b.ownTarget(s); !reported[own] {
			reported[own] = true
			l.report(own.pointer, undeclared)
		}
	}
	b.boundaries(l, root)
}

func assemble(b *bundle, top *subschema, stand stand, r reading) (*schema, []fault) {
	document := b.document(top, stand)
	root, f := compile(document)
	if f != nil {
		return nil, []fault{*f}
	}
	if problem := root.cost(); problem != "" {
		return nil, []fault{{"", problem}}
	}
	root.burden()
	w, err := newWitness(document, root.patterned(), r.heavy)
	if err != nil {
		return nil, []fault{{"", "found a schema that the second validator cannot compile; expected one that both can (" + shortCause(err) + ")"}}
	}
	b.shown = true
	shown, err := json.Marshal(b.document(top, stand))
	if err != nil {
		return nil, []fault{{"", "found a schema that cannot be written as JSON"}}
	}
	written, err := json.Marshal(b.written(top, stand))
	if err != nil {
		return nil, []fault{{"", "found a schema that cannot be written as JSON"}}
	}
	return &schema{root: root, witness: w, closed: shown, written: written, secretOthers: b.secretOthers}, nil
}

// patterned tells whether any schema that can be reached has a pattern.
func (n *node) patterned() bool {
	found := false
	n.each(func(n *node) { found = found || n.pattern != nil || len(n.patterns) > 0 })
	return found
}

var (
	errUnsound = errors.New("the arguments hold a value that no JSON text has, a number out of range, or nest too deeply")
	errSteps   = fmt.Errorf("judging takes more than %d steps, or the second validator more than %d", maxSteps, maxSecondSteps)
)

// judge gives every violation of a value, or nil.
func (s *schema) judge(tool string, v any) []Violation {
	refused := func(message string, cause error) []Violation {
		return []Violation{{Code: refusal.InvalidValue, Message: message, Cause: cause}}
	}
	if !sound(v, 1) {
		return refused("The arguments hold a value that cannot be judged: a number out of range, or too many levels.", errUnsound)
	}
	tooLarge := func() []Violation {
		return refused("The arguments are too large to be judged for "+tool+". Send less in one call.", errSteps)
	}
	j := judge{tool: tool}
	ok := j.apply(s.root, v, nil)
	if j.spent {
		return tooLarge()
	}
	if !ok {
		if found := j.result(); len(found) > 0 {
			return found
		}
		return refused("The arguments do not match the schema of "+tool+".", errors.New("the first validator refused and gave no reason"))
	}
	// The second judge takes no short cuts: find out what it would do.
	j = judge{tool: tool, thorough: true, path: j.path[:0]}
	if j.apply(s.root, v, nil); j.spent {
		return tooLarge()
	}
	if err := s.witness.accepts(v, j.steps); err != nil {
		return refused("The arguments do not match the schema of "+tool+".", err)
	}
	return nil
}
