package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kaptinlin/jsonschema"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry/schema/plain"
)

// Schema is a definition that was read, closed and compiled. It is immutable and
// safe for concurrent use.
type Schema struct {
	plain   *plain.Program // nil: not a plain schema
	library func() *libraryJudge
	// root has the places of boundaries and secrets; nil where there are none.
	root     *node
	closed   json.RawMessage // for readers
	authored json.RawMessage // the same in its author's words
	// secretAdditional makes members secret that the root does not declare.
	secretAdditional    bool
	bounded, hasSecrets bool
	doubts              []Fault
}

// Doubts are what is allowed and surely not meant, where Options ask for it.
func (s *Schema) Doubts() []Fault { return s.doubts }

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

// libraryJudge is what judges a value by the library and says why it refuses. A plain schema asks for it
// only about what its program does not accept, so that its judge is made when that happens first: it is
// most of what a schema takes in memory, and compiling it a third of what compiling takes.
type libraryJudge struct {
	*library
	root  *node
	nodes []*node
	err   error // why there is none
}

// Compiler compiles schemas. Of all its schemas, the library is given one large value at a time,
// which bounds the memory that it needs. Safe for concurrent use.
type Compiler struct{ large chan struct{} }

// NewCompiler returns a compiler.
func NewCompiler() *Compiler { return &Compiler{make(chan struct{}, 1)} }

// Compile turns a definition into a Schema, or reports all that is wrong with it.
// It reads no file and no network. The Schema keeps raw, which must not change.
func (c *Compiler) Compile(raw json.RawMessage, o Options) (*Schema, []Fault) {
	o.large = c.large
	return read(raw, o)
}

// read turns a definition into a schema, or says all that is wrong with it.
func read(raw json.RawMessage, r Options) (*Schema, []Fault) {
	closed, faults := newClosing(raw, r)
	if len(faults) > 0 {
		return nil, faults
	}
	return closed.assemble(raw, r)
}

// closing is a definition without faults of its own, to be written as closed documents.
type closing struct {
	*bundler
	top *subschema
	at  position
}

