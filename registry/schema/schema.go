package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry/schema/plain"
)

// Schema is a definition that was read, closed and compiled. It is immutable and
// safe for concurrent use.
type Schema struct {
	root      *node
	secondary *secondary
	plain     *plain.Program  // nil: not a plain schema
	late      *lateComparison // nil: the evaluators were compared when it was compiled
	closed    json.RawMessage // for readers
	authored  json.RawMessage // the same in its author's words
	// secretAdditional makes members secret that the root does not declare.
	secretAdditional    bool
	bounded, hasSecrets bool
	disputed            string // a value on which the evaluators disagreed, or ""
}

// Closed returns the schema that values are evaluated by: what the author wrote,
// closed, with every reference inside the document, without identifiers and
// extensions. The caller may keep it.
func (s *Schema) Closed() json.RawMessage { return slices.Clone(s.closed) }

// Authored returns the schema in its author's words, closed as far as they allow,
// for readers that know dialects, anchors and extensions. The caller may keep it.
func (s *Schema) Authored() json.RawMessage { return slices.Clone(s.authored) }

// SameAs reports whether both schemas are the same once they are closed.
func (s *Schema) SameAs(other *Schema) bool { return bytes.Equal(s.closed, other.closed) }

// HasSecrets reports whether any place is marked x-secret.
func (s *Schema) HasSecrets() bool { return s.hasSecrets }

// HasBoundaries reports whether any place is marked x-boundary.
func (s *Schema) HasBoundaries() bool { return s.bounded }

// AcceptsJSON reports whether a value, as strict JSON, is valid, where the compiled
// program of a plain schema can tell. False means that Evaluate decides.
func (s *Schema) AcceptsJSON(value []byte) bool { return s.isPlain() && s.plain.Accepts(value) }

// isPlain reports whether there is a program, with which the evaluators agree.
func (s *Schema) isPlain() bool { return s.plain != nil && (s.late == nil || s.late.agree(s)) }

// Disputed returns a value on which the evaluators disagreed when the schema was compiled,
// or "". Such a schema is not taken for a plain one.
func (s *Schema) Disputed() string { return s.disputed }

// Compiler compiles schemas. Of all its schemas, one large value at a time is given
// to the second evaluator, which bounds the memory that it needs. Safe for
// concurrent use.
type Compiler struct {
	large      chan struct{}
	bothAlways bool
	agreement  agreement
}

// NewCompiler returns a compiler. With bothAlways AcceptsJSON accepts nothing, so that both
// evaluators are asked about every value.
func NewCompiler(bothAlways bool) *Compiler {
	return &Compiler{large: make(chan struct{}, 1), bothAlways: bothAlways}
}

// Fresh returns a compiler that has learnt nothing of the schemas compiled so far. Of the schemas of
// both, one large value at a time is given to the second evaluator.
func (c *Compiler) Fresh() *Compiler { return &Compiler{large: c.large, bothAlways: c.bothAlways} }

// Compile turns a definition into a Schema, or reports all that is wrong with it.
// It reads no file and no network.
func (c *Compiler) Compile(raw json.RawMessage, o Options) (*Schema, []Fault) {
	o.large, o.bothAlways, o.agreement = c.large, c.bothAlways, &c.agreement
	return read(raw, o)
}

// read turns a definition into a schema, or says all that is wrong with it.
func read(raw json.RawMessage, r Options) (*Schema, []Fault) {
	if len(raw) == 0 {
		return nil, []Fault{{"", "found no schema; expected a JSON Schema of type object: arguments cannot be checked without one"}}
	}
	value, unreadable := decodeSchema(raw)
	if unreadable != nil {
		return nil, []Fault{*unreadable}
	}
	if value == nil {
		return nil, []Fault{{"", "found null; expected a JSON Schema of type object: arguments cannot be checked without one"}}
	}
	l := newResolver(r)
	doc := l.add(value, baseURI)
	l.lint(doc)
	if len(l.faults) > 0 {
		return nil, l.faults
	}
	if r.remotes == nil {
		if f := checkMetaschema(value, doc.dialect); f != nil {
			// Our own resolver explains a bad reference better.
			if l.references(doc); len(l.faults) > 0 {
				return nil, l.faults
			}
			return nil, []Fault{*f}
		}
	}
	targets := l.references(doc)
	if len(l.faults) == 0 {
		l.cycles(doc, targets)
	}
	if len(l.faults) > 0 {
		return nil, l.faults
	}
	b := newBundler(targets)
	b.open, b.format = r.Open, !r.formatAnnotations
	at := rootPosition
	if r.Authored {
		at = resultPosition
	} else {
		b.checkClosable(l, doc.root)
	}
	if len(l.faults) > 0 {
		return nil, l.faults
	}
	return assemble(b, doc.root, at, r)
}

