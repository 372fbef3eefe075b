package schema

// Options says how a definition is read. The zero value is the strict one.
type Options struct {
	Open     bool // the root keeps additionalProperties and unevaluatedProperties as its author wrote them
	Doubts   bool // what is allowed and surely not meant is looked for
	Authored bool // nothing is closed and the root may be any schema: results, and the official suite
	// formatAnnotations makes format an annotation, allowEmptyEnum accepts a list that
	// no value matches, and remotes supplies other documents: the official suite.
	formatAnnotations, allowEmptyEnum bool
	remotes                           func(uri string) (any, bool)
	large                             chan struct{} // one slot; see library
}