// newClosing reads a definition and says what is wrong with it.
func newClosing(raw json.RawMessage, r Options) (*closing, []Fault) {
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
	l.checkForms(doc)
	if len(l.faults) > 0 {
		return nil, l.faults
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
	return &closing{b, doc.root, at}, l.faults
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

// assemble compiles a closed definition, of which raw is the text.
func (c *closing) assemble(raw json.RawMessage, r Options) (*Schema, []Fault) {
	document := c.document(c.top, c.at)
	program := compilePlain(document) // before the document is prepared for the library
	s := &Schema{plain: program, secretAdditional: c.secretAdditional, hasSecrets: c.secretAdditional}
	if program == nil || c.marked || c.secretAdditional || len(c.defs) > 0 {
		if f := s.addNodes(document, r); f != nil {
			return nil, []Fault{*f}
		}
	}
	// A plain schema without references needs no nodes: each of its schemas stands for one place, and at most
	// two of them for the same, so that it is not too complex, however large it is.
	if program != nil {
		s.library = sync.OnceValue(func() *libraryJudge { return rebuild(raw, r) })
	}
	c.forDisplay = true
	s.closed = writeJSON(c.document(c.top, c.at))
	if r.Doubts {
		s.doubts = c.undeclarable(c.top)
	}
	if s.authored = writeJSON(c.authored(c.top, c.at)); bytes.Equal(s.closed, s.authored) {
		s.authored = s.closed
	}
	return s, nil
}

// addNodes builds the nodes of a document: the schema keeps them if it has boundaries or secrets, and if it
// is not plain, for the library.
func (s *Schema) addNodes(document any, r Options) *Fault {
	nodes, f := buildNodes(document)
	if f != nil {
		return f
	}
	root := nodes[0]
	if problem := root.complexity(); problem != "" {
		return &Fault{"", problem}
	}
	if s.plain == nil {
		j := newLibraryJudge(document, nodes, r)
		if j.err != nil {
			return &Fault{"", "found a schema that kaptinlin/jsonschema cannot compile; expected one that it can (" + shortCause(j.err) +
				")"}
		}
		s.library = func() *libraryJudge { return j }
	}
	root.walk(func(n *node) {
		s.bounded = s.bounded || n.boundary != ""
		s.hasSecrets = s.hasSecrets || n.secret
	})
	if s.bounded || s.hasSecrets {
		s.root = root
	}
	return nil
}

func newLibraryJudge(document any, nodes []*node, r Options) *libraryJudge {
	j := &libraryJudge{root: nodes[0], nodes: nodes}
	for _, n := range nodes {
		n.countNotes()
	}
	j.library, j.err = newLibrary(document, j.root.hasPatterns(), r.large)
	return j
}

var errNotRebuilt = errors.New("a schema that was compiled does not compile again")

// rebuild compiles the text of a plain schema once more, for the library. A fault of it refuses what the
// program does not accept.
func rebuild(raw json.RawMessage, r Options) (j *libraryJudge) {
	defer safe.Catch(func(error) { j = &libraryJudge{err: errNotRebuilt} })
	c, faults := newClosing(raw, r)
	if len(faults) > 0 {
		return &libraryJudge{err: errNotRebuilt}
	}
	document := c.document(c.top, c.at)
	nodes, f := buildNodes(document)
	if f != nil {
		return &libraryJudge{err: errNotRebuilt}
	}
	return newLibraryJudge(document, nodes, r)
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
	errTooManySteps = fmt.Errorf("kaptinlin/jsonschema might take more than %d steps, or the refusal more than %d to write", maxSteps,
		maxReportSteps)
	errDisagree = errors.New("kaptinlin/jsonschema accepts what the program of the schema refuses")
	errNoReason = errors.New("kaptinlin/jsonschema refuses and names no place")
)

// Judge gives every violation of the arguments of a tool, or of its result, or nil. raw is the value as strict JSON;
// decode returns it decoded, and is only called where the program of a plain schema does not accept it.
func (s *Schema) Judge(tool string, raw []byte, decode func() any) []Violation {
	return s.judge(func() *words { return ofArguments(tool) }, raw, decode)
}

// JudgeAnswer is Judge for an answer of a model that is asked to be JSON.
func (s *Schema) JudgeAnswer(raw []byte, decode func() any) []Violation {
	return s.judge(func() *words { return ofAnswer }, raw, decode)
}

func (s *Schema) judge(in func() *words, raw []byte, decode func() any) []Violation {
	refused := false
	if s.plain != nil {
		var accepted bool
		if accepted, refused = s.plain.Judge(raw); accepted {
			return nil
		}
	}
	return s.decide(in(), decode(), refused)
}

// decide asks the library. Where the program of the schema has refused the value, the library confirms
// it: if it does not, the value is refused all the same.
func (s *Schema) decide(w *words, v any, refused bool) []Violation {
	whole := func(message string, cause error) []Violation {
		return []Violation{{Code: refusal.InvalidValue, Message: message, Cause: cause}}
	}
	if !wellFormed(v, 1) {
		return whole(w.whole+" hold a value that cannot be checked: a number out of range, or too many levels.", errMalformed)
	}
	library := s.library()
	unchecked := w.whole + " cannot be checked for " + w.by + ". " + w.unable
	if library.err != nil {
		return whole(unchecked, library.err)
	}
	tooLarge := w.whole + " are too large to be checked for " + w.by + ". " + w.less
	steps := library.root.costOf(v)
	if steps > maxSteps {
		return whole(tooLarge, errTooManySteps)
	}
	valid := false
	j := explanation{words: w, nodes: library.nodes}
	err := library.judge(v, steps, func(r *jsonschema.EvaluationResult) {
		if valid = r.IsValid(); !valid {
			j.value(r, library.root, v)
		}
	})
	switch {
	case err != nil:
		return whole(unchecked, err)
	case valid && refused:
		return whole(w.whole+" are refused, since the two checks of them by "+w.by+" disagree. "+w.unable, errDisagree)
	case valid:
		return nil
	case j.exhausted():
		return whole(tooLarge, errTooManySteps)
	}
	if found := j.result(); len(found) > 0 {
		return found
	}
	return whole(w.whole+" do not match what "+w.by+" allows.", errNoReason)
}