// checkClosable reports the schemas that cannot be closed.
func (b *bundler) checkClosable(l *resolver, root *subschema) {
	if problem := b.rootFault(root); problem != "" {
		l.report(root.pointer, problem)
		return
	}
	reported := map[*subschema]bool{}
	for _, s := range b.undeclaredObjects(root) {
		if own := b.definingSchema(s); !reported[own] {
			reported[own] = true
			l.report(own.pointer, undeclared)
		}
	}
	b.checkBoundaries(l, root)
}

func assemble(b *bundler, top *subschema, at position, r Options) (*Schema, []Fault) {
	document := b.document(top, at)
	root, f := buildNodes(document)
	if f != nil {
		return nil, []Fault{*f}
	}
	if problem := root.complexity(); problem != "" {
		return nil, []Fault{{"", problem}}
	}
	root.countSecondaryCost()
	w, err := newSecondary(document, root.hasPatterns(), r.large)
	if err != nil {
		return nil, []Fault{{"", "found a schema that the secondary evaluator cannot compile; expected one that both can (" + shortCause(err) + ")"}}
	}
	var program *plain.Program
	if !r.bothAlways {
		program = compilePlain(document)
	}
	b.forDisplay = true
	display, err := json.Marshal(b.document(top, at))
	if err != nil {
		return nil, []Fault{{"", "found a schema that cannot be written as JSON"}}
	}
	authored, err := json.Marshal(b.authored(top, at))
	if err != nil {
		return nil, []Fault{{"", "found a schema that cannot be written as JSON"}}
	}
	s := &Schema{root: root, secondary: w, plain: program, closed: display, authored: authored, secretAdditional: b.secretAdditional, hasSecrets: b.secretAdditional}
	root.walk(func(n *node) {
		s.bounded = s.bounded || n.boundary != ""
		s.hasSecrets = s.hasSecrets || n.secret
	})
	switch {
	case s.plain == nil || r.agreement == nil:
	case r.agreement.spent.Load() > maxAgreementSteps:
		s.late = &lateComparison{with: r.agreement}
	default:
		if s.disputed = r.agreement.disagreement(s); s.disputed != "" {
			s.plain = nil
		}
	}
	return s, nil
}

// compilePlain returns the program of a plain schema; nil for any other, and where compiling
// panics: then both evaluators decide, and the process does not end.
func compilePlain(document any) (program *plain.Program) {
	defer safe.Catch(func(error) { program = nil })
	program, _ = plain.Compile(document, maxSecondarySteps)
	return program
}

// hasPatterns reports whether any schema that can be reached has a pattern.
func (n *node) hasPatterns() bool {
	found := false
	n.walk(func(n *node) { found = found || n.pattern != nil || len(n.patternProperties) > 0 })
	return found
}

var (
	errMalformed    = errors.New("the arguments hold a value that no JSON text has, a number out of range, or nest too deeply")
	errTooManySteps = fmt.Errorf("the evaluation takes more than %d steps, or the secondary evaluator more than %d", maxSteps, maxSecondarySteps)
)

// Evaluate gives every violation of a value, or nil.
func (s *Schema) Evaluate(tool string, v any) []Violation {
	refused := func(message string, cause error) []Violation {
		return []Violation{{Code: refusal.InvalidValue, Message: message, Cause: cause}}
	}
	if !wellFormed(v, 1) {
		return refused("The arguments hold a value that cannot be checked: a number out of range, or too many levels.", errMalformed)
	}
	tooLarge := func() []Violation {
		return refused("The arguments are too large to be checked for "+tool+". Send less in one call.", errTooManySteps)
	}
	j := evaluation{tool: tool}
	ok := j.apply(s.root, v, nil)
	if j.exhausted {
		return tooLarge()
	}
	if !ok {
		if found := j.result(); len(found) > 0 {
			return found
		}
		return refused("The arguments do not match the schema of "+tool+".", errors.New("the primary evaluator refused and gave no reason"))
	}
	// The secondary evaluator takes no short cuts: find out what it would do.
	j = evaluation{tool: tool, exhaustive: true, path: j.path[:0]}
	if j.apply(s.root, v, nil); j.exhausted {
		return tooLarge()
	}
	if err := s.secondary.accepts(v, j.steps); err != nil {
		return refused("The arguments do not match the schema of "+tool+".", err)
	}
	return nil
}
