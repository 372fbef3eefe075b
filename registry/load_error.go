package registry

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/callgate/callgate/parser"
)

// LoadError is one fault of one definition. It speaks to the operator and holds
// nothing but text of the definition.
type LoadError struct {
	Tool int    // index in the list given to New
	Name string // the tool's name as written
	// Field is the path of keys from the definition to the faulty one, for
	// example ["input_schema"] or ["run", "url"].
	Field []string
	// Pointer is a JSON Pointer (RFC 6901) inside the schema that Field names,
	// "" at its root. It may name a place that is missing.
	Pointer string
	Message string // what was found and what was expected
}

// Error is the operator's line without file and line, which the reader of the
// file adds from Tool, Field and Pointer.
func (e *LoadError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tool %s", parser.Quote(e.Name))
	if len(e.Field) > 0 {
		b.WriteString(": " + strings.Join(e.Field, "."))
	}
	if e.Pointer != "" {
		b.WriteString(" at " + e.Pointer)
	}
	return b.String() + ": " + e.Message
}

func ordinal(i int) string { return "number " + strconv.Itoa(i+1) }
