package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/kaptinlin/jsonschema"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry/schema/plain"
)

// Schema is a definition that was read, closed and compiled. It is immutable and
// safe for concurrent use.
type Schema struct {
	root     *node
	nodes    []*node
	library  *library
	plain    *plain.Program  // nil: not a plain schema
	closed   json.RawMessage // for readers
	authored json.RawMessage // the same in its author's words
	// secretAdditional makes members secret that the root does not declare.
	secretAdditional    bool
	bounded, hasSecrets bool
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

// Compiler compiles schemas. Of all its schemas, the library is given one large value at a time,
// which bounds the memory that it needs. Safe for concurrent use.
type Compiler struct{ large chan struct{} }

// NewCompiler returns a compiler.
func NewCompiler() *Compiler { return &Compiler{make(chan struct{}, 1)} }

// Compile turns a definition into a Schema, or reports all that is wrong with it.
// It reads no file and no network.
func (c *Compiler) Compile(raw json.RawMessage, o Options) (*Schema, []Fault) {
	o.large = c.large
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
	program := compilePlain(document) // before the document is prepared for the library
	nodes, f := buildNodes(document)
	if f != nil {
		return nil, []Fault{*f}
	}
	root := nodes[0]
	if problem := root.complexity(); problem != "" {
		return nil, []Fault{{"", problem}}
	}
	for _, n := range nodes {
		n.countNotes()
	}
	w, err := newLibrary(document, root.hasPatterns(), r.large)
	if err != nil {
		return nil, []Fault{{"", "found a schema that kaptinlin/jsonschema cannot compile; expected one that it can (" + shortCause(err) + ")"}}
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
	s := &Schema{root: root, nodes: nodes, library: w, plain: program, closed: display, authored: authored, secretAdditional: b.secretAdditional, hasSecrets: b.secretAdditional}
	root.walk(func(n *node) {
		s.bounded = s.bounded || n.boundary != ""
		s.hasSecrets = s.hasSecrets || n.secret
	})
	return s, nil
}

// compilePlain returns the program of a plain schema; nil for any other, and where compiling
// panics: then the library decides, and the process does not end.
func compilePlain(document any) (program *plain.Program) {
	defer safe.Catch(func(error) { program = nil })
	program, _ = plain.Compile(document, maxProgramSteps)
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
	errTooManySteps = fmt.Errorf("kaptinlin/jsonschema might take more than %d steps, or the refusal more than %d to write", maxSteps, maxReportSteps)
	errDisagree     = errors.New("kaptinlin/jsonschema accepts what the program of the schema refuses")
	errNoReason     = errors.New("kaptinlin/jsonschema refuses and names no place")
)

// Judge gives every violation of a value, or nil. raw is the value as strict JSON; decode returns it
// decoded, and is only called where the program of a plain schema does not accept it.
func (s *Schema) Judge(tool string, raw []byte, decode func() any) []Violation {
	refused := false
	if s.plain != nil {
		var accepted bool
		if accepted, refused = s.plain.Judge(raw); accepted {
			return nil
		}
	}
	return s.decide(tool, decode(), refused)
}

// decide asks the library. Where the program of the schema has refused the value, the library confirms
// it: if it does not, the value is refused all the same.
func (s *Schema) decide(tool string, v any, refused bool) []Violation {
	whole := func(message string, cause error) []Violation {
		return []Violation{{Code: refusal.InvalidValue, Message: message, Cause: cause}}
	}
	if !wellFormed(v, 1) {
		return whole("The arguments hold a value that cannot be checked: a number out of range, or too many levels.", errMalformed)
	}
	tooLarge := "The arguments are too large to be checked for " + tool + ". Send less in one call."
	steps := s.root.costOf(v)
	if steps > maxSteps {
		return whole(tooLarge, errTooManySteps)
	}
	valid := false
	j := explanation{tool: tool, nodes: s.nodes}
	err := s.library.judge(v, steps, func(r *jsonschema.EvaluationResult) {
		if valid = r.IsValid(); !valid {
			j.value(r, s.root, v)
		}
	})
	switch {
	case err != nil:
		return whole("The arguments cannot be checked for "+tool+". Use other values, or say what you cannot do.", err)
	case valid && refused:
		return whole("The two checks of the arguments of "+tool+" disagree, so they are refused. Use other values, or say what you cannot do.", errDisagree)
	case valid:
		return nil
	case j.exhausted():
		return whole(tooLarge, errTooManySteps)
	}
	if found := j.result(); len(found) > 0 {
		return found
	}
	return whole("The arguments do not match the schema of "+tool+".", errNoReason)
}
